"""Balance, top-ups, ledger, usage and earnings through the REST API."""

from collections.abc import Callable
from datetime import datetime
from typing import Any

import pytest
from django.test import Client

from billing.models import Entry, TopUp, Transfer, UsageRecord
from billing.services import escrow, settlement, topups
from fabric.lib import ids
from tests.billing.money import after_disputes, first_window, funded, record
from tests.standin import StandInProcess
from tests.world import World

ApiClient = Callable[..., Client]
BASE = "/api/v1"


def _post(client: Client, body: object, *, key: str = "k", path: str = "/top-ups/") -> Any:
    return client.post(
        f"{BASE}{path}", body, content_type="application/json", headers={"Idempotency-Key": key}
    )


@pytest.fixture
def used(world: World, now: datetime) -> UsageRecord:
    """One settled window of four ready seconds."""
    agreement, terms = funded(world, now, 100_000)
    window = first_window(terms, now)
    escrow.reserve_window(
        agreement=agreement,
        terms=terms,
        window_index=window,
        max_ready_seconds=5,
        now=now,
    )
    kept = record(agreement, terms, window, 4)
    settlement.settle_due(now=after_disputes(kept))
    kept.refresh_from_db()
    return kept


def test_a_top_up_is_started_paid_and_seen_in_the_wallet(
    world: World,
    standin: StandInProcess,
    api: ApiClient,
    now: datetime,
) -> None:
    """R-C12, R-C15 (api): start, pay, and read the balance and the leg that raised it."""
    alice = api(world.alice)
    answer = _post(alice, {"amount_micros": "25000000"})
    assert answer.status_code == 201, answer.content
    made = answer.json()
    assert made["state"] == "created"
    assert made["checkout_url"].startswith(standin.url)
    assert answer["Location"].endswith(f"{BASE}/top-ups/{made['id']}/")
    top_up = TopUp.objects.get()
    standin.act(str(top_up.checkout_session), "pay")
    topups.fulfil(session_id=str(top_up.checkout_session), now=now)

    shown = alice.get(f"{BASE}/top-ups/{made['id']}/").json()
    assert (shown["state"], shown["checkout_url"]) == ("paid", "")
    wallet = alice.get(f"{BASE}/wallet/").json()
    assert wallet["available_micros"] == wallet["total_micros"] == "25000000"
    entries = alice.get(f"{BASE}/ledger-entries/").json()["data"]
    assert [(row["kind"], row["amount_micros"]) for row in entries] == [("top_up", "-25000000")]
    assert [row["id"] for row in alice.get(f"{BASE}/top-ups/").json()["data"]] == [made["id"]]


def test_a_repeated_request_is_answered_again_and_another_body_is_refused(
    world: World,
    standin: StandInProcess,
    api: ApiClient,
) -> None:
    """R-C12 (api): one key, one payment page; another tenant's same key is another's."""
    alice, dave = api(world.alice), api(world.dave)
    first = _post(alice, {"amount_micros": "25000000"})
    again = _post(alice, {"amount_micros": "25000000"})
    assert (again.status_code, again.json()) == (201, first.json())
    assert again["Idempotency-Replayed"] == "true"
    assert _post(alice, {"amount_micros": "26000000"}).status_code == 422
    assert _post(dave, {"amount_micros": "25000000"}).status_code == 201
    assert TopUp.objects.count() == 2
    missing = alice.post(
        f"{BASE}/top-ups/", {"amount_micros": "25000000"}, content_type="application/json"
    )
    assert (missing.status_code, missing.json()["code"]) == (400, "IDEMPOTENCY_KEY_MISSING")


@pytest.mark.parametrize(
    "amount",
    [
        *(-1, 0, "-1", "0", "NaN", "1e309", "1e3", "1.5", "10.0000001", str(2**63), True, 25.0),
        *(None, "", "999999", "1000001", " 25000000", "\uff12\uff15\uff10\uff10\uff10\uff10\uff10"),
    ],
)
def test_a_strange_amount_is_refused_by_name(
    world: World,
    standin: StandInProcess,
    api: ApiClient,
    amount: object,
) -> None:
    """R-C12 (api): negative, zero, not-a-number, exponents, fractions, booleans, too large."""
    answer = _post(api(world.alice), {"amount_micros": amount})
    assert answer.status_code == 400
    assert answer.json()["errors"][0]["pointer"] == "/amount_micros"
    assert not TopUp.objects.exists()


def test_an_unknown_field_is_refused_by_name(world: World, api: ApiClient) -> None:
    answer = _post(api(world.alice), {"amount_micros": "25000000", "currency": "eur"})
    assert answer.status_code == 400
    assert answer.json()["errors"][0]["pointer"] == "/currency"


