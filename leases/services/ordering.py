"""Placing an order: money, units, terms and lease come into being together, or none of them."""

from datetime import datetime, timedelta
from typing import Any

from django.db import IntegrityError, transaction

from billing.services import agreements, escrow
from fabric.accounts.domain.actors import Actor
from fabric.accounts.domain.roles import Right
from fabric.accounts.models import Project
from fabric.journal.services import parameters
from fabric.lib.errors import DomainError, FieldError, InvalidInput, NotAllowed, NotVisible
from fabric.lib.ids import uuid7
from leases import selectors
from leases.domain.states import LeaseState
from leases.domain.windows import wanted_windows
from leases.models import Lease, LeaseTransition, LeaseUnit, Order
from leases.services.budgets import require_budget
from leases.services.order_checks import Wish, check_figures, require_orderable
from leases.services.reserving import Rules, reserve_ahead, rules_of
from leases.services.transitions import tell
from listings.domain.bodies import price_micros
from listings.models import Listing
from listings.selectors import promise_of
from providers.models import Hold, Unit
from providers.services import capacity

TRIES_FOR_UNITS = 3


class UnitsNotFree(DomainError):
    """Fewer units are free than were asked for; `metadata` names the nearest alternatives."""

    code = "UNITS_NOT_FREE"
    retryable = True


class OrderKeyReused(DomainError):
    """The key was used for another order."""

    code = "IDEMPOTENCY_KEY_REUSED"
    status = 422


def place_order(
    *,
    actor: Actor,
    project: Project,
    listing: Listing,
    unit_count: int,
    budget_micros: int,
    accepts_interruption: bool,
    accepts_unisolated: bool,
    price_cap_micros_per_hour: int,
    max_seconds: int,
    now: datetime,
    key: str,
) -> Order:
    """Place an order and return it with its lease; safe to repeat under the same key.

    In one transaction: wallet to escrow, holds on exact units, agreement and terms, the lease, the
    first windows' reservations, and what the node is told. Whatever is refused leaves nothing.
    """
    actor.require(Right.ORDER)
    _require_project(actor=actor, project=project)
    wish = Wish(
        project=project.public_id,
        listing=listing.public_id,
        unit_count=unit_count,
        budget_micros=budget_micros,
        accepts_interruption=accepts_interruption,
        accepts_unisolated=accepts_unisolated,
        price_cap_micros_per_hour=price_cap_micros_per_hour,
        max_seconds=max_seconds,
    )
    check_figures(wish, key)
    earlier = _find_earlier(project=project, key=key, wish=wish)
    if earlier is not None:
        return earlier
    try:
        with transaction.atomic():
            return _place(actor=actor, project=project, wish=wish, key=key, now=now)
    except IntegrityError:
        # The same order was placed beside this one and committed first: it is the answer.
        earlier = _find_earlier(project=project, key=key, wish=wish)
        if earlier is None:
            raise
        return earlier


def _place(*, actor: Actor, project: Project, wish: Wish, key: str, now: datetime) -> Order:
    listing = Listing.objects.select_related(
        "provider__organisation", "node", "current_revision"
    ).get(pk=Listing.key_from(wish.listing))
    revision = require_orderable(project=project, listing=listing, wish=wish)
    require_budget(project=project, amount_micros=wish.budget_micros)
    order = Order.objects.create(
        organisation=project.organisation,
        project=project,
        listing=listing,
        revision=revision,
        unit_count=wish.unit_count,
        budget_micros=wish.budget_micros,
        price_cap_micros_per_hour=wish.price_cap_micros_per_hour,
        accepts_interruption=wish.accepts_interruption,
        accepts_unisolated=wish.accepts_unisolated,
        max_seconds=wish.max_seconds,
        idempotency_key=key,
        request_hash=wish.digest(),
        placed_by=actor.id,
        placed_at=now,
    )
    lease_key = uuid7()
    units, holds = _take_units(
        listing=listing, wish=wish, holder=Lease(id=lease_key).public_id, now=now
    )
    agreement, _ = agreements.open_agreement(
        buyer=project.organisation,
        provider=listing.provider.organisation,
        body=_terms_body(actor=actor, order=order, units=units, now=now),
        price_micros=price_micros(revision.body),
        per_quantity=revision.body["price"]["per_quantity"],
        meter_unit=revision.body["price"]["meter_unit"],
        units=wish.unit_count,
        now=now,
    )
    escrow.fund(
        agreement=agreement, amount_micros=wish.budget_micros, key=f"order:{order.id}", now=now
    )
    lease = Lease.objects.create(
        id=lease_key,
        order=order,
        agreement=agreement,
        organisation=project.organisation,
        project=project,
        provider=listing.provider,
        node=listing.node,
        revision=revision,
        isolation=listing.node.isolation,
        funded_micros=wish.budget_micros,
        created_at=now,
        ends_at=now + timedelta(seconds=wish.max_seconds),
        due_at=now,
        probe_due_at=now,
    )
    LeaseUnit.objects.bulk_create(
        LeaseUnit(lease=lease, unit=unit, hold=hold)
        for unit, hold in zip(units, holds, strict=True)
    )
    _begin(lease=lease, actor=actor, now=now)
    order.lease = lease
    return order


