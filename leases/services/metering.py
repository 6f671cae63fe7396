"""Receiving signed meter batches: every one is kept and receipted, only a sound one is billed."""

import hashlib
import uuid
from dataclasses import dataclass
from datetime import datetime

from django.db import transaction
from django.db.models import Max

from fabric.accounts.domain.actors import EXCHANGE, Actor
from fabric.lib.errors import NotVisible
from fabric_protocol import canonical, dsse, payloads
from leases.domain.batches import BadBatch, MeterBatch, read_batch
from leases.domain.metering import refusal
from leases.domain.states import BatchState, StreamState
from leases.domain.streams import Decision, Link, Position, Step, after, decide
from leases.models import Batch, Lease, Stream
from leases.services.disputes import contest_by_rule
from leases.services.readings import record_reading
from leases.services.receipts import Receipt, make_receipt
from leases.services.reserving import Rules, rules_of
from leases.services.transitions import lock_lease, tell
from providers.domain.nodes import NodeState
from providers.domain.reasons import Reason
from providers.models import Node, NodeKey
from providers.services.nodes import hold_back
from providers.services.observations import record_observation

MAX_ENVELOPE_BYTES = 64 * 1024
KEPT_OF_A_GIANT = 1024
STREAMS_BEFORE_NODE = 2
MAX_KEPT_REFUSALS = 1000
"""Refusals kept per stream: a node may prove it misbehaves, not fill our disk with the proof."""


@dataclass(frozen=True)
class _Opened:
    """A batch whose signature held and whose body could be read."""

    body: MeterBatch
    digest: bytes

    @property
    def link(self) -> Link:
        return Link(self.body.epoch, self.body.seq, self.body.prev, self.digest)


class _Unreadable(Exception):
    """The envelope or its body is refused; what could be read of its place is kept."""

    def __init__(self, code: str, digest: bytes) -> None:
        super().__init__(code)
        self.code = code
        self.digest = digest


@transaction.atomic
def receive_batch(*, node: Node, lease_id: str, envelope: bytes, now: datetime) -> Receipt:
    """Store a batch from `node` for one of its leases, judge it, and return the signed receipt.

    The same bytes again return their receipt. A batch that is out of order waits; one that is
    refused is kept with its reason. Raises NotVisible where the lease is not on this node.
    """
    key = _lease_key(lease_id)
    lease = None if key is None else lock_lease(key=key)
    if lease is None or lease.node_id != node.pk:
        raise NotVisible(f"There is no lease {lease_id} on this node.")
    stream, _ = Stream.objects.get_or_create(lease=lease, defaults={"node": node})
    rules = rules_of(lease)
    try:
        opened = _open(lease=lease, node=node, rules=rules, envelope=envelope)
    except _Unreadable as unreadable:
        return _refuse_unreadable(stream, lease, envelope, unreadable, now)
    known = stream.batches.filter(digest=opened.digest).first()
    if known is not None:
        return make_receipt(batch=known, stream=stream, lease=lease.public_id, created=False)
    batch = _Reception(lease, stream, rules, now).judge(opened, envelope)
    return make_receipt(batch=batch, stream=stream, lease=lease.public_id, created=True)


def _lease_key(lease_id: str) -> uuid.UUID | None:
    try:
        return Lease.key_from(lease_id)
    except ValueError:
        return None


def _open(*, lease: Lease, node: Node, rules: Rules, envelope: bytes) -> _Opened:
    whole = hashlib.sha256(envelope).digest()
    if len(envelope) > MAX_ENVELOPE_BYTES:
        raise _Unreadable("too_large", whole)
    try:
        public_key = _public_key(node, dsse.key_id_of(envelope, MAX_ENVELOPE_BYTES))
        if isinstance(public_key, str):
            raise _Unreadable(public_key, whole)
        payload = dsse.open(envelope, payloads.METER_BATCH, public_key, MAX_ENVELOPE_BYTES)
        document = canonical.loads_object(payload, MAX_ENVELOPE_BYTES, max_depth=4)
    except (dsse.BadEnvelope, canonical.BadDocument) as error:
        raise _Unreadable(error.code.lower(), whole) from error
    digest = hashlib.sha256(payload).digest()
    try:
        body = read_batch(document)
    except BadBatch as error:
        raise _Unreadable(error.code, digest) from error
    expected = (
        ("other_lease", body.lease, lease.public_id),
        ("other_agreement", body.agreement, lease.agreement.public_id),
        ("other_node", body.node, node.public_id),
        ("other_terms", body.terms_digest, bytes(rules.terms.digest)),
    )
    for code, said, true in expected:
        if said != true:
            raise _Unreadable(code, digest)
    return _Opened(body=body, digest=digest)


