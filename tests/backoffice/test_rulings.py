"""An operator rules on a dispute in the back office."""

from datetime import timedelta

import pytest
from django.test import Client
from django.urls import reverse

from billing.domain.states import UsageState
from billing.models import Entry, UsageRecord
from fabric.backoffice.rulings import preview_effect
from fabric.lib.clock import utc_now
from leases.domain.states import DisputeState
from leases.models import Dispute, Reading
from leases.services import disputes
from tests.leases.scene import Scene, books_balance, build_scene, second
from tests.world import PASSWORD, World

pytestmark = [pytest.mark.django_db, pytest.mark.ignore_template_errors]


@pytest.fixture
def dispute(world: World) -> Dispute:
    """A line of 69 micro-units that Alice disputed a moment ago."""
    now = utc_now().replace(microsecond=0)
    start = now - timedelta(seconds=now.timestamp() % 5 + 10)
    scene: Scene = build_scene(world, start)
    lease = scene.running()
    scene.deliver(lease, scene.meter(lease).next(start), second(start, 5))
    return disputes.open_dispute(
        actor=scene.alice,
        reading=Reading.objects.get(),
        statement="It did not answer <b>at all</b>.",
        now=second(start, 6),
    )


def page(dispute: Dispute) -> str:
    return reverse("admin:leases_dispute_rule", args=[dispute.pk])


def operator(world: World, *, proven: bool = True) -> Client:
    client = world.client(world.olga)
    if proven:
        client.post(reverse("account_reauthenticate"), {"password": PASSWORD})
    return client


def test_the_page_shows_the_claim_the_reading_and_what_a_ruling_does(
    world: World, dispute: Dispute
) -> None:
    """R-C8 (page): evidence side by side, and the ruling's effect on the ledger before it."""
    html = operator(world).get(page(dispute), {"stands_bps": "3333"}).content.decode()
    assert "It did not answer &lt;b&gt;at all&lt;/b&gt;." in html
    assert "Memory, allocatable" in html
    assert "If 33.33 % stands" in html
    assert "Rule: 33.33 % stands, 0.000022 settles, 0.000047 returns" in html
    assert UsageRecord.objects.get().state == UsageState.DISPUTED


@pytest.mark.parametrize("bps", [0, 1, 3_333, 9_999, 10_000])
def test_the_previewed_legs_are_the_whole_line_and_what_is_booked(
    world: World, dispute: Dispute, bps: int
) -> None:
    """R-C8 (page): the preview and the booking are the same numbers."""
    effect = preview_effect(dispute, bps)
    assert sum(leg.micros for leg in effect.legs) == effect.line_micros == 69
    operator(world).post(page(dispute), {"stands_bps": bps, "ruling": "As measured."})
    record = UsageRecord.objects.get()
    assert record.state == UsageState.SETTLED
    booked = -sum(
        Entry.objects.filter(transfer__record=record, amount_micros__lt=0).values_list(
            "amount_micros", flat=True
        )
    )
    assert booked == effect.stands_micros
    assert books_balance()


def test_a_ruling_needs_a_recent_proof_of_identity_and_then_goes_through(
    world: World, dispute: Dispute
) -> None:
    """R-E5 (page): a session alone moves no money; after the password the act resumes."""
    client = operator(world, proven=False)
    asked = client.post(page(dispute), {"stands_bps": 5000, "ruling": "Half was there."})
    assert asked.status_code == 302
    assert reverse("account_reauthenticate") in asked["Location"]
    dispute.refresh_from_db()
    assert dispute.state == DisputeState.OPEN
    client.post(asked["Location"], {"password": PASSWORD}, follow=True)
    dispute.refresh_from_db()
    assert (dispute.state, dispute.stands_bps) == (DisputeState.RULED, 5000)
    assert dispute.ruled_by == world.olga.public_id


@pytest.mark.parametrize(
    "body",
    [
        {"stands_bps": "10001", "ruling": "x"},
        {"stands_bps": "-1", "ruling": "x"},
        {"stands_bps": "NaN", "ruling": "x"},
        {"stands_bps": "5000", "ruling": "  "},
        {},
    ],
)
def test_a_ruling_that_cannot_be_read_is_refused_and_changes_nothing(
    world: World, dispute: Dispute, body: dict[str, str]
) -> None:
    assert operator(world).post(page(dispute), body).status_code == 400
    dispute.refresh_from_db()
    assert dispute.state == DisputeState.OPEN


def test_a_dispute_is_ruled_once(world: World, dispute: Dispute) -> None:
    client = operator(world)
    client.post(page(dispute), {"stands_bps": 10_000, "ruling": "First."})
    answer = client.post(page(dispute), {"stands_bps": 0, "ruling": "Second."})
    assert answer.status_code == 400
    dispute.refresh_from_db()
    assert (dispute.stands_bps, dispute.ruling) == (10_000, "First.")


@pytest.mark.parametrize("who", ["alice", "carol", "dave"])
def test_no_party_rules_on_its_own_case(world: World, dispute: Dispute, who: str) -> None:
    """R-E5 (page): the ruling's page is not there for tenants."""
    client = world.client(getattr(world, who))
    answer = client.post(page(dispute), {"stands_bps": 0, "ruling": "Mine."}, follow=True)
    assert answer.status_code == 404
    dispute.refresh_from_db()
    assert dispute.state == DisputeState.OPEN


def test_the_disputes_own_page_leads_to_the_ruling_while_it_is_open(
    world: World, dispute: Dispute
) -> None:
    client = operator(world)
    shown = reverse("admin:leases_dispute_change", args=[dispute.pk])
    assert "Rule on this dispute" in client.get(shown).content.decode()
    door = reverse("admin:leases_dispute_go_to_ruling", args=[dispute.pk])
    assert client.get(door)["Location"] == page(dispute)
    client.post(page(dispute), {"stands_bps": 10_000, "ruling": "As metered."})
    assert "Rule on this dispute" not in client.get(shown).content.decode()
