"""Endpoints of disputes."""

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from fabric.accounts.api import ApiView, page_of
from fabric.accounts.domain.roles import Right
from leases.access import access_dispute, access_lease, access_reading
from leases.api.evidence_shapes import (
    DisputeInput,
    DisputeOutput,
    DisputeQuery,
    RulingInput,
    show_dispute,
)
from leases.models import Dispute
from leases.services import disputes


class DisputeList(ApiView):
    """Disputes of the caller's leases."""

    scopes = {"get": "leases:read", "post": "disputes:write"}
    rights = {"post": Right.DISPUTE}
    idempotency = "required"

    @extend_schema(
        operation_id="disputes_list", parameters=[DisputeQuery], responses=page_of(DisputeOutput)
    )
    def get(self, request: Request) -> Response:
        """List disputes, newest first."""
        query = self.read_query(DisputeQuery)
        rows = Dispute.objects.visible_to(self.actor).select_related(
            "lease", "reading__usage_record"
        )
        if "state" in query:
            rows = rows.filter(state=query["state"])
        if "lease" in query:
            rows = rows.filter(lease=access_lease(actor=self.actor, public_id=query["lease"]))
        return self.page(rows, order=("-opened_at", "-id"), represent=show_dispute)

    @extend_schema(
        operation_id="disputes_open", request=DisputeInput, responses={201: DisputeOutput}
    )
    def post(self, request: Request) -> Response:
        """Dispute a reading; its line is held and nothing else."""
        given = self.read_body(DisputeInput)
        reading = access_reading(actor=self.actor, public_id=given["reading"])
        dispute = disputes.open_dispute(
            actor=self.actor, reading=reading, statement=given["statement"], now=self.now
        )
        response = Response(show_dispute(dispute), status=201)
        response["Location"] = request.build_absolute_uri(f"{request.path}{dispute.public_id}/")
        return response


class DisputeDetail(ApiView):
    """One dispute."""

    scopes = {"get": "leases:read"}

    @extend_schema(operation_id="disputes_get", responses=DisputeOutput)
    def get(self, request: Request, dispute_id: str) -> Response:
        """Read a dispute and what became of it."""
        return Response(show_dispute(access_dispute(actor=self.actor, public_id=dispute_id)))


class DisputeWithdrawal(ApiView):
    """Taking a dispute back."""

    scopes = {"post": "disputes:write"}
    rights = {"post": Right.DISPUTE}

    @extend_schema(operation_id="disputes_withdraw", request=None, responses=DisputeOutput)
    def post(self, request: Request, dispute_id: str) -> Response:
        """Withdraw a dispute that your side opened; its line goes its way."""
        dispute = access_dispute(actor=self.actor, public_id=dispute_id)
        return Response(
            show_dispute(disputes.withdraw(actor=self.actor, dispute=dispute, now=self.now))
        )


class DisputeRuling(ApiView):
    """The exchange's decision; for signed-in operators, since no key rules."""

    scopes = {"post": "disputes:write"}
    is_for_operators = True

    @extend_schema(operation_id="disputes_rule", request=RulingInput, responses=DisputeOutput)
    def post(self, request: Request, dispute_id: str) -> Response:
        """Rule how many basis points of the disputed line stand."""
        dispute = access_dispute(actor=self.actor, public_id=dispute_id)
        given = self.read_body(RulingInput)
        ruled = disputes.rule(actor=self.actor, dispute=dispute, now=self.now, **given)
        return Response(show_dispute(ruled))