def _public_key(node: Node, key_id: str) -> bytes | str:
    """Return the node's key with this id, or the code of why it does not count."""
    key = NodeKey.objects.filter(key_id=key_id).first()
    if key is None:
        return "unknown_key"
    if key.node_id != node.pk:
        return "key_of_another_node"
    return "revoked_key" if key.revoked_at is not None else bytes(key.public_key)


@dataclass(frozen=True)
class _Reception:
    """One delivery to one stream, whose lease the caller has locked."""

    lease: Lease
    stream: Stream
    rules: Rules
    now: datetime

    def judge(self, opened: _Opened, envelope: bytes) -> Batch:
        """Store a batch that was not seen before, and do what its place in the chain asks for."""
        decision = self._decide(opened.link)
        if decision.step is Step.ACCEPT:
            batch = self._store(opened, envelope, BatchState.ACCEPTED)
            self._put_in_place(opened, batch)
            self._drain()
            return batch
        if decision.step is Step.PARK:
            return self._store(opened, envelope, BatchState.PARKED)
        batch = self._batch(opened, envelope, BatchState.REFUSED, decision.reason)
        again = self.stream.batches.filter(reason=decision.reason).exists()
        if decision.step is Step.EQUIVOCATION and not again:
            batch.save()  # The proof is kept however much else was refused.
            self._hold_stream(batch)
        else:
            _keep_refusal(self.lease, batch)
        return batch

    @property
    def _position(self) -> Position:
        head = self.stream.head
        return Position(
            state=StreamState(self.stream.state),
            epoch=self.stream.epoch,
            next_seq=self.stream.next_seq,
            head=None if head is None else bytes(head),
        )

    def _decide(self, link: Link) -> Decision:
        placed = self.stream.batches.filter(in_place=True)
        occupant = (
            placed.filter(epoch=link.epoch, seq=link.seq).values_list("digest", flat=True).first()
        )
        chained = placed.exclude(state=BatchState.PARKED)
        return decide(
            self._position,
            link,
            occupant=None if occupant is None else bytes(occupant),
            prev_is_ours=link.prev is not None and chained.filter(digest=link.prev).exists(),
            parked=placed.filter(state=BatchState.PARKED).count(),
        )

    def _store(self, opened: _Opened, envelope: bytes, state: BatchState) -> Batch:
        batch = self._batch(opened, envelope, state)
        batch.save()
        return batch

    def _batch(
        self, opened: _Opened, envelope: bytes, state: BatchState, reason: str = ""
    ) -> Batch:
        return Batch(
            stream=self.stream,
            epoch=opened.body.epoch,
            seq=opened.body.seq,
            digest=opened.digest,
            envelope=envelope,
            size_bytes=len(envelope),
            state=state,
            reason=reason,
            in_place=state != BatchState.REFUSED,
            received_at=self.now,
        )

    def _put_in_place(self, opened: _Opened, batch: Batch) -> None:
        """Advance the chain by a batch and bill it; one that cannot be billed keeps its place.

        What it says may be wrong while the link is sound: refusing it without advancing would park
        every later batch behind it.
        """
        lease = self.lease
        reason = refusal(
            opened.body,
            window_seconds=self.rules.terms.window_seconds,
            received_at=batch.received_at,
            ready_at=lease.ready_at,
            metered_until=lease.readings.aggregate(at=Max("ends_at"))["at"],
            stopped_at=lease.stop_requested_at,
        )
        batch.state = BatchState.REFUSED if reason else BatchState.ACCEPTED
        batch.reason = reason
        batch.save(update_fields=["state", "reason"])
        self._advance(after(self._position, opened.link, final=opened.body.final))
        if reason:
            _tell_refused(lease, batch, self.now)
            return
        reading, consequence = record_reading(
            lease=lease, terms=self.rules.terms, body=opened.body, batch=batch, now=self.now
        )
        if consequence.contested:
            contest_by_rule(reading=reading, statement=consequence.statement, now=self.now)

    def _advance(self, position: Position) -> None:
        stream = self.stream
        if position.epoch != stream.epoch:
            stream.batches.filter(state=BatchState.PARKED, epoch__lt=position.epoch).update(
                state=BatchState.REFUSED, reason="epoch_over", in_place=False
            )
        stream.state, stream.epoch = position.state, position.epoch
        stream.next_seq, stream.head = position.next_seq, position.head
        stream.save(update_fields=["state", "epoch", "next_seq", "head"])
        if position.state == StreamState.FINAL:
            _wake(self.lease, self.now)

    def _drain(self) -> None:
        """Take parked batches whose turn has come."""
        while self.stream.state == StreamState.OPEN:
            batch = self.stream.batches.filter(
                state=BatchState.PARKED, epoch=self.stream.epoch, seq=self.stream.next_seq
            ).first()
            if batch is None:
                return
            try:
                opened = _open(
                    lease=self.lease,
                    node=self.lease.node,
                    rules=self.rules,
                    envelope=bytes(batch.envelope),
                )
            except _Unreadable as unreadable:  # The key was revoked while the batch waited.
                self._displace(batch, unreadable.code)
                return
            decision = decide(
                self._position, opened.link, occupant=None, prev_is_ours=False, parked=0
            )
            if decision.step is not Step.ACCEPT:
                self._displace(batch, decision.reason)
                return
            self._put_in_place(opened, batch)

    def _displace(self, batch: Batch, reason: str) -> None:
        """Refuse a parked batch that does not fit after all; its number is free again."""
        batch.state, batch.reason, batch.in_place = BatchState.REFUSED, reason, False
        batch.save(update_fields=["state", "reason", "in_place"])
        _tell_refused(self.lease, batch, self.now)

    def _hold_stream(self, batch: Batch) -> None:
        """Hold a node to account for two truths under one number: its word is worth nothing."""
        if self.stream.state == StreamState.OPEN:
            self.stream.state = StreamState.HELD
            self.stream.save(update_fields=["state"])
        _wake(self.lease, self.now)
        tell(
            lease=self.lease,
            kind="stream.was_held",
            actor=Actor(id=self.lease.node.public_id),
            now=self.now,
            data={"batch": batch.public_id, "epoch": batch.epoch, "seq": batch.seq},
        )
        record_observation(
            node=self.lease.node,
            kind="equivocation",
            value=1.0,
            evidence=batch.public_id,
            counterparty=self.lease.organisation.public_id,
            now=self.now,
        )
        self._hold_node_back(batch)

    def _hold_node_back(self, batch: Batch) -> None:
        """Place nothing more on a node whose second stream contradicts itself."""
        node = self.lease.node
        held = Stream.objects.filter(node=node, state=StreamState.HELD).count()
        if held < STREAMS_BEFORE_NODE or node.state != NodeState.ADMITTED:
            return
        reason = Reason(
            code="METER_EQUIVOCATES",
            field="meter",
            promised="one batch under one number",
            measured=f"{held} streams with two",
            detail=f"Batch {batch.public_id} carries a number that another signed batch has.",
            remedy="Restore the agent's outbox, or enrol the machine anew with a new key.",
        )
        hold_back(
            node=node, reasons=[reason], actor=EXCHANGE, evidence=batch.public_id, now=self.now
        )


