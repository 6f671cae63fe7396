"""Comparing what a revision promises with what its node has shown; this alone publishes."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.db import transaction

from fabric.accounts.domain.actors import EXCHANGE
from fabric.journal.services.events import record_event
from listings.domain.bodies import kind_of
from listings.domain.conformity import FieldOutcome, FieldVerdict, compare
from listings.domain.kinds.schema import FieldSpec
from listings.domain.states import ListingState
from listings.models import UNMEASURED_RANK, Listing, Revision, RevisionCheck
from listings.services.publishing import mirror_of, move_listing
from providers.domain.nodes import NodeState
from providers.models import Node
from providers.services.nodes import latest_evidence, mark_listed, measured_facts

_STILL_PROVING = frozenset({NodeState.ENROLLED, NodeState.PROVING})


@transaction.atomic
def check_revision(*, revision: Revision, now: datetime) -> RevisionCheck | None:
    """Compare the newest revision of a listing with its node's evidence; publish or refuse it.

    Returns None while there is nothing to do yet: the node is still proving itself, or the
    revision is not the newest one of a listing that waits. A refused edit leaves on sale what
    buyers saw before, as long as that still agrees with the evidence.
    """
    listing = _locked(revision.listing_id)
    newest = listing.revisions.first()
    if listing.state != ListingState.CHECKING or newest is None or newest.pk != revision.pk:
        return None
    if listing.node.state in _STILL_PROVING:
        return None
    check = _compare(revision, listing.node, now)
    if check.accepted:
        _put_on_sale(listing, revision, check, now)
    else:
        _refuse(listing, check, now)
    return check


@transaction.atomic
def recheck_listing(*, listing: Listing, now: datetime) -> RevisionCheck | None:
    """Compare a listing again, because its node has shown something new.

    It is offered by its newest text, as its provider last asked for, even if that was refused.
    """
    listing = _locked(listing.pk)
    if listing.state not in {ListingState.REFUSED, ListingState.PUBLISHED}:
        return None
    revision = listing.revisions.first()
    if revision is None:
        return None
    if listing.node.state != NodeState.ADMITTED:
        return None  # Off the catalogue by its node's state; its return brings new evidence.
    check = _compare(revision, listing.node, now)
    move_listing(listing=listing, to=ListingState.CHECKING)
    if check.accepted:
        _put_on_sale(listing, revision, check, now)
    else:
        _refuse(listing, check, now)
    return check


def _compare(revision: Revision, node: Node, now: datetime) -> RevisionCheck:
    report, challenge = latest_evidence(node)
    facts = measured_facts(node=node)
    kind = kind_of(revision.body)
    observed = {name: _plain(kind.fields, name, fact) for name, fact in facts.items()}
    verdicts = compare(kind.fields, revision.body["promise"], observed)
    rows = [_row(kind.field(verdict.field), verdict, facts) for verdict in verdicts]
    if node.state != NodeState.ADMITTED:
        rows.insert(0, _node_row(node))
    return RevisionCheck.objects.create(
        revision=revision,
        report=report,
        challenge=challenge,
        accepted=node.state == NodeState.ADMITTED and all(verdict.kept for verdict in verdicts),
        fields=rows,
        checked_at=now,
    )


def _plain(specs: tuple[FieldSpec, ...], name: str, fact: Mapping[str, Any]) -> Any:
    """Return a fact's value, or None where it came in another unit than the promise is made in.

    A figure in the wrong unit is no measurement of this field: marketplaces have compared MB with
    MiB and GiB with MiB, and matched what they should have refused.
    """
    unit = fact.get("unit") or ""
    for spec in specs:
        if spec.name == name and spec.unit and unit != spec.unit:
            return None
    return fact.get("value")


def _row(spec: FieldSpec, verdict: FieldVerdict, facts: Mapping[str, Any]) -> dict[str, Any]:
    fact = facts.get(spec.name, {})
    return {
        "field": spec.name,
        "promised": verdict.promised,
        "measured": verdict.observed,
        "unit": spec.unit,
        "verdict": verdict.verdict,
        "tolerance_bps": verdict.tolerance_bps,
        "rule": verdict.rule,
        "method": fact.get("method") or spec.method,
        "at": fact.get("at", ""),
        "source": fact.get("source", ""),
        "reason": _reason(spec, verdict, fact),
    }


def _reason(spec: FieldSpec, verdict: FieldVerdict, fact: Mapping[str, Any]) -> str:
    promised, observed = verdict.promised, verdict.observed
    unit = f" {spec.unit}" if spec.unit else ""
    match verdict.verdict:
        case FieldOutcome.NOT_MEASURED if fact.get("value") is not None:
            given = f"{fact['value']} {fact.get('unit') or 'without a unit'}"
            return f"{spec.label}: the node showed {given}, which is not in{unit or ' this form'}."
        case FieldOutcome.NOT_MEASURED:
            return f"{spec.label}: {promised}{unit} promised, and the node has not shown it."
        case FieldOutcome.SHORT:
            slack = f"{verdict.tolerance_bps / 100:g} %"
            return (
                f"{spec.label}: {promised}{unit} promised, {observed}{unit} measured, "
                f"tolerance {slack}."
            )
        case FieldOutcome.DIFFERENT:
            return f"{spec.label}: {promised} promised, {observed} found."
        case _:
            return ""


def _node_row(node: Node) -> dict[str, Any]:
    return {
        "field": "node",
        "promised": str(NodeState.ADMITTED),
        "measured": node.state,
        "unit": "",
        "verdict": str(FieldOutcome.DIFFERENT),
        "tolerance_bps": 0,
        "rule": "equal",
        "method": "State of the node",
        "at": "",
        "source": node.public_id,
        "reason": f"The node is {node.state.replace('_', ' ')}; only an admitted one is listed.",
    }


def _put_on_sale(listing: Listing, revision: Revision, check: RevisionCheck, now: datetime) -> None:
    measured = {row["field"]: row["measured"] for row in check.fields}
    mirror = mirror_of(revision.body)
    gops = measured.get("compute_gops")
    rank = UNMEASURED_RANK
    if gops:
        rank = min(int(mirror["price_micros_per_hour"] * 1_000_000 / gops), UNMEASURED_RANK)
    move_listing(
        listing=listing,
        to=ListingState.PUBLISHED,
        current_revision=revision,
        tier=listing.node.tier,
        measured_memory_mib=measured.get("memory_mib"),
        measured_gops=gops,
        micros_per_peta_hour=rank,
        published_at=listing.published_at or now,
        **mirror,
    )
    mark_listed(node=listing.node, now=now)
    _record("listing.published", listing, check, now)


def _refuse(listing: Listing, check: RevisionCheck, now: datetime) -> None:
    """Refuse the newest revision; fall back to the one on sale if it still agrees."""
    earlier = listing.current_revision
    if earlier is not None and earlier.pk != check.revision_id:
        standing = _compare(earlier, listing.node, now)
        if standing.accepted:
            _put_on_sale(listing, earlier, standing, now)
            _record("listing.edit_refused", listing, check, now)
            return
    move_listing(listing=listing, to=ListingState.REFUSED)
    _record("listing.refused", listing, check, now)


def _locked(key: Any) -> Listing:
    related = Listing.objects.select_related(
        "provider__organisation", "node__provider", "current_revision"
    )
    return related.select_for_update(of=("self",), no_key=True).get(pk=key)


def _record(kind: str, listing: Listing, check: RevisionCheck, now: datetime) -> None:
    failed = [
        {name: row[name] for name in ("field", "promised", "measured", "verdict", "reason")}
        for row in check.fields
        if row["verdict"] not in {FieldOutcome.MATCH, FieldOutcome.BETTER}
    ]
    record_event(
        kind=kind,
        subject=listing.public_id,
        actor=EXCHANGE.id,
        organisations=[listing.provider.organisation.public_id],
        data={
            "check": check.public_id,
            "revision": check.revision.number,
            "digest": bytes(check.revision.digest).hex(),
            "findings": failed,
        },
        now=now,
    )
