"""A provider's admitted node with a key, a listing on sale, and a buyer with money."""

import hashlib
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.db import connection

from billing.models import Account
from billing.services import wallet
from fabric.accounts.domain.actors import Actor
from fabric_protocol import canonical, dsse, payloads
from fabric_protocol.keys import SigningKey
from leases.domain.states import LeaseState
from leases.models import Lease, Order
from leases.services import lifecycle, metering, ordering
from leases.services.receipts import Receipt
from listings.models import Listing
from providers.models import Node, NodeBeat, NodeKey
from tests.listings.bodies import BODY
from tests.listings.machines import published_listing
from tests.world import World

MONEY = 1_000_000
BUDGET = 20_000
PRICE = 50_000
WINDOW = 5


def second(now: datetime, seconds: float) -> datetime:
    return now + timedelta(seconds=seconds)


@dataclass
class Meter:
    """Seals the batches of one lease as its agent would."""

    lease: Lease
    key: SigningKey
    epoch: int = 0
    seq: int = 0
    prev: str | None = None
    sent: list[bytes] = field(default_factory=list)

    def body(self, starts_at: datetime, **changes: Any) -> dict[str, Any]:
        terms = self.lease.agreement.terms.get()
        ends_at = changes.pop("ends_at", second(starts_at, WINDOW))
        return {
            "v": 1,
            "lease": self.lease.public_id,
            "agreement": self.lease.agreement.public_id,
            "node": self.lease.node.public_id,
            "terms_digest": bytes(terms.digest).hex(),
            "epoch": self.epoch,
            "seq": self.seq,
            "prev": self.prev,
            "window_index": int(starts_at.timestamp()) // WINDOW,
            "starts_at": payloads.write_instant(starts_at),
            "ends_at": payloads.write_instant(ends_at),
            "ready_seconds": int((ends_at - starts_at).total_seconds()),
            "observed": {**BODY["promise"]},
            "samples": 5,
            "monotonic_ns": str(int(starts_at.timestamp() * 1e9)),
            "final": False,
            **changes,
        }

    def seal(self, body: dict[str, Any]) -> bytes:
        payload = canonical.dumps(body)
        return dsse.seal(payloads.METER_BATCH, payload, self.key)

    def next(self, starts_at: datetime, **changes: Any) -> bytes:
        """Seal the next batch of the chain."""
        body = self.body(starts_at, **changes)
        envelope = self.seal(body)
        self.prev = hashlib.sha256(canonical.dumps(body)).hexdigest()
        self.seq += 1
        self.sent.append(envelope)
        return envelope


@dataclass
class Scene:
    """What most tests of leases begin with."""

    world: World
    now: datetime
    listing: Listing
    key: SigningKey

    @property
    def node(self) -> Node:
        return self.listing.node

    @property
    def alice(self) -> Actor:
        return self.world.actor(self.world.alice)

    @property
    def carol(self) -> Actor:
        return self.world.actor(self.world.carol)

    @property
    def olga(self) -> Actor:
        return self.world.actor(self.world.olga)

    def order(self, **changes: Any) -> Order:
        """Place an order for the one unit, with every consent."""
        given: dict[str, Any] = {
            "actor": self.alice,
            "project": self.world.project,
            "listing": self.listing,
            "unit_count": 1,
            "budget_micros": BUDGET,
            "accepts_interruption": True,
            "accepts_unisolated": True,
            "price_cap_micros_per_hour": PRICE,
            "max_seconds": 3600,
            "now": self.now,
            "key": "order-1",
        }
        return ordering.place_order(**{**given, **changes})

    def running(self, **changes: Any) -> Lease:
        """Place an order and let its workload be ready at the scene's `now`."""
        lease = self.order(**changes).lease
        assert lifecycle.confirm_ready(lease=lease, access=ACCESS, now=changes.get("now", self.now))
        return self.again(lease)

    def again(self, lease: Lease) -> Lease:
        """Return the lease as the database has it."""
        fresh: Lease = Lease.objects.with_parties().get(pk=lease.pk)
        return fresh

    def beat(self, now: datetime, *workloads: dict[str, Any]) -> None:
        NodeBeat.objects.update_or_create(
            node=self.node, defaults={"last_beat_at": now, "workloads": list(workloads)}
        )

    def sweep(self, now: datetime) -> None:
        """Let the node beat and the sweep run."""
        self.beat(now)
        Lease.objects.filter(due_at__isnull=False).update(due_at=now)
        lifecycle.sweep(now=now)

    def meter(self, lease: Lease) -> Meter:
        return Meter(lease=lease, key=self.key)

    def deliver(self, lease: Lease, envelope: bytes, now: datetime) -> Receipt:
        return metering.receive_batch(
            node=self.node, lease_id=lease.public_id, envelope=envelope, now=now
        )

    def end(self, lease: Lease, now: datetime) -> Lease:
        return lifecycle.end_lease(actor=self.alice, lease=lease, now=now)

    def wallet_micros(self) -> int:
        return wallet.available_micros(self.world.meridian)

    def escrow_micros(self, lease: Lease) -> int:
        """Return all that is in the lease's escrow, promised or not."""
        account = Account.objects.get(pk=lease.agreement.escrow_id)
        return account.credits_posted - account.debits_posted


ACCESS = {"interface": "http", "host": "127.0.0.1", "port": 40_001}


def build_scene(world: World, now: datetime) -> Scene:
    """Return the scene: one unit on sale, a million micro-units in Alice's organisation's wallet."""
    listing = published_listing(world, now=now)
    node = listing.node
    node.accepts_unisolated = True
    node.save(update_fields=["accepts_unisolated"])
    key = SigningKey.from_seed(hashlib.sha256(b"scene").digest())
    NodeKey.objects.create(
        node=node, key_id=key.key_id, public_key=key.public_bytes, active_from=now
    )
    NodeBeat.objects.update_or_create(node=node, defaults={"last_beat_at": now})
    wallet.credit_cash(organisation=world.meridian, amount_micros=MONEY, key="scene", now=now)
    return Scene(world=world, now=now, listing=listing, key=key)


def books_balance() -> bool:
    """Return whether all entries of the ledger sum to nothing, and counters agree with them."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT coalesce(sum(amount_micros), 0) FROM billing_entry")
        total = cursor.fetchone()[0]
        cursor.execute(
            "SELECT count(*) FROM billing_account a WHERE debits_posted - credits_posted <>"
            " (SELECT coalesce(sum(amount_micros), 0) FROM billing_entry e"
            " WHERE e.account_id = a.id)"
        )
        broken = cursor.fetchone()[0]
    return bool(total == 0 and broken == 0)


OVER = frozenset({LeaseState.ENDED, LeaseState.FAILED})
