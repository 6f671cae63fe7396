"""The worked examples of a lease's money come out right, to the micro-unit."""

import json
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from billing.domain.lines import split_amount
from billing.models import Agreement, Terms, UsageRecord
from billing.services import agreements, disputes, escrow, settlement, usage, wallet
from fabric.journal.models import ProtocolParameters
from fabric.journal.services.parameters import adopt_parameters
from fabric.lib.clock import window_bounds, window_index
from tests.billing.money import (
    assert_books_balance,
    at,
    earned_micros,
    escrow_of,
    fees_micros,
    give,
)
from tests.world import COMMERCIAL, World

FOLDER = Path(__file__).resolve().parents[2].parent / "shared" / "data" / "scenarios"
FILES = sorted(FOLDER.glob("*.json"))


@pytest.mark.skipif(not FILES, reason=f"no scenario files in {FOLDER.name} beside this checkout")
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_scenario_gives_every_expected_amount(world: World, path: Path) -> None:
    """R-C8 (api): lines, rulings, splits, wallet and escrow of the published examples."""
    scenario = json.loads(path.read_text(encoding="utf-8"))
    assert _play(world, scenario) == scenario["expect"]


def test_a_line_after_a_void_is_not_dearer(world: World) -> None:
    """R-C8 (api): the last line depends on the counter alone, whatever became of the others."""
    start = at("2026-12-01T14:40:00Z")
    outcome = _play(world, _two_hours(start, stands_bps=0))
    assert [line["amount_micros"] for line in outcome["lines"]] == [666_666, 2_000_000, 1_333_334]
    assert outcome["wallet_micros"] == 2_000_000


def test_four_dollars_at_two_an_hour_run_two_hours_to_the_second(world: World) -> None:
    """R-C11 (api): reserving the largest possible line never costs the last affordable second."""
    start = at("2026-12-01T14:40:00Z")
    outcome = _play(world, _two_hours(start, stands_bps=None))
    assert outcome["wallet_micros"] == outcome["escrow_micros"] == 0
    assert sum(line["ruled_micros"] for line in outcome["lines"]) == 4_000_000


def _two_hours(start: datetime, *, stands_bps: int | None) -> dict[str, Any]:
    """Write the scenario of four dollars, with the middle hour ruled on where asked."""

    def stamp(**after: int) -> str:
        return (start + timedelta(**after)).isoformat()

    windows = [stamp(minutes=-40), stamp(minutes=20), stamp(minutes=80)]
    events = [
        {"at": stamp(minutes=-41), "do": "top_up", "amount_micros": 4_000_000},
        {"at": stamp(minutes=-41), "do": "order", "escrow_micros": 4_000_000},
        {"at": stamp(), "do": "ready"},
        *(
            {"at": stamp(minutes=20 + 60 * n), "do": "reading", "window_start": windows[n]}
            | {"ready_seconds": seconds}
            for n, seconds in enumerate((1_200, 3_600, 2_400))
        ),
        {"at": stamp(minutes=141), "do": "end"},
    ]
    if stands_bps is not None:
        moment = stamp(minutes=142)
        events += [
            {"at": moment, "do": "dispute", "window_start": windows[1], "by": "buyer"},
            {"at": moment, "do": "rule", "window_start": windows[1], "stands_bps": stands_bps},
        ]
    return {
        "parameters": {
            "window_seconds": 3_600,
            "dispute_window_seconds": 86_400,
            "reserve_ahead": 2,
            "hold_bps": 0,
            "split_bps": {
                "provider": 6_500,
                "verification": 500,
                "network": 1_500,
                "infrastructure": 1_000,
                "margin": 500,
            },
        },
        "price": {"amount_micros": 2_000_000, "per_quantity": 3_600},
        "units": 1,
        "events": events,
    }


