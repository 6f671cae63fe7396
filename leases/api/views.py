"""Endpoints of orders and leases; each write is one call of the service that the page calls too."""

from datetime import timedelta
from functools import partial
from typing import Any
from uuid import uuid4

from django.http import HttpResponse
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from billing.selectors import ledger_lines
from fabric.accounts.access import access_project
from fabric.accounts.api import ApiView, PageQuery, page_of
from fabric.accounts.api.schema import EnvelopeOutput
from fabric.accounts.domain.roles import Right
from fabric.accounts.models import Project
from fabric.journal.models import Event
from fabric.lib.errors import FieldError, InvalidInput
from fabric_protocol import payloads
from leases.access import access_batch, access_lease, access_order, access_reading, side_of
from leases.api.evidence_shapes import (
    BatchOutput,
    EventOutput,
    LinesOutput,
    ReadingOutput,
    WitnessOutput,
    show_batch,
    show_reading,
    show_witness,
)
from leases.api.shapes import (
    LeaseDetailOutput,
    LeaseOutput,
    LeaseQuery,
    OrderInput,
    OrderOutput,
    TokenOutput,
    TopUpInput,
    show_lease,
    show_lease_detail,
    show_order,
)
from leases.domain.states import Side
from leases.models import Batch, Lease, Order, Reading, WitnessReading
from leases.selectors import money_of
from leases.services import lifecycle
from leases.services.access_tokens import show_token
from leases.services.ordering import place_order
from listings.access import read_listing

A_MONTH = timedelta(days=30)
ENVELOPE = payloads.ENVELOPE_CONTENT_TYPE


class OrderList(ApiView):
    """Orders."""

    scopes = {"get": "orders:read", "post": "orders:write"}
    rights = {"post": Right.ORDER}
    idempotency = "required"
    keep_answers = A_MONTH
    allows_validate_only = True

    @extend_schema(
        operation_id="orders_list", parameters=[PageQuery], responses=page_of(OrderOutput)
    )
    def get(self, request: Request) -> Response:
        """List the orders this key may see, newest first."""
        self.read_query(PageQuery)
        orders = Order.objects.visible_to(self.actor).select_related(
            "lease", "listing", "revision", "project"
        )
        return self.page(orders, order=("-placed_at", "-id"), represent=show_order)

    @extend_schema(operation_id="orders_place", request=OrderInput, responses={201: OrderOutput})
    def post(self, request: Request) -> Response:
        """Place an order: the balance funds its escrow and the lease begins, or nothing happens."""
        given = self.read_body(OrderInput)
        listing = read_listing(actor=self.actor, public_id=given.pop("listing"))
        project = self._project(given.pop("project", None))
        order = place_order(
            actor=self.actor,
            project=project,
            listing=listing,
            key=self.idempotency_key or f"validate-only-{uuid4()}",
            now=self.now,
            **given,
        )
        response = Response(show_order(order), status=201)
        response["Location"] = request.build_absolute_uri(f"{request.path}{order.public_id}/")
        return response

    def _project(self, public_id: str | None) -> Project:
        if public_id is not None:
            return access_project(actor=self.actor, public_id=public_id)
        if self.actor.project_id is None:
            raise InvalidInput(
                "Say which project orders.",
                errors=(FieldError("project", "missing", "the id of a project of yours"),),
            )
        return Project.objects.get(pk=self.actor.project_id)


class OrderDetail(ApiView):
    """One order."""

    scopes = {"get": "orders:read"}

    @extend_schema(operation_id="orders_get", responses=OrderOutput)
    def get(self, request: Request, order_id: str) -> Response:
        """Read an order and which lease came of it."""
        return Response(show_order(access_order(actor=self.actor, public_id=order_id)))