def test_both_sides_read_one_usage_record(world: World, used: UsageRecord, api: ApiClient) -> None:
    """R-C8, R-C9 (api): the same row, recomputable, for who pays and who is paid."""
    path = f"{BASE}/usage-records/{used.public_id}/"
    buyer, provider = (api(person).get(path).json() for person in (world.alice, world.carol))
    assert buyer == provider
    assert buyer["recomputed_micros"] == buyer["amount_micros"] == "4000"
    assert buyer["price"] == {
        "amount_micros": "3600000",
        "per_quantity": "3600",
        "meter_unit": "accelerator_second",
    }
    assert (buyer["counter_start"], buyer["counter_end"]) == (0, 4)
    assert {share["name"]: share["amount_micros"] for share in buyer["shares"]} == {
        "provider": "3400",
        "verification": "120",
        "network": "120",
        "infrastructure": "160",
        "margin": "200",
    }
    assert buyer["terms_digest"] == bytes(used.terms.digest).hex()
    assert world.meridian.public_id not in str(provider)


def test_an_agreements_ledger_lines_for_either_side(
    world: World, used: UsageRecord, api: ApiClient
) -> None:
    """R-C13 (api): the buyer sees all of the escrow, the provider what concerns its pay."""
    path = f"{BASE}/agreements/{used.agreement.public_id}/ledger-lines/"
    buyer = api(world.alice).get(path).json()["data"]
    provider = api(world.carol).get(path).json()["data"]
    assert [line["kind"] for line in buyer] == ["settle", "reserve", "order"]
    assert [line["kind"] for line in provider] == ["settle", "reserve"]
    assert provider[1]["state"] == "post"
    assert sum(int(leg["amount_micros"]) for leg in provider[0]["legs"]) == 0
    assert world.meridian.public_id not in str(provider)


def test_usage_records_are_filtered(world: World, used: UsageRecord, api: ApiClient) -> None:
    alice = api(world.alice)
    for query, count in (
        ("", 1),
        (f"?agreement={used.agreement.public_id}", 1),
        ("?state=settled", 1),
        ("?state=pending", 0),
    ):
        answer = alice.get(f"{BASE}/usage-records/{query}")
        assert len(answer.json()["data"]) == count, query
    assert alice.get(f"{BASE}/usage-records/?state=paid").status_code == 400
    unknown = ids.to_public("agr", ids.uuid7())
    assert alice.get(f"{BASE}/usage-records/?agreement={unknown}").status_code == 404


def test_earnings_and_wallet_by_state(world: World, used: UsageRecord, api: ApiClient) -> None:
    """R-C9 (api): earned is what the record's post gave, to the last unit."""
    earned = api(world.carol).get(f"{BASE}/earnings/").json()
    assert (earned["pending_micros"], earned["earned_micros"]) == ("0", "3400")
    wallet = api(world.alice).get(f"{BASE}/wallet/").json()
    assert (wallet["held_micros"], wallet["total_micros"]) == ("96000", "96000")


def test_entries_come_in_pages_in_a_stable_order(
    world: World, now: datetime, api: ApiClient, used: UsageRecord
) -> None:
    alice = api(world.alice)
    seen: list[int] = []
    url = f"{BASE}/ledger-entries/?limit=2"
    while url:
        answer = alice.get(url).json()
        seen += [row["id"] for row in answer["data"]]
        cursor = answer["next_cursor"]
        url = f"{BASE}/ledger-entries/?limit=2&cursor={cursor}" if cursor else ""
    assert seen == sorted(seen, reverse=True)
    assert len(seen) == len(set(seen)) == Entry.objects.visible_to(world.actor(world.alice)).count()


def test_another_tenants_money_is_not_found(
    world: World, used: UsageRecord, api: ApiClient, now: datetime
) -> None:
    """R-C13 (api): ids of others answer 404, and lists are empty."""
    top_up = TopUp.objects.create(
        organisation=world.meridian, amount_micros=1, created_by="x", created_at=now
    )
    dave = api(world.dave)
    for path in (
        f"/top-ups/{top_up.public_id}/",
        f"/usage-records/{used.public_id}/",
        f"/agreements/{used.agreement.public_id}/ledger-lines/",
    ):
        assert dave.get(f"{BASE}{path}").status_code == 404, path
    for path in ("/top-ups/", "/usage-records/", "/ledger-entries/"):
        assert dave.get(f"{BASE}{path}").json()["data"] == [], path
    assert Transfer.objects.exists()
