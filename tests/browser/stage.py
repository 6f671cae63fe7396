"""A small market for the browser to look at: one listing, one lease, two readings, one dispute."""

from dataclasses import dataclass
from datetime import timedelta

from fabric.journal.models import ProtocolParameters
from fabric.journal.services import parameters
from fabric.lib.clock import utc_now
from leases.models import Dispute, Lease, Reading
from leases.services import disputes
from listings.models import Listing
from providers.models import Node
from tests.leases.scene import build_scene, second
from tests.listings.bodies import BODY
from tests.listings.machines import admitted_node
from tests.world import COMMERCIAL, IN_FORCE_SINCE, World


@dataclass(frozen=True)
class Stage:
    """What pages of the tour are about."""

    listing: Listing
    node: Node
    lease: Lease
    reading: Reading
    dispute: Dispute


def set_stage(world: World) -> Stage:
    """Play a few windows up to now: one as promised, one short, one disputed."""
    now = utc_now().replace(microsecond=0)
    start = now - timedelta(seconds=now.timestamp() % 5 + 15)
    allow_long_disputes(world)
    scene = build_scene(world, start)
    lease = scene.running(budget_micros=900_000)
    meter = scene.meter(lease)
    for number in range(3):
        at = second(start, 5 * number)
        scene.sweep(at)
        observed = {**BODY["promise"]}
        if number == 1:
            observed["memory_bandwidth_gb_s"] *= 0.5
        scene.deliver(lease, meter.next(at, observed=observed), second(at, 5))
    scene.sweep(second(start, 15))
    admitted_node(world, now=start, name="held-back-1", state="held_back")
    readings = list(Reading.objects.order_by("window_index"))
    dispute = disputes.open_dispute(
        actor=scene.alice,
        reading=readings[-1],
        statement="The workload did not answer for two seconds.",
        now=now,
    )
    return Stage(scene.listing, scene.node, scene.again(lease), readings[0], dispute)


def allow_long_disputes(world: World) -> None:
    """Let readings be disputed for an hour, so that a slow browser does not miss the window."""
    parameters.adopt_parameters(
        kind=ProtocolParameters.Kind.COMMERCIAL,
        body={**COMMERCIAL, "dispute_window_seconds": 3600},
        proposed_by=world.olga.public_id,
        approved_by="exchange",
        effective_at=IN_FORCE_SINCE,
    )
