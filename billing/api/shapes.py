"""Inputs and outputs of the billing endpoints. Amounts are micro-units as strings of digits."""

from typing import Any

from rest_framework import serializers

from billing.domain.states import TopUpState, UsageState
from billing.models import Entry, TopUp, UsageRecord
from billing.selectors import LedgerLine, Recomputed
from fabric.accounts.api import MicrosField, PageQuery


class WalletOutput(serializers.Serializer[Any]):
    """Where the organisation's money is; the parts add up to the total."""

    organisation = serializers.CharField()
    currency = serializers.CharField()
    available_micros = serializers.CharField(help_text="Free for orders.")
    held_micros = serializers.CharField(help_text="In escrows, promised to no window yet.")
    pending_micros = serializers.CharField(help_text="Promised to windows, not settled.")
    in_dispute_micros = serializers.CharField(help_text="Promised to disputed windows.")
    total_micros = serializers.CharField()
    as_of = serializers.DateTimeField()


class BalanceTopUpInput(serializers.Serializer[Any]):
    """How much to add to the balance."""

    amount_micros = MicrosField()


class TopUpOutput(serializers.Serializer[Any]):
    """A card payment into the balance; pay it at `checkout_url` while it is `created`."""

    id = serializers.CharField()
    amount_micros = serializers.CharField()
    state = serializers.ChoiceField(choices=TopUpState.choices())
    checkout_url = serializers.CharField(allow_blank=True)
    created_at = serializers.DateTimeField()
    paid_at = serializers.DateTimeField(allow_null=True)


class EntryOutput(serializers.Serializer[Any]):
    """One leg on an account of yours: debits take away and are positive, credits negative."""

    id = serializers.IntegerField()
    account = serializers.CharField()
    amount_micros = serializers.CharField()
    transfer = serializers.IntegerField()
    kind = serializers.CharField()
    usage_record = serializers.CharField(allow_null=True)
    effective_at = serializers.DateTimeField()
    booked_at = serializers.DateTimeField()


class LedgerLegOutput(serializers.Serializer[Any]):
    """An account and what a transfer did to it."""

    account = serializers.CharField()
    amount_micros = serializers.CharField()


class LedgerLineOutput(serializers.Serializer[Any]):
    """A movement of an agreement's money, or a promise of one and what became of it."""

    transfer = serializers.IntegerField()
    kind = serializers.CharField()
    phase = serializers.CharField()
    state = serializers.CharField()
    amount_micros = serializers.CharField()
    usage_record = serializers.CharField(allow_null=True)
    effective_at = serializers.DateTimeField()
    legs = LedgerLegOutput(many=True)


class UsageQuery(PageQuery):
    """Which usage records to list."""

    agreement = serializers.CharField(required=False, max_length=40)
    state = serializers.ChoiceField(choices=UsageState.choices(), required=False)


class UsageRecordOutput(serializers.Serializer[Any]):
    """A metered window: the one row that both the charge and the pay come from."""

    id = serializers.CharField()
    agreement = serializers.CharField()
    window_index = serializers.IntegerField()
    starts_at = serializers.DateTimeField()
    ends_at = serializers.DateTimeField()
    counter_start = serializers.IntegerField()
    counter_end = serializers.IntegerField()
    amount_micros = serializers.CharField()
    state = serializers.ChoiceField(choices=UsageState.choices())
    stands_bps = serializers.IntegerField()
    ruled_micros = serializers.CharField()
    disputable_until = serializers.DateTimeField()
    settled_at = serializers.DateTimeField(allow_null=True)
    meter_party = serializers.CharField()
    evidence = serializers.CharField(help_text="SHA-256 of the signed batch.")
    terms_digest = serializers.CharField()
    parameters_digest = serializers.CharField()


class ShareOutput(serializers.Serializer[Any]):
    """Who receives which part of what stands."""

    name = serializers.CharField()
    bps = serializers.IntegerField()
    amount_micros = serializers.CharField()


