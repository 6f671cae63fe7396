"""Publishing from the machine itself: the third door to the one service."""

from typing import Any

from django.http import HttpRequest

from fabric.accounts.domain.actors import Actor
from fabric.accounts.domain.roles import Right
from fabric.lib.errors import FieldError, InvalidInput
from fabric_protocol import payloads
from listings.access import access_listing
from listings.models import Listing
from listings.services.drafts import draft_listing
from listings.services.publishing import publish, version_of
from providers.agent_api.base import AgentView
from providers.models import Node
from providers.services.envelopes import open_envelope

_MEMBERS = ("listing_id", "body")


class ListingList(AgentView):
    """Takes sealed listings: a new one, or the next revision of one on the same node."""

    def post(self, request: HttpRequest) -> tuple[int, dict[str, Any]]:
        """Publish what the node's key signed; the node's operator may do no more than this."""
        document, _ = open_envelope(
            self.raw, payload_type=payloads.LISTING, public_key=self.public_key
        )
        listing_id = _read(document)
        actor = _node_as_actor(self.node)
        listing = None
        if listing_id is not None:
            listing = access_listing(actor=actor, public_id=listing_id)
        published = publish(
            actor=actor,
            provider=self.node.provider,
            node=self.node,
            body=document["body"],
            listing=listing,
            expected_version=version_of(listing) if listing else "",
            now=self.now,
        )
        return 201, _show(published)


class DraftDetail(AgentView):
    """Tells a node what its provider could promise."""

    def get(self, request: HttpRequest) -> tuple[int, dict[str, Any]]:
        """Return a listing body that promises what the node has shown; its price is still open."""
        return 200, draft_listing(node=self.node)


def _read(document: dict[str, Any]) -> str | None:
    """Return the id of the listing to revise, or None; refuse members that are not known."""
    errors = [
        FieldError(name[:80], "there is no such field", ", ".join(_MEMBERS), "UNKNOWN")
        for name in document
        if name not in _MEMBERS
    ]
    if "body" not in document:
        errors.append(FieldError("body", "it is missing", "an object of named fields", "MISSING"))
    listing_id = document.get("listing_id")
    if listing_id is not None and not isinstance(listing_id, str):
        errors.append(FieldError("listing_id", "it is not text", "lst_… or nothing", "WRONG_TYPE"))
    if errors:
        raise InvalidInput("The listing cannot be read.", errors=tuple(errors))
    return listing_id


def _node_as_actor(node: Node) -> Actor:
    """Return the node acting for its provider, with the right to offer and nothing else."""
    return Actor(
        id=node.public_id,
        organisation_id=node.provider.organisation_id,
        rights=frozenset({Right.SEE, Right.PROVIDE}),
    )


def _show(listing: Listing) -> dict[str, Any]:
    newest = listing.revisions.all()[0]
    return {
        "id": listing.public_id,
        "state": listing.state,
        "node": listing.node.public_id,
        "title": newest.body["title"],
        "revision": {"number": newest.number, "digest": bytes(newest.digest).hex()},
    }
