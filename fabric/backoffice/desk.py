"""What waits for an operator, and whether the books balance: page-shaped reads."""

from dataclasses import dataclass
from datetime import datetime

from django.db.models import BigIntegerField, Count, F, Min, Q, Sum
from django.db.models.functions import Coalesce

from billing.domain.states import UsageState
from billing.models import Account, Entry, StripeEvent, UsageRecord
from leases.domain.states import DisputeState, StreamState
from leases.models import Dispute, Stream
from providers.domain.nodes import NodeState
from providers.models import Node


@dataclass(frozen=True)
class Queue:
    """Things of one kind that wait: how many, since when, and where to work them off."""

    label: str
    count: int
    oldest: datetime | None
    href: str


@dataclass(frozen=True)
class Desk:
    """An operator's front page."""

    as_of: datetime
    queues: list[Queue]
    trial: "TrialBalance"


@dataclass(frozen=True)
class TrialLine:
    """All accounts of one kind together, in micro-units."""

    kind: str
    accounts: int
    debits_posted: int
    credits_posted: int
    debits_pending: int
    credits_pending: int

    @property
    def balance(self) -> int:
        """Posted credits less posted debits."""
        return self.credits_posted - self.debits_posted


@dataclass(frozen=True)
class TrialBalance:
    """The whole ledger by kind of account, with what must be nothing."""

    as_of: datetime
    lines: list[TrialLine]
    entries_sum: int
    drifting: int

    @property
    def total(self) -> TrialLine:
        """The sum of all lines: its debits equal its credits, posted and pending alike."""
        return TrialLine(
            kind="all",
            accounts=sum(line.accounts for line in self.lines),
            debits_posted=sum(line.debits_posted for line in self.lines),
            credits_posted=sum(line.credits_posted for line in self.lines),
            debits_pending=sum(line.debits_pending for line in self.lines),
            credits_pending=sum(line.credits_pending for line in self.lines),
        )

    @property
    def balances(self) -> bool:
        """Whether everything that must be nothing is nothing."""
        return self.total.balance == 0 and self.entries_sum == 0 and self.drifting == 0


def read_trial_balance(*, now: datetime) -> TrialBalance:
    """Sum the ledger two ways, by counters and by entries, and count accounts that disagree."""
    rows = (
        Account.objects.order_by("kind")
        .values("kind")
        .annotate(
            accounts=Count("pk"),
            debits_posted=_sum("debits_posted"),
            credits_posted=_sum("credits_posted"),
            debits_pending=_sum("debits_pending"),
            credits_pending=_sum("credits_pending"),
        )
    )
    entries = Entry.objects.aggregate(total=_sum("amount_micros"))["total"]
    drifting = (
        Account.objects.annotate(
            from_entries=Coalesce(Sum("entries__amount_micros"), 0, output_field=BigIntegerField())
        )
        .exclude(from_entries=F("debits_posted") - F("credits_posted"))
        .count()
    )
    return TrialBalance(
        as_of=now,
        lines=[TrialLine(**row) for row in rows],
        entries_sum=int(entries),
        drifting=drifting,
    )


def read_desk(*, now: datetime) -> Desk:
    """Return the queues that need an operator, and the trial balance."""
    disputes = Dispute.objects.filter(state=DisputeState.OPEN).aggregate(
        n=Count("pk"), oldest=Min("opened_at")
    )
    overdue = UsageRecord.objects.filter(
        state=UsageState.PENDING, disputable_until__lt=now
    ).aggregate(n=Count("pk"), oldest=Min("disputable_until"))
    failed = StripeEvent.objects.filter(processed_at__isnull=True).aggregate(
        n=Count("pk", filter=~Q(failure="")), oldest=Min("received_at", filter=~Q(failure=""))
    )
    aside = UsageRecord.objects.filter(quarantined_at__isnull=False).aggregate(
        n=Count("pk"), oldest=Min("quarantined_at")
    )
    held = Node.objects.filter(state__in=[NodeState.HELD_BACK, NodeState.FENCED]).count()
    streams = Stream.objects.filter(state=StreamState.HELD).count()
    place = "/operator/"
    return Desk(
        as_of=now,
        queues=[
            Queue(
                "Disputes to rule on",
                disputes["n"],
                disputes["oldest"],
                f"{place}leases/dispute/?state__exact=open",
            ),
            Queue(
                "Lines past their dispute window, not settled",
                overdue["n"],
                overdue["oldest"],
                f"{place}billing/usagerecord/?state__exact=pending",
            ),
            Queue(
                "Lines set aside because settling them failed",
                aside["n"],
                aside["oldest"],
                f"{place}billing/usagerecord/?quarantined_at__isempty=0",
            ),
            Queue(
                "Stripe events that failed",
                failed["n"],
                failed["oldest"],
                f"{place}billing/stripeevent/",
            ),
            Queue(
                "Nodes held back or fenced",
                held,
                None,
                f"{place}providers/node/?state__exact=held_back",
            ),
            Queue(
                "Streams held for equivocation",
                streams,
                None,
                f"{place}leases/stream/?state__exact=held",
            ),
        ],
        trial=read_trial_balance(now=now),
    )


def _sum(field: str) -> Coalesce:
    return Coalesce(Sum(field), 0, output_field=BigIntegerField())