class LeaseList(ApiView):
    """Leases, bought and provided."""

    scopes = {"get": "leases:read"}

    @extend_schema(
        operation_id="leases_list", parameters=[LeaseQuery], responses=page_of(LeaseOutput)
    )
    def get(self, request: Request) -> Response:
        """List leases, newest first."""
        query = self.read_query(LeaseQuery)
        leases = Lease.objects.visible_to(self.actor).with_parties()
        if query.get("side") == "buyer":
            leases = leases.bought_by(self.actor)
        elif query.get("side") == "provider":
            leases = leases.provided_by(self.actor)
        if "state" in query:
            leases = leases.filter(state=query["state"])
        return self.page(
            leases,
            order=("-created_at", "-id"),
            represent=lambda lease: show_lease(lease, side_of(self.actor, lease)),
        )


class LeaseView(ApiView):
    """What all endpoints of one lease share."""

    def find(self, lease_id: str) -> Lease:
        """Return the lease, or raise NotVisible."""
        return access_lease(actor=self.actor, public_id=lease_id)

    def detail(self, lease_id: str) -> dict[str, Any]:
        """Return the lease as it is now."""
        lease = self.find(lease_id)
        return show_lease_detail(lease, side_of(self.actor, lease), money_of(lease))


class LeaseDetail(LeaseView):
    """One lease."""

    scopes = {"get": "leases:read"}

    @extend_schema(operation_id="leases_get", responses=LeaseDetailOutput)
    def get(self, request: Request, lease_id: str) -> Response:
        """Read a lease: state, units, address, and where its money is."""
        return Response(self.detail(lease_id))


class LeaseEnding(LeaseView):
    """The end of a lease."""

    scopes = {"post": "leases:write"}
    rights = {"post": Right.ORDER}

    @extend_schema(operation_id="leases_end", request=None, responses=LeaseDetailOutput)
    def post(self, request: Request, lease_id: str) -> Response:
        """End a lease; what is not reserved returns to the balance at once."""
        lifecycle.end_lease(actor=self.actor, lease=self.find(lease_id), now=self.now)
        return Response(self.detail(lease_id))


class LeaseTopUpList(LeaseView):
    """More money for a lease."""

    scopes = {"post": "leases:write"}
    rights = {"post": Right.ORDER}
    idempotency = "required"
    keep_answers = A_MONTH
    allows_validate_only = True

    @extend_schema(
        operation_id="leases_top_up", request=TopUpInput, responses={201: LeaseDetailOutput}
    )
    def post(self, request: Request, lease_id: str) -> Response:
        """Move money from the balance into the lease's escrow."""
        lease = self.find(lease_id)
        lifecycle.top_up_lease(
            actor=self.actor,
            lease=lease,
            amount_micros=self.read_body(TopUpInput)["amount_micros"],
            key=self.idempotency_key or f"validate-only-{uuid4()}",
            now=self.now,
        )
        return Response(self.detail(lease_id), status=201)


class LeaseAccessToken(LeaseView):
    """The token that opens the workload."""

    scopes = {"post": "leases:write"}
    rights = {"post": Right.ORDER}
    answers_secret = True

    @extend_schema(operation_id="leases_show_token", request=None, responses=TokenOutput)
    def post(self, request: Request, lease_id: str) -> Response:
        """Show the access token; it is in this answer and never shown again."""
        lease = self.find(lease_id)
        token = show_token(actor=self.actor, lease=lease, now=self.now)
        return Response({"access_token": token, "address": lease.access or None})


class LeaseReadingList(LeaseView):
    """The readings of a lease."""

    scopes = {"get": "leases:read"}

    @extend_schema(
        operation_id="lease_readings_list",
        parameters=[PageQuery],
        responses=page_of(ReadingOutput),
    )
    def get(self, request: Request, lease_id: str) -> Response:
        """List the windows, newest first, each compared with the promise field by field."""
        lease = self.find(lease_id)
        self.read_query(PageQuery)
        readings = Reading.objects.filter(lease=lease).select_related(
            "lease", "batch", "usage_record"
        )
        return self.page(readings, order=("-window_index",), represent=show_reading)


class ReadingDetail(ApiView):
    """One reading."""

    scopes = {"get": "leases:read"}

    @extend_schema(operation_id="readings_get", responses=ReadingOutput)
    def get(self, request: Request, reading_id: str) -> Response:
        """Read one window."""
        return Response(show_reading(access_reading(actor=self.actor, public_id=reading_id)))