@dataclass
class _Play:
    """One scenario under way: reserves as a lease would, window by window ahead."""

    world: World
    scenario: dict[str, Any]
    agreement: Agreement = field(init=False)
    terms: Terms = field(init=False)
    ready_at: datetime = field(init=False)
    last_reserved: int = -1

    def run(self, event: dict[str, Any]) -> None:
        getattr(self, f"_{event['do']}")(at(event["at"]), event)

    def _top_up(self, now: datetime, event: dict[str, Any]) -> None:
        give(self.world.meridian, event["amount_micros"], key=f"top-up:{now}", now=now)

    def _order(self, now: datetime, event: dict[str, Any]) -> None:
        price = self.scenario["price"]
        self.agreement, self.terms = agreements.open_agreement(
            buyer=self.world.meridian,
            provider=self.world.northwind,
            body={"revision": "00" * 32},
            price_micros=price["amount_micros"],
            per_quantity=price["per_quantity"],
            meter_unit="accelerator_second",
            units=self.scenario["units"],
            now=now,
        )
        self._fund(now, {"amount_micros": event["escrow_micros"]})

    def _fund(self, now: datetime, event: dict[str, Any]) -> None:
        escrow.fund(
            agreement=self.agreement,
            amount_micros=event["amount_micros"],
            key=f"fund:{now}",
            now=now,
        )

    def _ready(self, now: datetime, event: dict[str, Any]) -> None:
        self.ready_at = now
        self._reserve_ahead(now)

    def _reading(self, now: datetime, event: dict[str, Any]) -> None:
        index = self._window(event)
        self._reserve_ahead(now, through=index)
        starts_at, ends_at = window_bounds(index, window_seconds=self.terms.window_seconds)
        usage.record_usage(
            agreement=self.agreement,
            terms=self.terms,
            window_index=index,
            starts_at=max(starts_at, self.ready_at),
            ends_at=ends_at,
            ready_seconds=event["ready_seconds"],
            evidence=f"{index:064x}",
            meter_party=self.world.northwind.public_id,
            now=now,
        )
        self._reserve_ahead(now)

    def _dispute(self, now: datetime, event: dict[str, Any]) -> None:
        assert disputes.hold_record(record=self._record(event), now=now)

    def _rule(self, now: datetime, event: dict[str, Any]) -> None:
        disputes.resolve_record(record=self._record(event), stands_bps=event["stands_bps"], now=now)

    def _end(self, now: datetime, event: dict[str, Any]) -> None:
        for reservation in self.agreement.reservations.filter(
            record__isnull=True, voided_at__isnull=True
        ):
            escrow.void_reservation(
                agreement=self.agreement, window_index=reservation.window_index, now=now
            )
        agreements.close_if_done(agreement=self.agreement, now=now)

    def _reserve_ahead(self, now: datetime, through: int | None = None) -> None:
        """Reserve the running window and those ahead of it, as far as the money reaches."""
        length = self.terms.window_seconds
        current = window_index(now, window_seconds=length)
        last = through or current + self.scenario["parameters"]["reserve_ahead"] - 1
        first = max(self.last_reserved + 1, window_index(self.ready_at, window_seconds=length))
        for index in range(first, last + 1):
            starts_at, ends_at = window_bounds(index, window_seconds=length)
            possible = int((ends_at - max(starts_at, self.ready_at)).total_seconds())
            affordable = escrow.seconds_affordable(agreement=self.agreement, terms=self.terms)
            if min(possible, affordable) == 0:
                return
            escrow.reserve_window(
                agreement=self.agreement,
                terms=self.terms,
                window_index=index,
                max_ready_seconds=min(possible, affordable),
                now=now,
            )
            self.last_reserved = index

    def _record(self, event: dict[str, Any]) -> UsageRecord:
        return self.agreement.usage_records.get(window_index=self._window(event))

    def _window(self, event: dict[str, Any]) -> int:
        return window_index(at(event["window_start"]), window_seconds=self.terms.window_seconds)


def _play(world: World, scenario: dict[str, Any]) -> dict[str, Any]:
    """Play the events in order, settle what is left, and return what the file expects."""
    shares = scenario["parameters"]["split_bps"]
    adopt_parameters(
        kind=ProtocolParameters.Kind.COMMERCIAL,
        body={
            **COMMERCIAL,
            "window_seconds": scenario["parameters"]["window_seconds"],
            "dispute_window_seconds": scenario["parameters"]["dispute_window_seconds"],
            "hold_bps": scenario["parameters"]["hold_bps"],
            **{f"{share}_bps": bps for share, bps in shares.items()},
        },
        proposed_by=world.olga.public_id,
        approved_by="exchange",
        effective_at=world.commercial.effective_at,
    )
    play = _Play(world, scenario)
    for event in scenario["events"]:
        play.run(event)
    much_later = at(scenario["events"][-1]["at"]) + timedelta(days=30)
    while settlement.settle_due(now=much_later):
        pass
    agreements.close_due(now=much_later)
    assert_books_balance()
    return _outcome(world, play, shares)


def _start_of(usage_record: UsageRecord) -> datetime:
    return window_bounds(
        usage_record.window_index, window_seconds=usage_record.terms.window_seconds
    )[0]


def _outcome(world: World, play: _Play, shares: dict[str, int]) -> dict[str, Any]:
    fee_shares = {name: bps for name, bps in shares.items() if name != "provider"}
    lines = [
        {
            "window_start": _start_of(usage_record).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "quantity": [usage_record.counter_start, usage_record.counter_end],
            "amount_micros": usage_record.amount_micros,
            "ruled_bps": usage_record.stands_bps,
            "ruled_micros": usage_record.ruled_micros,
            "split_micros": split_amount(usage_record.ruled_micros, fee_shares_bps=fee_shares),
        }
        for usage_record in play.agreement.usage_records.order_by("window_index")
    ]
    return {
        "lines": lines,
        "wallet_micros": wallet.available_micros(world.meridian),
        "escrow_micros": escrow_of(play.agreement).balance_micros,
        "totals_micros": {"provider": earned_micros(world.northwind), **fees_micros()},
    }
