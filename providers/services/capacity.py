"""Taking and freeing units: who holds which slots of which device, and until when."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from uuid import UUID

from django.db import IntegrityError, models, transaction
from django.db.backends.postgresql.psycopg_any import DateTimeTZRange, errors
from django.db.models.functions import Greatest, Lower

from fabric.lib.errors import DomainError, WrongState
from providers.domain.nodes import NodeState
from providers.models import Device, Hold, Node, Unit

PLACEMENTS = frozenset({Hold.Kind.LEASE, Hold.Kind.RESERVATION, Hold.Kind.POOL})


class UnitAlreadyHeld(DomainError):
    """Somebody else took one of the units first."""

    code = "UNIT_ALREADY_HELD"
    status = 409
    retryable = True


class NodeNotPlaceable(WrongState):
    """The node is not admitted, so nothing new is placed on it."""

    code = "NODE_NOT_PLACEABLE"


def list_free_units(*, node: Node, now: datetime) -> list[Unit]:
    """Return the node's offered units that nobody holds now or later, in place order.

    A node that is not admitted has no free units. Reads the node's state anew.
    """
    held = Hold.objects.in_force(now=now).filter(
        device=models.OuterRef("device"), slots__overlap=models.OuterRef("slots")
    )
    return list(
        Unit.objects.offered()
        .filter(~models.Exists(held), device__node=node, device__node__state=NodeState.ADMITTED)
        .select_related("device")
        .order_by("device__ordinal", "slots")
    )


def is_leased(*, node: Node, now: datetime) -> bool:
    """Tell whether a lease, or what is kept for one, stands on the node now or later."""
    holds = Hold.objects.in_force(now=now)
    return holds.filter(device__node=node, kind__in=PLACEMENTS).exists()


@transaction.atomic
def place_holds(
    *, units: Sequence[Unit], until: datetime, kind: str, holder: str, now: datetime
) -> list[Hold]:
    """Take all of `units` from `now` until `until`, or none of them.

    Devices are locked in key order before anything is inserted, so buyers of overlapping sets wait
    for each other instead of deadlocking; the exclusion constraint is the backstop. The node's
    state is read under that lock: a fence that took the lock first is seen. Raises
    `UnitAlreadyHeld` or, for a placement on a node that is not admitted, `NodeNotPlaceable`.
    """
    if not units or until <= now:
        raise ValueError("a hold takes at least one unit and ends after it begins")
    lock_devices(unit.device_id for unit in units)
    if kind in PLACEMENTS:
        _require_placeable(units)
    holds = [
        Hold(
            device_id=unit.device_id,
            slots=unit.slots,
            period=DateTimeTZRange(now, until, "[)"),
            kind=kind,
            holder=holder,
        )
        for unit in units
    ]
    try:
        with transaction.atomic():
            return Hold.objects.bulk_create(holds)
    except IntegrityError as error:
        raise _held_or_broken(error) from error


@transaction.atomic
def extend_holds(*, holder: str, until: datetime, now: datetime) -> list[Hold]:
    """Let `holder` keep its live holds until `until`; an earlier end than the present is ignored.

    Raises `UnitAlreadyHeld` where somebody else has the slots for part of that time, and
    `WrongState` where the holder has nothing left to extend.
    """
    live = Hold.objects.filter(holder=holder, live=True)
    lock_devices(live.values_list("device_id", flat=True))
    holds = list(live.order_by("pk"))
    if not holds:
        raise WrongState(f"{holder} holds no unit at {now:%Y-%m-%d %H:%M:%S} UTC.")
    try:
        with transaction.atomic():
            for hold in holds:
                if hold.period.upper < until:
                    hold.period = DateTimeTZRange(hold.period.lower, until, "[)")
                    hold.save(update_fields=["period"])
    except IntegrityError as error:
        raise _held_or_broken(error) from error
    return holds


def release_holds(*, holder: str, now: datetime) -> int:
    """Free everything `holder` holds; return how many holds that ended. Needs no lock."""
    ended = models.Func(
        Lower("period"),
        Greatest(Lower("period"), models.Value(now, output_field=models.DateTimeField())),
        function="tstzrange",
        output_field=Hold._meta.get_field("period"),
    )
    return Hold.objects.filter(holder=holder, live=True).update(live=False, period=ended)


def lock_devices(device_ids: Iterable[UUID]) -> None:
    """Lock devices in key order, so that two takers wait for each other and never deadlock.

    `no_key` because a hold's foreign key takes a key share on its device: a full lock would block
    the inserts of buyers who want other slots.
    """
    keys = set(device_ids)
    list(
        Device.objects.select_for_update(no_key=True)
        .filter(pk__in=keys)
        .order_by("pk")
        .values_list("pk", flat=True)
    )


def lock_node(node_id: UUID, *, skip_locked: bool = False) -> Node | None:
    """Lock a node after its devices, in the order everybody keeps; None if it is gone or skipped.

    Returns the row as it stands under the lock, with its provider's organisation.
    """
    lock_devices(Device.objects.filter(node=node_id).values_list("pk", flat=True))
    return (
        Node.objects.select_for_update(of=("self",), no_key=True, skip_locked=skip_locked)
        .select_related("provider__organisation", "hardware_class")
        .filter(pk=node_id)
        .first()
    )


def _require_placeable(units: Sequence[Unit]) -> None:
    nodes = Node.objects.filter(devices__in={unit.device_id for unit in units}).distinct()
    for node in nodes:
        if node.state != NodeState.ADMITTED:
            raise NodeNotPlaceable(f"{node.name} is {node.get_state_display()}; nothing is placed.")


def _held_or_broken(error: IntegrityError) -> Exception:
    if isinstance(error.__cause__, errors.ExclusionViolation):
        return UnitAlreadyHeld(
            "Another holder has one of these units for part of that time.",
            suggestion="Choose other units or try again later.",
        )
    return error