class UsagePriceOutput(serializers.Serializer[Any]):
    """A price, per unit."""

    amount_micros = serializers.CharField()
    per_quantity = serializers.CharField()
    meter_unit = serializers.CharField()


class UsageRecordDetailOutput(UsageRecordOutput):
    """A usage record with all that is needed to work its amount out again."""

    price = UsagePriceOutput()
    units = serializers.IntegerField()
    recomputed_micros = serializers.CharField()
    shares = ShareOutput(many=True)


class EarningsOutput(serializers.Serializer[Any]):
    """The provider's own share of its lines, by state."""

    organisation = serializers.CharField()
    currency = serializers.CharField()
    pending_micros = serializers.CharField(help_text="Open to dispute.")
    disputed_micros = serializers.CharField(help_text="Held until ruled.")
    earned_micros = serializers.CharField(help_text="Settled.")
    as_of = serializers.DateTimeField()


def show_top_up(top_up: TopUp) -> dict[str, Any]:
    """Return a top-up as `TopUpOutput`; the address only while it can be paid."""
    return {
        "id": top_up.public_id,
        "amount_micros": str(top_up.amount_micros),
        "state": top_up.state,
        "checkout_url": top_up.checkout_url if top_up.state == TopUpState.CREATED else "",
        "created_at": top_up.created_at,
        "paid_at": top_up.paid_at,
    }


def show_entry(entry: Entry) -> dict[str, Any]:
    """Return a leg as `EntryOutput`; its account, transfer and record were fetched with it."""
    record = entry.transfer.record
    return {
        "id": entry.pk,
        "account": entry.account.code,
        "amount_micros": str(entry.amount_micros),
        "transfer": entry.transfer_id,
        "kind": entry.transfer.kind,
        "usage_record": record.public_id if record else None,
        "effective_at": entry.transfer.effective_at,
        "booked_at": entry.transfer.booked_at,
    }


def show_ledger_line(line: LedgerLine) -> dict[str, Any]:
    """Return a line as `LedgerLineOutput`."""
    return {
        "transfer": line.transfer,
        "kind": line.kind,
        "phase": line.phase,
        "state": line.state,
        "amount_micros": str(line.amount_micros),
        "usage_record": line.record,
        "effective_at": line.at,
        "legs": [{"account": code, "amount_micros": str(amount)} for code, amount in line.legs],
    }


def show_usage_record(record: UsageRecord) -> dict[str, Any]:
    """Return a record as `UsageRecordOutput`."""
    return {
        "id": record.public_id,
        "agreement": record.agreement.public_id,
        "window_index": record.window_index,
        "starts_at": record.starts_at,
        "ends_at": record.ends_at,
        "counter_start": record.counter_start,
        "counter_end": record.counter_end,
        "amount_micros": str(record.amount_micros),
        "state": record.state,
        "stands_bps": record.stands_bps,
        "ruled_micros": str(record.ruled_micros),
        "disputable_until": record.disputable_until,
        "settled_at": record.settled_at,
        "meter_party": record.meter_party,
        "evidence": record.evidence,
        "terms_digest": bytes(record.terms.digest).hex(),
        "parameters_digest": bytes(record.terms.parameters_digest).hex(),
    }


def show_usage_detail(record: UsageRecord, worked_out: Recomputed) -> dict[str, Any]:
    """Return a record as `UsageRecordDetailOutput`."""
    return {
        **show_usage_record(record),
        "price": {
            "amount_micros": str(record.terms.price_micros),
            "per_quantity": str(record.terms.per_quantity),
            "meter_unit": record.terms.meter_unit,
        },
        "units": record.terms.units,
        "recomputed_micros": str(worked_out.amount),
        "shares": [
            {"name": share.name, "bps": share.bps, "amount_micros": str(share.micros)}
            for share in worked_out.shares
        ],
    }
