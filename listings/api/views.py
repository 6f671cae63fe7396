"""Endpoints of listings; each write is one call of the service that page and agent call too."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from fabric.accounts.api.base import ApiView
from fabric.accounts.api.conditions import require_match
from fabric.accounts.api.pages import PageQuery, page_of
from fabric.accounts.domain.actors import Actor
from fabric.accounts.domain.roles import Right
from fabric.lib.errors import FieldError, InvalidInput
from listings.access import access_listing, read_listing, read_revision
from listings.api.shapes import (
    ListingDetailOutput,
    ListingEditInput,
    ListingInput,
    ListingOutput,
    ListingQuery,
    RevisionDetailOutput,
    show_listing,
    show_listing_detail,
    show_revision_detail,
)
from listings.filters import DEFAULT_SORT, SORTS, ListingFilter, sorted_by
from listings.models import Listing
from listings.services.publishing import publish, version_of, withdraw
from providers.access import access_node

_RELATED = ("provider__organisation", "node", "current_revision")


class ListingList(ApiView):
    """The catalogue."""

    scopes = {"get": "catalogue:read", "post": "provider:write"}
    rights = {"post": Right.PROVIDE}
    idempotency = "required"
    is_public = True
    allows_validate_only = True

    @extend_schema(
        operation_id="listings_list",
        parameters=[ListingQuery],
        responses=page_of(ListingOutput),
    )
    def get(self, request: Request) -> Response:
        """Search what is on sale; filters have the names of the fields they look at."""
        sort = self.read_query(ListingQuery).get("sort", DEFAULT_SORT)
        chosen = ListingFilter(
            request.query_params, queryset=Listing.objects.on_sale().select_related(*_RELATED)
        )
        if not chosen.form.is_valid():
            raise InvalidInput(
                "Some filters cannot be accepted.",
                errors=tuple(
                    FieldError(name, " ".join(map(str, errors)), "")
                    for name, errors in chosen.form.errors.items()
                ),
            )
        return self.page(sorted_by(chosen.qs, sort), order=SORTS[sort], represent=show_listing)

    @extend_schema(
        operation_id="listings_publish", request=ListingInput, responses={201: ListingDetailOutput}
    )
    def post(self, request: Request) -> Response:
        """Publish a listing on one of your nodes; it is checked before anyone sees it."""
        given = self.read_body(ListingInput)
        node = access_node(actor=self.actor, public_id=given["node"])
        with _inside_body():
            listing = publish(
                actor=self.actor, provider=node.provider, node=node, body=given["body"],
                now=self.now,
            )  # fmt: skip
        response = Response(show_listing_detail(listing, manages=True), status=201)
        response["Location"] = request.build_absolute_uri(f"{request.path}{listing.public_id}/")
        return response


class OwnListingList(ApiView):
    """What the caller's organisation offers, in every state."""

    scopes = {"get": "provider:read"}

    @extend_schema(
        operation_id="provider_listings_list",
        parameters=[PageQuery],
        responses=page_of(ListingOutput),
    )
    def get(self, request: Request) -> Response:
        """List your own listings, newest first, those refused or withdrawn too."""
        self.read_query(PageQuery)
        own = Listing.objects.filter(provider__organisation=self.actor.organisation_id)
        return self.page(
            own.select_related(*_RELATED).prefetch_related("revisions"),
            order=("-created_at", "-id"),
            represent=show_listing,
        )


class ListingDetail(ApiView):
    """One listing."""

    scopes = {"get": "catalogue:read", "put": "provider:write"}
    rights = {"put": Right.PROVIDE}
    is_public = True
    allows_validate_only = True

    @extend_schema(
        operation_id="listings_get",
        responses=ListingDetailOutput,
    )
    def get(self, request: Request, listing_id: str) -> Response:
        """Read a listing: promise, what was measured, what it suits, and its revisions."""
        reader = self.actor if self.is_authenticated else None
        listing = read_listing(actor=reader, public_id=listing_id)
        return Response(show_listing_detail(listing, manages=_manages(reader, listing)))

    @extend_schema(
        operation_id="listings_revise",
        request=ListingEditInput,
        responses=ListingDetailOutput,
    )
    def put(self, request: Request, listing_id: str) -> Response:
        """Write the next revision; wants `If-Match`. Leases keep the one they were signed on."""
        listing = access_listing(actor=self.actor, public_id=listing_id)
        seen = version_of(listing)
        require_match(request, show_listing_detail(listing, manages=True))
        given = self.read_body(ListingEditInput)
        with _inside_body():
            listing = publish(
                actor=self.actor, provider=listing.provider, node=listing.node,
                body=given["body"], listing=listing, expected_version=seen, now=self.now,
            )  # fmt: skip
        return Response(show_listing_detail(listing, manages=True))


class ListingWithdrawal(ApiView):
    """The end of an offer."""

    scopes = {"post": "provider:write"}
    rights = {"post": Right.PROVIDE}

    @extend_schema(operation_id="listings_withdraw", request=None, responses=ListingDetailOutput)
    def post(self, request: Request, listing_id: str) -> Response:
        """Take a listing off the catalogue; wants `If-Match`. Leases on it run on."""
        listing = access_listing(actor=self.actor, public_id=listing_id)
        seen = version_of(listing)
        require_match(request, show_listing_detail(listing, manages=True))
        listing = withdraw(actor=self.actor, listing=listing, expected_version=seen, now=self.now)
        return Response(show_listing_detail(listing, manages=True))


class RevisionDetail(ApiView):
    """One text of a promise."""

    scopes = {"get": "catalogue:read"}
    is_public = True

    @extend_schema(
        operation_id="listings_get_revision",
        responses=RevisionDetailOutput,
    )
    def get(self, request: Request, listing_id: str, number: int) -> Response:
        """Read a revision with the exact text that its digest is of; it never changes."""
        reader = self.actor if self.is_authenticated else None
        revision = read_revision(actor=reader, listing_id=listing_id, number=number)
        return Response(show_revision_detail(revision))


def _manages(reader: Actor | None, listing: Listing) -> bool:
    return reader is not None and (
        reader.is_operator or reader.organisation_id == listing.provider.organisation_id
    )


@contextmanager
def _inside_body() -> Iterator[None]:
    """Point refusals of a body's fields at where they stand in the request."""
    try:
        yield
    except InvalidInput as refused:
        errors = tuple(
            replace(error, field="body" if error.field == "body" else f"body.{error.field}")
            for error in refused.errors
        )
        raise InvalidInput(
            refused.message, errors=errors, suggestion=refused.suggestion, metadata=refused.metadata
        ) from refused
