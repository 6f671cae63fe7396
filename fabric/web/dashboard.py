"""A buyer's front page: what runs, what it costs, what differs from the promise, what is next."""

import uuid
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import OuterRef, Prefetch, Q, Subquery

from billing.models import Terms
from fabric.accounts.models import Organisation, Project
from leases.domain.consequences import Compared, summary_word
from leases.domain.states import CHARGING, LIVE, DisputeState
from leases.models import Dispute, Lease, Reading

_DAY = timedelta(hours=24)
MOST_LEASES, MOST_READINGS = 25, 10


@dataclass(frozen=True)
class LeaseRow:
    """A lease in the table."""

    lease: Lease
    rate_micros: int
    charging: bool
    unused_micros: int
    last_word: str


@dataclass(frozen=True)
class OffPromise:
    """A reading that is short or different in some field, and whether it can still be disputed."""

    reading: Reading
    word: str
    fields: list[str]
    disputable_until: datetime | None


@dataclass(frozen=True)
class Dashboard:
    """Everything the page prints."""

    as_of: datetime
    rows: list[LeaseRow]
    off_promise: list[OffPromise]
    disputes: list[Dispute]
    has_ordered: bool
    projects: list[Project]

    @property
    def rate_micros(self) -> int:
        """What all leases that charge cost per hour together."""
        return sum(row.rate_micros for row in self.rows if row.charging)

    @property
    def escrow_micros(self) -> int:
        """What is in escrow and not promised to a window."""
        return sum(row.unused_micros for row in self.rows)


def read_dashboard(*, organisation: Organisation, now: datetime) -> Dashboard:
    """Return the page's figures in six queries, however much runs."""
    newest = Terms.objects.order_by("-version")
    leases = list(
        Lease.objects.filter(organisation=organisation, state__in=LIVE)
        .select_related("agreement__escrow", "node", "provider", "project", "revision__listing")
        .prefetch_related(Prefetch("agreement__terms", queryset=newest))[:MOST_LEASES]
    )
    last = _read_last(leases)
    off = Q(conformity__contains=[{"verdict": "short"}]) | Q(
        conformity__contains=[{"verdict": "different"}]
    )
    worse = (
        Reading.objects.filter(off, lease__organisation=organisation, starts_at__gte=now - _DAY)
        .select_related("lease__node", "lease__revision__listing", "usage_record")
        .order_by("-starts_at")[:MOST_READINGS]
    )
    disputes = Dispute.objects.filter(
        lease__organisation=organisation, state=DisputeState.OPEN
    ).select_related("lease__revision__listing", "reading__usage_record")
    return Dashboard(
        as_of=now,
        rows=[_row(lease, last.get(lease.pk)) for lease in leases],
        off_promise=[_off_promise(reading, now) for reading in worse],
        disputes=list(disputes[:MOST_READINGS]),
        has_ordered=bool(leases) or Lease.objects.filter(organisation=organisation).exists(),
        projects=list(Project.objects.filter(organisation=organisation)[:MOST_LEASES]),
    )


def _read_last(leases: list[Lease]) -> dict[uuid.UUID, Reading]:
    """Return each lease's newest reading by one look into the index per lease."""
    newest = Reading.objects.filter(lease=OuterRef("pk")).order_by("-window_index").values("pk")[:1]
    keys = (
        Lease.objects.filter(pk__in=[lease.pk for lease in leases])
        .annotate(newest=Subquery(newest))
        .values("newest")
    )
    return {reading.lease_id: reading for reading in Reading.objects.filter(pk__in=keys)}


def _row(lease: Lease, last: Reading | None) -> LeaseRow:
    terms = next(iter(lease.agreement.terms.all()), None)
    rate = terms.price_micros * terms.units * 3600 // terms.per_quantity if terms else 0
    return LeaseRow(
        lease=lease,
        rate_micros=rate,
        charging=lease.state in CHARGING,
        unused_micros=lease.agreement.escrow.available_micros,
        last_word=summary_word(_verdicts(last)) if last else "",
    )


def _off_promise(reading: Reading, now: datetime) -> OffPromise:
    verdicts = _verdicts(reading)
    bad = [one.field for one in verdicts if one.verdict in {"short", "different"}]
    record = reading.usage_record
    until = record.disputable_until if record and record.disputable_until > now else None
    return OffPromise(reading, summary_word(verdicts), bad, until)


def _verdicts(reading: Reading) -> list[Compared]:
    return [Compared(row["field"], row["verdict"]) for row in reading.conformity]
