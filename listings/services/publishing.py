"""Publishing, editing and withdrawing listings; the web form, the API and the agent call these."""

import hashlib
from collections.abc import Mapping
from datetime import datetime
from typing import Any, ClassVar

import rfc8785
from django.db import transaction

from fabric.accounts.domain.actors import Actor
from fabric.journal.services.audit import record_audit
from fabric.journal.services.events import record_event
from fabric.lib.errors import DomainError, FieldError, InvalidInput, NotVisible, WrongState
from fabric.lib.hints import hint_task
from listings.domain.bodies import kind_of, price_micros, read_body
from listings.domain.states import MOVES, ListingState
from listings.domain.suitability import suited
from listings.models import Listing, Revision
from providers.domain.nodes import NodeState
from providers.models import Node, Provider
from providers.services.nodes import require_provider

CHECK_TASK = "listings.check_revision_task"


class ListingHasChanged(DomainError):
    """The listing is no longer the one the caller read."""

    code: ClassVar[str] = "PRECONDITION_FAILED"
    status: ClassVar[int] = 412


@transaction.atomic
def publish(
    *,
    actor: Actor,
    provider: Provider,
    node: Node,
    body: Mapping[str, Any],
    now: datetime,
    listing: Listing | None = None,
    expected_version: str = "",
) -> Listing:
    """Offer `node` under the promise in `body`, or put a new text in the place of `listing`'s.

    Writes one immutable, content-addressed revision and hands it to the check, which publishes or
    refuses it. Leases keep the revision they were signed on. Sending the text that already stands,
    or already waits for its check, changes nothing, so that a retry is harmless.

    `expected_version`, where given, must be `version_of(listing)`, else ListingHasChanged.
    """
    require_provider(actor=actor, provider=provider)
    if node.provider_id != provider.pk:
        raise NotVisible("There is no such node.")
    node = Node.objects.select_for_update(no_key=True).get(pk=node.pk)  # One at a time per node.
    if node.state == NodeState.RETIRED:
        raise WrongState(f"{node.name} is retired.", suggestion="Choose another node.")
    if listing is not None:
        listing = _locked(listing)
        _require_unchanged(listing, expected_version)
        if listing.node_id != node.pk:
            raise InvalidInput(
                "A listing stays on its node.",
                errors=(FieldError("node", "it names another node", listing.node.public_id),),
            )
    stored = read_body(body)
    if listing is not None and stored["kind"] != listing.kind:
        raise InvalidInput(
            "A listing keeps its kind.",
            errors=(FieldError("kind", "it names another kind", listing.kind),),
        )
    canonical = rfc8785.dumps(stored)
    digest = hashlib.sha256(canonical).digest()
    standing = _standing(node, listing, digest)
    if standing is not None:
        return standing
    if listing is None:
        listing = _draft(provider, node, stored, now)
        listing.save(force_insert=True)
        newest = None
    else:
        newest = listing.revisions.first()
        move_listing(listing=listing, to=ListingState.CHECKING)
    revision = Revision.objects.create(
        listing=listing,
        number=newest.number + 1 if newest else 1,
        body=stored,
        canonical=canonical,
        digest=digest,
        created_by=actor.id,
        created_at=now,
    )
    _record("listing.revised", listing, actor, now, revision=revision.number, digest=digest.hex())
    hint_task(CHECK_TASK, str(revision.pk))
    return listing


@transaction.atomic
def withdraw(
    *, actor: Actor, listing: Listing, now: datetime, expected_version: str = ""
) -> Listing:
    """Take `listing` off the catalogue; leases on it run on. Withdrawing twice changes nothing."""
    require_provider(actor=actor, provider=listing.provider)
    listing = _locked(listing)
    if listing.state == ListingState.WITHDRAWN:
        return listing
    _require_unchanged(listing, expected_version)
    before = listing.state
    move_listing(listing=listing, to=ListingState.WITHDRAWN)
    record_audit(
        actor=actor.id,
        action="listing.withdraw",
        subject=listing.public_id,
        before={"state": before},
        after={"state": ListingState.WITHDRAWN},
        now=now,
    )
    _record("listing.withdrawn", listing, actor, now)
    return listing


def move_listing(*, listing: Listing, to: ListingState, **changes: Any) -> None:
    """Move `listing` on from the state it was read in, with `changes` in the same update.

    WrongState where no such move exists or somebody else moved it meanwhile.
    """
    before = ListingState(listing.state)
    if before is not to and to not in MOVES[before]:
        raise WrongState(f"A listing that is {before} does not become {to}.")
    moved = Listing.objects.filter(pk=listing.pk, state=before).update(state=to, **changes)
    if not moved:
        raise WrongState("The listing was changed by somebody else; read it again.")
    for name, value in {"state": to, **changes}.items():
        setattr(listing, name, value)


def version_of(listing: Listing) -> str:
    """Return the text that changes with every revision and every move; costs a query."""
    newest = listing.revisions.values_list("number", flat=True).first()
    return f"{newest or 0}-{listing.state}"


def mirror_of(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the searchable columns of a listing that follow from a stored body."""
    promise = body["promise"]
    kind = kind_of(body)
    return {
        "title": body["title"],
        "class_slug": promise.get("device_class", kind.name),
        "unit_count": promise.get("unit_count", 1),
        "unit_kind": promise.get("unit_kind", "whole"),
        "memory_mib": promise.get("memory_mib", 0),
        "price_micros_per_hour": price_micros(body) * 3600 // body["price"]["per_quantity"],
        "region": body["region"],
        "country": body["country"],
        "isolation": promise.get("isolation", "none"),
        "interruptible": body.get("interruptible", False),
        "suits": suited(kind.name, promise),
    }


def _draft(provider: Provider, node: Node, stored: Mapping[str, Any], now: datetime) -> Listing:
    return Listing(
        provider=provider,
        node=node,
        kind=stored["kind"],
        state=ListingState.CHECKING,
        simulated=node.simulated,
        created_at=now,
        **mirror_of(stored),
    )


def _standing(node: Node, listing: Listing | None, digest: bytes) -> Listing | None:
    """Return the listing whose newest revision already says this and is on offer or waits."""
    open_states = [ListingState.CHECKING, ListingState.PUBLISHED]
    rows = Listing.objects.filter(node=node, state__in=open_states)
    if listing is not None:
        rows = rows.filter(pk=listing.pk)
    for row in rows.select_related("provider__organisation", "node").order_by("created_at"):
        newest = row.revisions.first()
        if newest is None or bytes(newest.digest) != digest:
            continue
        if row.state == ListingState.CHECKING or row.current_revision_id == newest.pk:
            return row
    return None


def _locked(listing: Listing) -> Listing:
    related = Listing.objects.select_related("provider__organisation", "node")
    return related.select_for_update(of=("self",), no_key=True).get(pk=listing.pk)


def _require_unchanged(listing: Listing, expected_version: str) -> None:
    if expected_version and expected_version != version_of(listing):
        raise ListingHasChanged(
            "The listing has changed since you read it.",
            suggestion="Read it again, look at what changed, and repeat your edit.",
        )


def _record(kind: str, listing: Listing, actor: Actor, now: datetime, **data: Any) -> None:
    record_event(
        kind=kind,
        subject=listing.public_id,
        actor=actor.id,
        organisations=[listing.provider.organisation.public_id],
        data=data,
        now=now,
    )