def _refuse_unreadable(
    stream: Stream, lease: Lease, envelope: bytes, unreadable: _Unreadable, now: datetime
) -> Receipt:
    known = stream.batches.filter(digest=unreadable.digest).first()
    if known is not None:
        return make_receipt(batch=known, stream=stream, lease=lease.public_id, created=False)
    giant = len(envelope) > MAX_ENVELOPE_BYTES
    batch = Batch(
        stream=stream,
        epoch=None,
        seq=None,
        digest=unreadable.digest,
        envelope=envelope[:KEPT_OF_A_GIANT] if giant else envelope,
        size_bytes=len(envelope),
        state=BatchState.REFUSED,
        reason=unreadable.code,
        in_place=False,
        received_at=now,
    )
    _keep_refusal(lease, batch)
    return make_receipt(batch=batch, stream=stream, lease=lease.public_id, created=True)


def _keep_refusal(lease: Lease, batch: Batch) -> None:
    """Keep a refused batch and tell of it, unless the stream has had too many of them."""
    if batch.stream.batches.filter(state=BatchState.REFUSED).count() < MAX_KEPT_REFUSALS:
        batch.save()
        _tell_refused(lease, batch, batch.received_at)


def _wake(lease: Lease, now: datetime) -> None:
    """Let the sweep look at the lease at once."""
    Lease.objects.filter(pk=lease.pk, due_at__isnull=False).update(due_at=now)


def _tell_refused(lease: Lease, batch: Batch, now: datetime) -> None:
    """Write an event about a refused batch, so that both sides see that it came and why."""
    tell(
        lease=lease,
        kind="batch.was_refused",
        actor=Actor(id=lease.node.public_id),
        now=now,
        data={"batch": batch.public_id, "reason": batch.reason},
    )
