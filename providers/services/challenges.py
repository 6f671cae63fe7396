"""The exchange between server and agent: issue, start the clock, commit, open, answer."""

import base64
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import transaction

from fabric.accounts.domain.actors import EXCHANGE, Actor
from fabric.journal.services.events import record_event
from fabric.journal.services.parameters import get_operational
from fabric.lib.errors import DomainError, FieldError, InvalidInput, WrongState
from fabric.lib.hints import hint_task
from fabric_protocol import canonical, keys, payloads
from fabric_protocol import challenge as work
from providers.domain import questions
from providers.domain.bands import read_bands
from providers.domain.challenges import (
    CHALLENGE_MOVES,
    OPEN_CHALLENGE_STATES,
    ChallengePurpose,
    ChallengeState,
)
from providers.domain.nodes import NodeState
from providers.domain.reasons import Reason
from providers.domain.reports import read_report
from providers.models import Challenge, HardwareClass, HardwareReport, Node
from providers.services.capacity import is_leased, lock_node
from providers.services.desired_state import put_item, remove_item
from providers.services.envelopes import ANSWER_DEPTH, MAX_ANSWER_BYTES, open_envelope
from providers.services.nodes import hold_back, move_node, require_provider


class ChallengeExpired(DomainError):
    """The deadline is over; what arrives now is too late and changes nothing."""

    code = "CHALLENGE_EXPIRED"
    status = 409


class AnsweredOtherwise(DomainError):
    """The same step was taken before with other content; the first stands."""

    code = "CHALLENGE_ANSWERED_OTHERWISE"
    status = 409


def issue_challenge(
    *,
    node: Node,
    report: HardwareReport,
    purpose: ChallengePurpose,
    actor: Actor,
    now: datetime,
) -> Challenge:
    """Ask `node` to prove what `report` says, and tell it so through its desired state.

    The inventory is committed to before any nonce exists: the nonce is drawn when the agent starts.
    """
    lifetime = timedelta(seconds=get_operational(now=now).challenge_seconds)
    challenge = Challenge.objects.create(
        node=node,
        report=report,
        purpose=purpose,
        state=ChallengeState.ISSUED,
        nonce=b"",
        parameters=_parameters_for(node, report),
        issued_at=now,
        expires_at=now + lifetime,
    )
    if node.state != NodeState.PROVING:
        move_node(
            node=node,
            expected=NodeState(node.state),
            to=NodeState.PROVING,
            actor=actor,
            now=now,
            reason=f"{purpose} challenge",
            evidence=challenge.public_id,
            changes={"held_back_reasons": []},
        )
    put_item(
        node=node,
        key=challenge.public_id,
        kind="challenge",
        body={"purpose": purpose.value, "report": report.public_id},
        now=now,
    )
    return challenge


@transaction.atomic
def retest_node(*, actor: Actor, node: Node, now: datetime) -> Challenge:
    """Let a provider have a held-back or admitted node tested again, from its newest report.

    Not under a lease: the test would take the memory and the time that a buyer pays for.
    """
    require_provider(actor=actor, provider=node.provider)
    locked = lock_node(node.pk)
    if locked is None or locked.state not in {NodeState.HELD_BACK, NodeState.ADMITTED}:
        raise WrongState(
            f"{node.name} is {node.get_state_display()}; only a node that is admitted or held"
            " back is tested again."
        )
    if is_leased(node=node, now=now):
        raise WrongState(
            f"{node.name} is leased, and a test would take what its buyer pays for.",
            suggestion="Test it when the lease has ended; if it has changed, that happens by itself.",
        )
    report = locked.reports.first()
    if report is None:
        raise WrongState(
            f"{node.name} has not reported yet.", suggestion="Start its agent: fabric-agent run."
        )
    return issue_challenge(
        node=locked, report=report, purpose=ChallengePurpose.RECHECK, actor=actor, now=now
    )


@transaction.atomic
def start_challenge(*, challenge: Challenge, now: datetime) -> Challenge:
    """Draw the nonce and start the clock, once; a repeat tells the same and moves no clock."""
    _refuse_late(challenge, now)
    lifetime = timedelta(seconds=get_operational(now=now).challenge_seconds)
    _move(
        challenge,
        ChallengeState.ISSUED,
        ChallengeState.STARTED,
        nonce=work.new_nonce(),
        started_at=now,
        expires_at=now + lifetime,
    )
    if challenge.state != ChallengeState.STARTED:
        raise WrongState(f"The challenge is {challenge.state}; it was started before.")
    return challenge


def question_of(challenge: Challenge) -> dict[str, Any]:
    """Return what the agent is told when the clock starts."""
    return {
        "nonce": base64.b64encode(bytes(challenge.nonce)).decode(),
        "parameters": challenge.parameters,
        "report": challenge.report.public_id,
        "expires_at": payloads.write_instant(challenge.expires_at),
    }