def _begin(*, lease: Lease, actor: Actor, now: datetime) -> None:
    """Reserve the first windows, tell the node, and write down that the lease exists."""
    rules = rules_of(lease)
    reserve_ahead(lease=lease, rules=rules, now=now)
    if lease.paid_until is None:
        raise _budget_too_small(rules)
    LeaseTransition.objects.create(
        lease=lease, to_state=LeaseState.PROVISIONING, actor=actor.id, at=now
    )
    tell(
        lease=lease,
        kind="lease.was_ordered",
        actor=actor,
        now=now,
        data={"order": lease.order.public_id, "units": lease.order.unit_count},
    )


def _require_project(*, actor: Actor, project: Project) -> None:
    if project.organisation_id != actor.organisation_id:
        raise NotVisible(f"There is no project {project.public_id}.")
    if actor.project_id is not None and actor.project_id != project.pk:
        raise NotAllowed("This key orders for its own project only.")


def _find_earlier(*, project: Project, key: str, wish: Wish) -> Order | None:
    order = (
        Order.objects.filter(organisation=project.organisation_id, idempotency_key=key)
        .select_related("lease")
        .first()
    )
    if order is not None and bytes(order.request_hash) != wish.digest():
        raise OrderKeyReused(
            "This key already placed another order.", suggestion="Use a new key for a new order."
        )
    return order


def _take_units(
    *, listing: Listing, wish: Wish, holder: str, now: datetime
) -> tuple[list[Unit], list[Hold]]:
    """Hold exact units; when somebody else is faster, look again before giving up."""
    _, rules = parameters.get_commercial(now=now)
    first_windows = wanted_windows(
        now=now,
        not_before=now,
        not_after=now + timedelta(seconds=wish.max_seconds),
        window_seconds=rules.window_seconds,
        ahead=rules.reserve_ahead_windows,
    )
    until = first_windows[-1].ends_at if first_windows else now + timedelta(seconds=1)
    for _ in range(TRIES_FOR_UNITS):
        free = capacity.list_free_units(node=listing.node, now=now)
        if len(free) < wish.unit_count:
            break
        units = free[: wish.unit_count]
        try:
            holds = capacity.place_holds(
                units=units,
                until=until,
                kind=Hold.Kind.LEASE,
                holder=holder,
                now=now,
            )
        except capacity.UnitAlreadyHeld:
            continue
        return units, holds
    nearest = selectors.nearest_listings(listing, unit_count=wish.unit_count, now=now)
    raise UnitsNotFree(
        "The units of this listing are taken.",
        suggestion=(
            f"The nearest free: {', '.join(other.title for other in nearest)}."
            if nearest
            else "Nothing of this class is free now; try again later."
        ),
        metadata={"alternatives": [selectors.alternative(other) for other in nearest]},
    )


def _terms_body(*, actor: Actor, order: Order, units: list[Unit], now: datetime) -> dict[str, Any]:
    """Return what both sides agree to; the provider's acceptance is the revision it published."""
    revision = order.revision
    digest = bytes(revision.digest).hex()
    return {
        "v": 1,
        "order": order.public_id,
        "listing": revision.listing.public_id,
        "revision": {"id": revision.public_id, "number": revision.number, "digest": digest},
        "kind": revision.body["kind"],
        "promise": {**promise_of(revision), "unit_count": order.unit_count},
        "units": [unit.public_id for unit in units],
        "isolation": order.listing.node.isolation,
        "term_seconds": order.max_seconds,
        "accepts_interruption": order.accepts_interruption,
        "accepts_unisolated": order.accepts_unisolated,
        "rules": {"another_class_or_a_lost_device": "the window's line is contested by itself"},
        "acceptance": {
            "buyer": {"by": actor.id, "at": now.isoformat()},
            "provider": {
                "by": revision.created_by,
                "at": revision.created_at.isoformat(),
                "digest": digest,
            },
        },
    }


def _budget_too_small(rules: Rules) -> InvalidInput:
    second = max(1, rules.terms.rate.line_amount(0, 1))
    return InvalidInput(
        "The budget does not pay for one second.",
        errors=(FieldError("budget_micros", "too small", f"at least {second:,} micro-units"),),
    )
