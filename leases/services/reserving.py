"""No money, no window: reserving the price of windows before they run."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from billing.models import Terms
from billing.services import escrow
from fabric.accounts.domain.actors import EXCHANGE
from fabric.journal.domain.parameters import CommercialParameters
from fabric.journal.services import parameters
from leases.domain.states import WindowState
from leases.domain.windows import Coverage, paid_until, wanted_windows
from leases.models import Lease, LeaseWindow
from leases.services.desired import tell_node
from leases.services.transitions import tell
from providers.services import capacity

WARN_WINDOWS = 4
"""The buyer is warned when the money covers fewer windows than this and the term goes on."""


@dataclass(frozen=True)
class Rules:
    """What a lease runs under: its terms and the commercial parameters they pinned."""

    terms: Terms
    commercial: CommercialParameters


def rules_of(lease: Lease) -> Rules:
    """Return the newest terms of a lease and the parameters pinned by them; costs queries."""
    terms = lease.agreement.terms.order_by("-version").first()
    if terms is None:
        raise RuntimeError(f"{lease.public_id} has no terms")
    pinned = parameters.get_pinned_commercial(digest=bytes(terms.parameters_digest))
    return Rules(terms=terms, commercial=pinned)


def lock_units(lease: Lease) -> None:
    """Lock a lease's devices: before any money, as an order does, so that neither waits in a ring."""
    capacity.lock_devices(lease.lease_units.values_list("unit__device_id", flat=True))


def reserve_ahead(*, lease: Lease, rules: Rules, now: datetime) -> None:
    """Reserve the running window and the next ones as far as term and money go.

    Extends holds and `paid_until` accordingly and tells the node. Safe to repeat: a window that
    is reserved in full is left as it is. The caller has locked the lease.
    """
    terms = rules.terms
    wanted = wanted_windows(
        now=now,
        not_before=now,
        not_after=lease.ends_at,
        window_seconds=terms.window_seconds,
        ahead=rules.commercial.reserve_ahead_windows,
    )
    if not wanted:
        return
    known = {
        row.window_index: row
        for row in lease.windows.filter(window_index__gte=wanted[0].window_index)
    }
    if all(_is_covered(part, known.get(part.window_index)) for part in wanted):
        return
    lock_units(lease)
    for part in wanted:
        row = known.get(part.window_index)
        if _is_covered(part, row):
            continue
        if not _reserve_part(lease=lease, terms=terms, part=part, row=row, now=now):
            break
    _keep_until_paid(lease=lease, terms=terms, now=now)


def _void_windows(*, lease: Lease, rows: list[LeaseWindow], now: datetime) -> None:
    """Give back what was reserved for windows that will not be metered."""
    for row in rows:
        escrow.void_reservation(agreement=lease.agreement, window_index=row.window_index, now=now)
    LeaseWindow.objects.filter(pk__in=[row.pk for row in rows]).update(state=WindowState.VOID)


def void_past_windows(*, lease: Lease, since: datetime, now: datetime) -> None:
    """Give back windows that began after `since` and went by while the workload was not ready."""
    passed = lease.windows.reserved().filter(starts_at__gte=since, ends_at__lte=now)
    _void_windows(lease=lease, rows=list(passed), now=now)


def void_all_windows(*, lease: Lease, now: datetime) -> None:
    """Give back everything reserved: the workload was never ready."""
    _void_windows(lease=lease, rows=list(lease.windows.reserved()), now=now)


def void_windows_from(*, lease: Lease, at: datetime, now: datetime) -> None:
    """Give back windows that begin at or after `at`: the lease does not run in them."""
    later = lease.windows.reserved().filter(starts_at__gte=at)
    _void_windows(lease=lease, rows=list(later), now=now)


def warn_if_low(*, lease: Lease, rules: Rules, now: datetime) -> None:
    """Warn once when the money ends well before the term does; a top-up re-arms the warning."""
    if lease.low_funds_at is not None or lease.paid_until is None:
        return
    seconds = escrow.seconds_affordable(agreement=lease.agreement, terms=rules.terms)
    reaches = max(lease.paid_until, now) + timedelta(seconds=min(seconds, 10**8))
    if reaches >= lease.ends_at or (
        reaches - now >= timedelta(seconds=WARN_WINDOWS * rules.terms.window_seconds)
    ):
        return
    Lease.objects.filter(pk=lease.pk).update(low_funds_at=now)
    lease.low_funds_at = now
    tell(
        lease=lease,
        kind="lease.ran_low",
        actor=EXCHANGE,
        now=now,
        data={"paid_for_until": reaches.isoformat()},
    )


def _is_covered(part: Coverage, row: LeaseWindow | None) -> bool:
    if row is None or row.state == WindowState.VOID:
        return False
    return row.state == WindowState.METERED or row.ends_at >= part.ends_at


def _reserve_part(
    *, lease: Lease, terms: Terms, part: Coverage, row: LeaseWindow | None, now: datetime
) -> bool:
    """Reserve one window, or as much of it as the money reaches; return whether in full.

    A window that was reserved short, where the money ended, is enlarged when there is more.
    """
    agreement = lease.agreement
    affordable = escrow.seconds_affordable(agreement=agreement, terms=terms)
    if affordable <= 0:
        return False
    already = row.coverage if row is not None and row.state == WindowState.RESERVED else None
    wanted = (
        part if already is None else Coverage(part.window_index, already.starts_at, part.ends_at)
    )
    seconds = min(wanted.seconds, affordable + (0 if already is None else already.seconds))
    try:
        escrow.reserve_window(
            agreement=agreement,
            terms=terms,
            window_index=part.window_index,
            max_ready_seconds=seconds,
            now=now,
        )
    except escrow.EscrowExhausted:
        # An enlarged line can round up to one micro-unit more than both of its parts.
        return False
    covered = wanted.shortened_to(seconds)
    LeaseWindow.objects.update_or_create(
        lease=lease,
        window_index=part.window_index,
        defaults={
            "starts_at": covered.starts_at,
            "ends_at": covered.ends_at,
            "state": WindowState.RESERVED,
        },
    )
    return seconds == wanted.seconds


def _keep_until_paid(*, lease: Lease, terms: Terms, now: datetime) -> None:
    covered = [row.coverage for row in lease.windows.reserved().filter(ends_at__gt=now)]
    until = paid_until(covered, now=now)
    if until is None or until == lease.paid_until:
        return
    capacity.extend_holds(holder=lease.public_id, until=until, now=now)
    Lease.objects.filter(pk=lease.pk).update(paid_until=until)
    lease.paid_until = until
    tell_node(lease=lease, terms=terms, now=now)