@transaction.atomic
def commit_to_work(
    *, challenge: Challenge, commitment: Mapping[str, Any], now: datetime
) -> Challenge:
    """Take the roots of the finished work and reveal what to open; a repeat reveals the same."""
    _refuse_late(challenge, now)
    try:
        work.check_commitment(work.Parameters.from_document(challenge.parameters), commitment)
    except ValueError as error:
        raise InvalidInput(
            "The commitment is not acceptable.",
            errors=(FieldError("devices", str(error), "one entry per device, in order"),),
        ) from error
    _move(
        challenge,
        ChallengeState.STARTED,
        ChallengeState.COMMITTED,
        commitment=dict(commitment),
        opening=work.new_opening(),
        committed_at=now,
    )
    if challenge.commitment is None or canonical.digest(challenge.commitment) != canonical.digest(
        dict(commitment)
    ):
        raise AnsweredOtherwise("Other work was committed to before; that stands.")
    return challenge


@transaction.atomic
def receive_answer(
    *, challenge: Challenge, public_key: bytes, envelope: bytes, now: datetime
) -> tuple[Challenge, bool]:
    """Keep the signed answer for the judge; return the challenge and whether it is new."""
    body, _ = open_envelope(
        envelope,
        payload_type=payloads.CHALLENGE_ANSWER,
        public_key=public_key,
        max_bytes=MAX_ANSWER_BYTES,
        max_depth=ANSWER_DEPTH,
    )
    if body.get("challenge") != challenge.public_id:
        raise AnsweredOtherwise("The answer names another challenge.")
    if challenge.envelope is not None:
        if bytes(challenge.envelope) != envelope:
            raise AnsweredOtherwise("The challenge has another answer already; that stands.")
        return challenge, False
    _refuse_late(challenge, now)
    _move(
        challenge,
        ChallengeState.COMMITTED,
        ChallengeState.ANSWERED,
        envelope=envelope,
        answer_key_id=keys.key_id(public_key),
        answered_at=now,
    )
    if challenge.state != ChallengeState.ANSWERED:
        raise WrongState(f"The challenge is {challenge.state}; commit to the work first.")
    remove_item(node=challenge.node, key=challenge.public_id, now=now)
    hint_task("providers.judge_challenge_task", str(challenge.pk))
    return challenge, True


def _parameters_for(node: Node, report: HardwareReport) -> dict[str, Any]:
    read = read_report(report.body)
    hardware_class = HardwareClass.objects.get(slug=read.devices[0].class_slug)
    return questions.build_parameters(
        read,
        report_digest=bytes(report.digest).hex(),
        bands=read_bands(hardware_class.bands),
        simulated=node.simulated,
    ).as_document()


def expire_open_challenges(*, node: Node, now: datetime) -> int:
    """End the exchange a node is in, because it is about something that no longer holds."""
    ended = 0
    for challenge in Challenge.objects.filter(node=node).open():
        ended += Challenge.objects.filter(pk=challenge.pk, state=challenge.state).update(
            state=ChallengeState.EXPIRED
        )
        remove_item(node=node, key=challenge.public_id, now=now)
    return ended


def sweep_expired(*, now: datetime, limit: int = 500) -> int:
    """Hold back the nodes whose challenge ran out; return how many. Safe beside itself."""
    unanswered = [state for state in OPEN_CHALLENGE_STATES if state != ChallengeState.ANSWERED]
    keys = (
        Challenge.objects.filter(state__in=unanswered, expires_at__lte=now)
        .order_by("expires_at")
        .values_list("pk", "node_id")[:limit]
    )
    return sum(_expire(pk, node_id, now) for pk, node_id in list(keys))


@transaction.atomic
def _expire(challenge_id: UUID, node_id: UUID, now: datetime) -> bool:
    node = lock_node(node_id, skip_locked=True)
    challenge = Challenge.objects.filter(pk=challenge_id, expires_at__lte=now).first()
    if node is None or challenge is None or challenge.state not in OPEN_CHALLENGE_STATES:
        return False
    reached = challenge.get_state_display()
    if not expire_open_challenges(node=node, now=now) or node.state != NodeState.PROVING:
        return False
    reason = Reason(
        "CHALLENGE_NOT_ANSWERED",
        "challenge",
        f"by {payloads.write_instant(challenge.expires_at)}",
        f"only {reached}",
        "The agent did not finish the challenge in its time.",
        "See that fabric-agent run is up and the node idle, then run the test again.",
    )
    hold_back(node=node, reasons=[reason], actor=EXCHANGE, evidence=challenge.public_id, now=now)
    record_event(
        kind="challenge.expired",
        subject=challenge.public_id,
        actor=EXCHANGE.id,
        organisations=[node.provider.organisation.public_id],
        data={"node": node.public_id, "reached": reached},
        now=now,
    )
    return True


def _move(
    challenge: Challenge, expected: ChallengeState, to: ChallengeState, **changes: Any
) -> None:
    """Take a step by compare-and-set and read the row anew, whoever took the step."""
    if to not in CHALLENGE_MOVES[expected]:
        raise ValueError(f"no move from {expected} to {to}")
    Challenge.objects.filter(pk=challenge.pk, state=expected).update(state=to, **changes)
    challenge.refresh_from_db()


def _refuse_late(challenge: Challenge, now: datetime) -> None:
    if challenge.state == ChallengeState.EXPIRED or (
        challenge.state in OPEN_CHALLENGE_STATES and challenge.expires_at <= now
    ):
        raise ChallengeExpired("The challenge's time is over.", suggestion="Wait for the next one.")
