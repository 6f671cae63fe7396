"""Endpoints of the balance, top-ups, the ledger, usage and earnings."""

from datetime import timedelta
from typing import Any

from django.conf import settings
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from billing.access import access_agreement, access_top_up, access_usage_record
from billing.api.shapes import (
    BalanceTopUpInput,
    EarningsOutput,
    EntryOutput,
    LedgerLineOutput,
    TopUpOutput,
    UsageQuery,
    UsageRecordDetailOutput,
    UsageRecordOutput,
    WalletOutput,
    show_entry,
    show_ledger_line,
    show_top_up,
    show_usage_detail,
    show_usage_record,
)
from billing.models import Account, Entry, TopUp, UsageRecord
from billing.selectors import escrow_transfers, ledger_line, recompute, wallet_state, with_legs
from billing.services import earnings, topups
from fabric.accounts.access import access_organisation
from fabric.accounts.api import ApiView, PageQuery, page_of
from fabric.accounts.domain.roles import Right


class WalletDetail(ApiView):
    """The organisation's balance."""

    scopes = {"get": "billing:read"}

    @extend_schema(operation_id="wallet_get", responses=WalletOutput)
    def get(self, request: Request) -> Response:
        """Read what is available, held in escrow, pending and in dispute."""
        organisation = access_organisation(actor=self.actor)
        state = wallet_state(organisation)
        return Response(
            {
                "organisation": organisation.public_id,
                "currency": settings.FABRIC_CURRENCY,
                "available_micros": str(state.available),
                "held_micros": str(state.held),
                "pending_micros": str(state.pending),
                "in_dispute_micros": str(state.in_dispute),
                "total_micros": str(state.total),
                "as_of": self.now,
            }
        )


class TopUpList(ApiView):
    """Card payments into the balance."""

    scopes = {"get": "billing:read", "post": "billing:write"}
    rights = {"post": Right.PAY}
    idempotency = "required"
    keep_answers = timedelta(days=30)
    is_transactional = False  # asks the card processor; the key makes the service repeatable

    @extend_schema(
        operation_id="top_ups_list", parameters=[PageQuery], responses=page_of(TopUpOutput)
    )
    def get(self, request: Request) -> Response:
        """List the organisation's top-ups, newest first."""
        self.read_query(PageQuery)
        return self.page(
            TopUp.objects.visible_to(self.actor),
            order=("-created_at", "-id"),
            represent=show_top_up,
        )

    @extend_schema(
        operation_id="top_ups_create", request=BalanceTopUpInput, responses={201: TopUpOutput}
    )
    def post(self, request: Request) -> Response:
        """Open a payment page; the balance rises when its payment has cleared."""
        given = self.read_body(BalanceTopUpInput)
        top_up = topups.start_top_up(
            actor=self.actor,
            organisation=access_organisation(actor=self.actor),
            amount_micros=given["amount_micros"],
            key=self.idempotency_key,
            now=self.now,
        )
        location = request.build_absolute_uri(f"{request.path}{top_up.public_id}/")
        return Response(show_top_up(top_up), status=201, headers={"Location": location})


class TopUpDetail(ApiView):
    """One card payment into the balance."""

    scopes = {"get": "billing:read"}

    @extend_schema(operation_id="top_ups_get", responses=TopUpOutput)
    def get(self, request: Request, top_up_id: str) -> Response:
        """Read where a top-up stands."""
        return Response(show_top_up(access_top_up(actor=self.actor, public_id=top_up_id)))


class EntryList(ApiView):
    """The ledger of the organisation's own accounts."""

    scopes = {"get": "billing:read"}

    @extend_schema(
        operation_id="ledger_entries_list", parameters=[PageQuery], responses=page_of(EntryOutput)
    )
    def get(self, request: Request) -> Response:
        """List the legs on your wallet, escrows and earnings, newest first."""
        self.read_query(PageQuery)
        entries = Entry.objects.filter(
            account__in=Account.objects.visible_to(self.actor)
        ).select_related("account", "transfer__record")
        return self.page(entries, order=("-id",), represent=show_entry)


class AgreementLedgerLines(ApiView):
    """The money of one agreement."""

    scopes = {"get": "billing:read"}

    @extend_schema(
        operation_id="agreement_ledger_lines_list",
        parameters=[PageQuery],
        responses=page_of(LedgerLineOutput),
    )
    def get(self, request: Request, agreement_id: str) -> Response:
        """List what was funded, reserved, charged and returned, newest first.

        A provider sees reservations and charges; how the buyer funds the escrow is the buyer's.
        """
        self.read_query(PageQuery)
        agreement = access_agreement(actor=self.actor, public_id=agreement_id)
        transfers = escrow_transfers(agreement)
        if self.actor.organisation_id == agreement.provider_id:
            transfers = transfers.filter(kind__in=("reserve", "void", "settle"))
        return self.page(
            with_legs(transfers),
            order=("-id",),
            represent=lambda transfer: show_ledger_line(ledger_line(transfer)),
        )


class UsageRecordList(ApiView):
    """Metered windows of the organisation's agreements, as buyer and as provider."""

    scopes = {"get": "billing:read"}

    @extend_schema(
        operation_id="usage_records_list",
        parameters=[UsageQuery],
        responses=page_of(UsageRecordOutput),
    )
    def get(self, request: Request) -> Response:
        """List usage records, newest first."""
        query = self.read_query(UsageQuery)
        filters: dict[str, Any] = {}
        if "agreement" in query:
            filters["agreement"] = access_agreement(actor=self.actor, public_id=query["agreement"])
        if "state" in query:
            filters["state"] = query["state"]
        records = UsageRecord.objects.visible_to(self.actor).filter(**filters)
        return self.page(
            records.select_related("agreement", "terms"),
            order=("-recorded_at", "-id"),
            represent=show_usage_record,
        )


class UsageRecordDetail(ApiView):
    """One metered window."""

    scopes = {"get": "billing:read"}

    @extend_schema(operation_id="usage_records_get", responses=UsageRecordDetailOutput)
    def get(self, request: Request, usage_record_id: str) -> Response:
        """Read a usage record with what it takes to work its amount out again."""
        record = access_usage_record(actor=self.actor, public_id=usage_record_id)
        return Response(show_usage_detail(record, recompute(record)))


class EarningsDetail(ApiView):
    """What the organisation earns as a provider."""

    scopes = {"get": "provider:read"}

    @extend_schema(operation_id="earnings_get", responses=EarningsOutput)
    def get(self, request: Request) -> Response:
        """Read the provider's share of pending, disputed and settled lines."""
        organisation = access_organisation(actor=self.actor)
        state = earnings.by_state(organisation)
        return Response(
            {
                "organisation": organisation.public_id,
                "currency": settings.FABRIC_CURRENCY,
                "pending_micros": str(state.pending),
                "disputed_micros": str(state.disputed),
                "earned_micros": str(state.earned),
                "as_of": self.now,
            }
        )
