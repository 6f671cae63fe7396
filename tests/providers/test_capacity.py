"""Who gets a unit: one holder at a time, whatever races."""

import threading
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial

import pytest
from django.db import IntegrityError, connection, transaction
from django.db.backends.postgresql.psycopg_any import DateTimeTZRange, NumericRange

from fabric.accounts.domain.actors import EXCHANGE
from fabric.lib.errors import DomainError, WrongState
from providers.domain.nodes import NodeState
from providers.models import Hold, Unit
from providers.services import capacity
from providers.services.nodes import move_node
from tests.fleet import admit_node
from tests.world import World

HOUR = timedelta(hours=1)


def in_threads(acts: list[Callable[[], object]]) -> list[object]:
    """Run all acts at once, each on its own connection; return results or exceptions in order."""
    results: list[object] = [None] * len(acts)
    barrier = threading.Barrier(len(acts))

    def run(place: int) -> None:
        try:
            barrier.wait(timeout=20)
            results[place] = acts[place]()
        except Exception as error:  # noqa: BLE001 - the test looks at each outcome itself
            results[place] = error
        finally:
            connection.close()

    threads = [threading.Thread(target=run, args=(place,)) for place in range(len(acts))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    return results


def hold(
    units: list[Unit], holder: str, now: datetime, until: datetime | None = None
) -> list[Hold]:
    return capacity.place_holds(
        units=units, until=until or now + HOUR, kind=Hold.Kind.LEASE, holder=holder, now=now
    )


def test_a_unit_is_free_until_held_and_again_after_release(world: World, now: datetime) -> None:
    """R-C2 (api): a unit that one holder has is nobody else's until it is released."""
    node = admit_node(world.provider, now=now)
    (unit,) = capacity.list_free_units(node=node, now=now)

    hold([unit], "lse_one", now)

    assert capacity.list_free_units(node=node, now=now) == []
    with pytest.raises(capacity.UnitAlreadyHeld) as refusal:
        hold([unit], "lse_two", now)
    assert (refusal.value.code, refusal.value.status) == ("UNIT_ALREADY_HELD", 409)
    assert Hold.objects.count() == 1

    assert capacity.release_holds(holder="lse_one", now=now + timedelta(minutes=5)) == 1
    assert capacity.list_free_units(node=node, now=now + timedelta(minutes=5)) == [unit]
    ended = Hold.objects.get()
    assert (ended.live, ended.period.upper) == (False, now + timedelta(minutes=5))


def test_every_hold_ends_by_itself(world: World, now: datetime) -> None:
    """R-C2 (api): a hold nobody releases ends when what was paid for ends."""
    node = admit_node(world.provider, now=now)
    hold([*capacity.list_free_units(node=node, now=now)], "lse_one", now)

    later = now + HOUR
    (free,) = capacity.list_free_units(node=node, now=later)
    assert hold([free], "lse_two", later)
    with pytest.raises(IntegrityError, match="every_hold_begins_and_ends"), transaction.atomic():
        Hold.objects.create(
            device=free.device,
            slots=NumericRange(0, 1),
            period=DateTimeTZRange(now, None),
            kind=Hold.Kind.FENCE,
            holder="forever",
        )


def test_a_whole_device_and_a_slice_of_it_are_not_both_let(world: World, now: datetime) -> None:
    """R-A1 (api): a slice that is let takes the whole device off the market, and no other slice."""
    node = admit_node(world.provider, now=now)
    device = node.devices.get()
    device.slots = 7
    device.save()
    Unit.objects.all().delete()
    whole = Unit.objects.create(
        device=device, kind="whole", slots=NumericRange(0, 7), memory_mib=1024
    )
    left = Unit.objects.create(device=device, kind="slice", slots=NumericRange(0, 3), memory_mib=1)
    right = Unit.objects.create(device=device, kind="slice", slots=NumericRange(3, 7), memory_mib=1)

    hold([left], "lse_left", now)

    assert capacity.list_free_units(node=node, now=now) == [right]
    with pytest.raises(capacity.UnitAlreadyHeld):
        hold([whole], "lse_whole", now)


def test_holds_of_several_units_are_taken_together_or_not_at_all(
    world: World, now: datetime
) -> None:
    """R-C2 (api): of three units with one taken, none is taken."""
    node = admit_node(world.provider, now=now, device_count=3)
    units = capacity.list_free_units(node=node, now=now)
    hold(units[1:2], "lse_one", now)

    with pytest.raises(capacity.UnitAlreadyHeld):
        hold(units, "lse_two", now)

    assert not Hold.objects.filter(holder="lse_two").exists()
    assert capacity.list_free_units(node=node, now=now) == [units[0], units[2]]


def test_a_hold_is_extended_but_never_shortened(world: World, now: datetime) -> None:
    """R-C11 (api): with each reserved window the units stay a window longer."""
    node = admit_node(world.provider, now=now)
    units = capacity.list_free_units(node=node, now=now)
    hold(units, "lse_one", now)

    capacity.extend_holds(holder="lse_one", until=now + 2 * HOUR, now=now)
    capacity.extend_holds(holder="lse_one", until=now + HOUR, now=now)
    assert Hold.objects.get().period.upper == now + 2 * HOUR

    Hold.objects.create(
        device=units[0].device,
        slots=units[0].slots,
        period=DateTimeTZRange(now + 3 * HOUR, now + 4 * HOUR),
        kind=Hold.Kind.RESERVATION,
        holder="ord_later",
    )
    with pytest.raises(capacity.UnitAlreadyHeld):
        capacity.extend_holds(holder="lse_one", until=now + 4 * HOUR, now=now)
    assert Hold.objects.get(holder="lse_one").period.upper == now + 2 * HOUR
    with pytest.raises(WrongState):
        capacity.extend_holds(holder="lse_gone", until=now + HOUR, now=now)


def test_nothing_is_placed_on_a_node_that_is_not_admitted(world: World, now: datetime) -> None:
    """R-B6 (api): a fenced node takes no new placement at once, while what it holds stays."""
    node = admit_node(world.provider, now=now, device_count=2)
    first, second = capacity.list_free_units(node=node, now=now)
    hold([first], "lse_one", now)

    move_node(node=node, expected=NodeState.ADMITTED, to=NodeState.FENCED, actor=EXCHANGE, now=now)

    assert capacity.list_free_units(node=node, now=now) == []
    with pytest.raises(capacity.NodeNotPlaceable):
        hold([second], "lse_two", now)
    assert Hold.objects.get().live


def test_of_two_buyers_of_one_unit_exactly_one_wins(
    committed_db: None, world: World, now: datetime
) -> None:
    """R-C2 (api): no unit is in two leases at once, also when two ask in the same instant."""
    node = admit_node(world.provider, now=now)
    units = capacity.list_free_units(node=node, now=now)

    results = in_threads([partial(hold, units, name, now) for name in ("lse_one", "lse_two")])

    refused = [result for result in results if isinstance(result, capacity.UnitAlreadyHeld)]
    assert len(refused) == 1, results
    assert Hold.objects.filter(live=True).count() == 1


def test_sixteen_buyers_of_overlapping_sets_never_deadlock(
    committed_db: None, world: World, now: datetime
) -> None:
    """R-C2 (api): buyers who name the same units in any order wait for each other."""
    node = admit_node(world.provider, now=now, device_count=12)
    units = capacity.list_free_units(node=node, now=now)
    sets = [
        [units[(place * 5 + step * stride) % 12] for step in range(4)]
        for place in range(16)
        for stride in [1 if place % 2 else 11]
    ]

    results = in_threads(
        [partial(hold, chosen, f"lse_{place}", now) for place, chosen in enumerate(sets)]
    )

    refused = [result for result in results if isinstance(result, DomainError)]
    won = [result for result in results if isinstance(result, list)]
    assert len(refused) + len(won) == 16, results
    assert won
    assert Hold.objects.filter(live=True).count() == 4 * len(won)


def test_a_fence_and_a_buyer_in_the_same_instant_do_not_miss_each_other(
    committed_db: None, world: World, now: datetime
) -> None:
    """R-B6 (api): a buyer who waited for the fence's lock sees the fence."""
    node = admit_node(world.provider, now=now)
    units = capacity.list_free_units(node=node, now=now)
    outcome: list[object] = []

    def buy() -> None:
        try:
            outcome.append(hold(units, "lse_late", now))
        except DomainError as error:
            outcome.append(error)
        finally:
            connection.close()

    buyer = threading.Thread(target=buy)
    with transaction.atomic():
        move_node(
            node=node, expected=NodeState.ADMITTED, to=NodeState.FENCED, actor=EXCHANGE, now=now
        )
        buyer.start()
        buyer.join(timeout=0.5)
        assert buyer.is_alive()
    buyer.join(timeout=20)

    assert isinstance(outcome[0], capacity.NodeNotPlaceable)
    assert not Hold.objects.exists()