class LeaseBatchList(LeaseView):
    """The signed batches of a lease, refused ones too."""

    scopes = {"get": "leases:read"}

    @extend_schema(
        operation_id="lease_batches_list", parameters=[PageQuery], responses=page_of(BatchOutput)
    )
    def get(self, request: Request, lease_id: str) -> Response:
        """List what the node sent, newest first."""
        lease = self.find(lease_id)
        self.read_query(PageQuery)
        batches = Batch.objects.filter(stream__lease=lease)
        return self.page(batches, order=("-received_at", "-id"), represent=show_batch)


class BatchEnvelope(ApiView):
    """The exact bytes of a batch."""

    scopes = {"get": "leases:read"}

    @extend_schema(
        operation_id="batches_envelope",
        responses={(200, ENVELOPE): EnvelopeOutput},
    )
    def get(self, request: Request, batch_id: str) -> HttpResponse:
        """Read the envelope as it was signed and received, for checking without us."""
        batch = access_batch(actor=self.actor, public_id=batch_id)
        return HttpResponse(bytes(batch.envelope), content_type=ENVELOPE)


class LeaseWitnessList(LeaseView):
    """What others than the meter saw."""

    scopes = {"get": "leases:read"}

    @extend_schema(
        operation_id="lease_witness_readings_list",
        parameters=[PageQuery],
        responses=page_of(WitnessOutput),
    )
    def get(self, request: Request, lease_id: str) -> Response:
        """List the independent looks at the workload, newest first."""
        lease = self.find(lease_id)
        self.read_query(PageQuery)
        rows = WitnessReading.objects.filter(lease=lease)
        return self.page(rows, order=("-id",), represent=show_witness)


class LeaseLineList(LeaseView):
    """The movements of a lease's money."""

    scopes = {"get": "billing:read"}

    @extend_schema(operation_id="lease_lines_list", responses=LinesOutput)
    def get(self, request: Request, lease_id: str) -> Response:
        """List every movement with its legs, oldest first."""
        lease = self.find(lease_id)
        hide = side_of(self.actor, lease) is Side.PROVIDER
        return Response(
            {
                "lines": [
                    {
                        "at": line.at,
                        "kind": line.kind,
                        "phase": line.phase,
                        "state": line.state,
                        "amount_micros": str(line.amount_micros),
                        "usage_record": line.record,
                        "legs": [
                            {"account": _account(code, hide=hide), "amount_micros": str(amount)}
                            for code, amount in line.legs
                        ],
                    }
                    for line in ledger_lines(lease.agreement)
                ]
            }
        )


class LeaseEventList(LeaseView):
    """What happened to a lease."""

    scopes = {"get": "leases:read"}

    @extend_schema(
        operation_id="lease_events_list", parameters=[PageQuery], responses=page_of(EventOutput)
    )
    def get(self, request: Request, lease_id: str) -> Response:
        """List events, newest first."""
        lease = self.find(lease_id)
        self.read_query(PageQuery)
        hide = side_of(self.actor, lease) is Side.PROVIDER
        events = Event.objects.filter(subject=lease.public_id)
        return self.page(events, order=("-id",), represent=partial(_show_event, hide=hide))


def _show_event(event: Event, *, hide: bool) -> dict[str, Any]:
    """Return an event; a provider is told that the buyer acted, not which person did."""
    is_person = event.actor.startswith(("usr_", "key_"))
    details = {name: value for name, value in event.data.items() if not (hide and name == "order")}
    return {
        "id": event.pk,
        "kind": event.kind,
        "actor": "buyer" if hide and is_person else event.actor,
        "details": details,
        "at": event.at,
    }


def _account(code: str, *, hide: bool) -> str:
    """Name an account; the buyer's wallet carries the buyer's id, which a provider is not told."""
    return "wallet:buyer" if hide and code.startswith("wallet:") else code
