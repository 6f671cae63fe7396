"""Judging answered challenges, and admitting the node to a tier or holding it back."""

from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction

from fabric.accounts.domain.actors import EXCHANGE
from fabric.journal.services.events import record_event
from fabric_protocol import challenge as work
from fabric_protocol import payloads
from providers.domain import questions
from providers.domain.bands import read_bands
from providers.domain.challenges import ChallengePurpose, ChallengeState, Verdict
from providers.domain.judging import Exchange, Judgement, Machine, is_only_slow, judge
from providers.domain.nodes import NodeState
from providers.domain.reports import read_report
from providers.models import Challenge, HardwareClass, Node, NodeKey, Unit
from providers.services.capacity import lock_node
from providers.services.challenges import issue_challenge
from providers.services.envelopes import ANSWER_DEPTH, MAX_ANSWER_BYTES, open_envelope
from providers.services.nodes import hold_back, move_node
from providers.services.observations import record_observation

MOST_TRIES = 3
"""For one report and purpose, before slowness counts against a real machine."""


def judge_challenge(*, challenge_id: UUID, now: datetime) -> Challenge | None:
    """Judge one answered challenge; None where somebody else has, or nothing waits.

    The arithmetic runs before any lock is taken. The verdict is written by a compare-and-set, so
    two judges at once cost time and change nothing.
    """
    challenge = (
        Challenge.objects.select_related("node", "report")
        .filter(pk=challenge_id, state=ChallengeState.ANSWERED)
        .first()
    )
    if challenge is None:
        return None
    judgement = _judge(challenge)
    with transaction.atomic():
        node = lock_node(challenge.node_id)
        written = Challenge.objects.filter(pk=challenge.pk, state=ChallengeState.ANSWERED).update(
            state=ChallengeState.JUDGED,
            verdict=judgement.verdict,
            figures=judgement.figures,
            reasons=[reason.as_json() for reason in judgement.reasons],
            judged_at=now,
        )
        if node is None or not written:
            return None
        challenge.refresh_from_db()
        _write_down(node, challenge, judgement, now)
        if node.state == NodeState.PROVING:
            _decide(node, challenge, judgement, now)
    return challenge


def _deserves_another_try(challenge: Challenge, judgement: Judgement) -> bool:
    """Whether a real machine that was only slow is asked again, a few times for one report.

    Wrong work is never asked for twice, and a virtual clock has no busy moments. What counts are
    the tries since the node last came to be tested: an old trouble does not weigh on a new test.
    """
    if challenge.node.simulated or not is_only_slow(judgement):
        return False
    since = challenge.node.transitions.filter(to_state=NodeState.PROVING).latest("id").at
    tries = Challenge.objects.filter(
        node=challenge.node_id,
        report=challenge.report_id,
        purpose=challenge.purpose,
        issued_at__gte=since,
    )
    return tries.count() < MOST_TRIES


def _judge(challenge: Challenge) -> Judgement:
    report = read_report(challenge.report.body)
    hardware_class = HardwareClass.objects.get(slug=report.devices[0].class_slug)
    started, committed, answered = (
        challenge.started_at,
        challenge.committed_at,
        challenge.answered_at,
    )
    if started is None or committed is None or answered is None:
        raise ValueError(f"{challenge} was answered without having been started")
    exchange = Exchange(
        nonce=bytes(challenge.nonce),
        parameters=work.Parameters.from_document(challenge.parameters),
        commitment=challenge.commitment or {},
        opening=challenge.opening or {},
        answer=_open_answer(challenge),
        commit_seconds=(committed - started).total_seconds(),
        read_back_seconds=(answered - committed).total_seconds(),
        simulated=challenge.node.simulated,
    )
    machine = Machine(
        bands=read_bands(hardware_class.bands),
        instruction_set=questions.instruction_set(report),
        cores=questions.core_count(report),
        promised_mib=min(questions.promised_mib(report).values(), default=0),
    )
    return judge(exchange, machine)


def _open_answer(challenge: Challenge) -> dict[str, Any]:
    """Return the answer's body; its signature was checked when it came, and holds for ever."""
    public_key = bytes(NodeKey.objects.get(key_id=challenge.answer_key_id).public_key)
    body, _ = open_envelope(
        bytes(challenge.envelope or b""),
        payload_type=payloads.CHALLENGE_ANSWER,
        public_key=public_key,
        max_bytes=MAX_ANSWER_BYTES,
        max_depth=ANSWER_DEPTH,
    )
    return body


def _write_down(node: Node, challenge: Challenge, judgement: Judgement, now: datetime) -> None:
    record_event(
        kind="challenge.judged",
        subject=challenge.public_id,
        actor=EXCHANGE.id,
        organisations=[node.provider.organisation.public_id],
        data={
            "node": node.public_id,
            "verdict": judgement.verdict.value,
            "reasons": [reason.code for reason in judgement.reasons],
        },
        now=now,
    )
    if judgement.verdict != Verdict.CANNOT_JUDGE:
        record_observation(
            node=node,
            kind="challenge_passed",
            value=float(judgement.verdict == Verdict.PASSED),
            evidence=challenge.public_id,
            now=now,
        )
    for figure in ("compute_gops", "memory_bandwidth_gb_s"):
        if figure in judgement.figures:
            record_observation(
                node=node,
                kind=figure,
                value=float(judgement.figures[figure]["value"]),
                evidence=challenge.public_id,
                now=now,
            )


def _decide(node: Node, challenge: Challenge, judgement: Judgement, now: datetime) -> None:
    if _deserves_another_try(challenge, judgement):
        issue_challenge(
            node=node,
            report=challenge.report,
            purpose=ChallengePurpose(challenge.purpose),
            actor=EXCHANGE,
            now=now,
        )
        return
    if judgement.verdict != Verdict.PASSED:
        hold_back(
            node=node,
            reasons=judgement.reasons,
            actor=EXCHANGE,
            evidence=challenge.public_id,
            now=now,
        )
        return
    slug = read_report(challenge.report.body).devices[0].class_slug
    hardware_class = HardwareClass.objects.get(slug=slug)
    for unit in Unit.objects.offered().filter(device__node=node):
        Unit.objects.filter(pk=unit.pk).update(memory_mib_measured=unit.memory_mib)
    move_node(
        node=node,
        expected=NodeState.PROVING,
        to=NodeState.ADMITTED,
        actor=EXCHANGE,
        now=now,
        reason=f"{hardware_class.get_tier_display()} tier by benchmark",
        evidence=challenge.public_id,
        changes={
            "tier": hardware_class.tier,
            "hardware_class_id": hardware_class.slug,
            "admitted_at": node.admitted_at or now,
            "held_back_reasons": [],
        },
    )
