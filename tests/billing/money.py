"""How tests put money where they need it, through the services."""

from datetime import UTC, datetime, timedelta

from django.db.models import Sum

from billing.domain.accounts import AccountKind, earned_code
from billing.models import Account, Agreement, Entry, Terms, Transfer, UsageRecord
from billing.services import agreements, escrow, usage, wallet
from fabric.accounts.models import Organisation
from fabric.lib.clock import window_bounds
from tests.world import World

EVIDENCE = "ab" * 32


def give(organisation: Organisation, amount_micros: int, *, key: str, now: datetime) -> None:
    """Let card money arrive in an organisation's wallet."""
    wallet.credit_cash(organisation=organisation, amount_micros=amount_micros, key=key, now=now)


def agree(
    world: World, now: datetime, *, price: int = 3_600_000, per: int = 3_600, units: int = 1
) -> tuple[Agreement, Terms]:
    """Open an agreement between Meridian and Northwind; by default a dollar per 1,000 seconds."""
    return agreements.open_agreement(
        buyer=world.meridian,
        provider=world.northwind,
        body={"revision": "00" * 32},
        price_micros=price,
        per_quantity=per,
        meter_unit="accelerator_second",
        units=units,
        now=now,
    )


def funded(
    world: World, now: datetime, amount_micros: int, *, price: int = 3_600_000
) -> tuple[Agreement, Terms]:
    """Open an agreement whose escrow holds exactly this much, and leave the wallet empty."""
    give(world.meridian, amount_micros, key=f"given:{amount_micros}:{now}", now=now)
    agreement, terms = agree(world, now, price=price)
    escrow.fund(agreement=agreement, amount_micros=amount_micros, key="order", now=now)
    return agreement, terms


def record(
    agreement: Agreement,
    terms: Terms,
    window_index: int,
    ready_seconds: int,
    *,
    evidence: str = EVIDENCE,
) -> UsageRecord:
    """Record a whole window's reading as it arrives at the window's end."""
    starts_at, ends_at = window_bounds(window_index, window_seconds=terms.window_seconds)
    return usage.record_usage(
        agreement=agreement,
        terms=terms,
        window_index=window_index,
        starts_at=starts_at,
        ends_at=ends_at,
        ready_seconds=ready_seconds,
        evidence=evidence,
        meter_party=agreement.provider.public_id,
        now=ends_at,
    )


def first_window(terms: Terms, now: datetime) -> int:
    """Return the index of the window that begins at or holds `now`."""
    return int(now.timestamp()) // terms.window_seconds


def after_disputes(usage_record: UsageRecord) -> datetime:
    """Return an instant at which the line can no longer be disputed."""
    return usage_record.disputable_until + timedelta(seconds=1)


def escrow_of(agreement: Agreement) -> Account:
    """Return the escrow account as it stands in the database."""
    return Account.objects.get(pk=agreement.escrow_id)


def earned_micros(organisation: Organisation) -> int:
    """Return what a provider has earned."""
    return Account.objects.get(code=earned_code(organisation.public_id)).balance_micros


def fees_micros() -> dict[str, int]:
    """Return what stands in the fee accounts, by share."""
    totals: dict[str, int] = {}
    for account in Account.objects.filter(kind=AccountKind.FEE):
        share = account.code.split(":")[1]
        totals[share] = totals.get(share, 0) + account.balance_micros
    return totals


def assert_books_balance() -> None:
    """Check the ledger from its rows: entries against zero, counters against transfers."""
    assert (Entry.objects.aggregate(total=Sum("amount_micros"))["total"] or 0) == 0
    for account in Account.objects.all():
        legs = [leg.amount_micros for leg in account.entries.all()]
        assert account.debits_posted == sum(leg for leg in legs if leg > 0), account
        assert account.credits_posted == -sum(leg for leg in legs if leg < 0), account
        pending = Transfer.objects.filter(phase="pending", resolutions__isnull=True)
        assert account.debits_pending == _total(pending.filter(debit_account=account)), account
        assert account.credits_pending == _total(pending.filter(credit_account=account)), account


def _total(transfers: "object") -> int:
    return int(transfers.aggregate(total=Sum("amount_micros"))["total"] or 0)  # type: ignore[attr-defined]


def at(text: str) -> datetime:
    """Read an instant as the scenario files write it."""
    return datetime.fromisoformat(text).astimezone(UTC)
