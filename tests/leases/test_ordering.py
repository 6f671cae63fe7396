"""Placing an order: everything together, or nothing at all."""

from datetime import timedelta
from typing import Any

import pytest
from django.conf import LazySettings

from billing.models import Account, Agreement, Transfer
from billing.services.ledger import InsufficientFunds
from fabric.journal.models import Event
from fabric.lib.errors import DomainError, InvalidInput, NotAllowed, NotVisible
from leases.domain.states import LeaseState
from leases.models import Lease, LeaseWindow, Order
from leases.services import order_checks, ordering
from leases.services.budgets import ProjectBudgetExceeded
from listings.services import checks, publishing
from providers.models import DesiredItem, Hold, Node
from tests.leases.scene import BUDGET, MONEY, PRICE, Scene, books_balance
from tests.listings.bodies import body_with
from tests.listings.machines import published_listing


def assert_nothing_happened(scene: Scene) -> None:
    assert not Order.objects.exists()
    assert not Lease.objects.exists()
    assert not Agreement.objects.exists()
    assert not Hold.objects.filter(live=True).exists()
    assert not DesiredItem.objects.filter(kind="workload").exists()
    assert not Account.objects.filter(kind="escrow").exists()
    assert scene.wallet_micros() == MONEY
    assert books_balance()


def test_an_order_brings_everything_into_being_together(scene: Scene) -> None:
    """R-C1 (api): the wallet pays the escrow in the transaction that makes the lease."""
    order = scene.order()

    lease = scene.again(order.lease)
    assert lease.state == LeaseState.PROVISIONING
    assert scene.wallet_micros() == MONEY - BUDGET
    assert scene.escrow_micros(lease) == BUDGET
    assert [row.unit.device.node for row in lease.lease_units.all()] == [scene.node]
    hold = Hold.objects.get(holder=lease.public_id, live=True)
    assert hold.period.upper == lease.paid_until == scene.now + timedelta(seconds=15)
    windows = LeaseWindow.objects.filter(lease=lease)
    assert [window.coverage.seconds for window in windows] == [5, 5, 5]
    item = DesiredItem.objects.get(node=scene.node, key=lease.public_id)
    assert item.body["stop"] is False
    assert item.body["paid_until"] == "2026-12-01T12:00:15Z"
    assert "access_token" not in item.body
    assert lease.transitions.get().to_state == LeaseState.PROVISIONING
    assert Event.objects.filter(subject=lease.public_id, kind="lease.was_ordered").exists()
    assert books_balance()


def test_terms_pin_the_revision_the_promise_and_the_parameters(scene: Scene) -> None:
    """R-C3 (api): what was agreed is content-addressed, with both parties' acceptance."""
    lease = scene.order().lease
    terms = lease.agreement.terms.get()
    revision = scene.listing.current_revision
    assert revision is not None
    assert terms.body["revision"] == {
        "id": revision.public_id,
        "number": 1,
        "digest": bytes(revision.digest).hex(),
    }
    assert terms.body["promise"] == revision.body["promise"]
    assert terms.body["acceptance"]["buyer"]["by"] == scene.world.alice.public_id
    assert terms.body["acceptance"]["provider"]["by"] == scene.world.carol.public_id
    assert bytes(terms.parameters_digest) == bytes(scene.world.commercial.digest)
    assert (terms.price_micros, terms.per_quantity, terms.units) == (PRICE, 3600, 1)


def test_an_order_that_cannot_be_funded_does_not_exist(scene: Scene) -> None:
    """R-C1 (api): one micro-unit short leaves no order, no hold, no account and no lease."""
    with pytest.raises(InsufficientFunds) as caught:
        scene.order(budget_micros=MONEY + 1)
    assert caught.value.status == 402
    assert_nothing_happened(scene)
    assert scene.order(budget_micros=MONEY).lease.funded_micros == MONEY


def test_a_budget_below_one_second_is_refused(scene: Scene) -> None:
    """R-C11 (api): no money, no window: not even the first."""
    with pytest.raises(InvalidInput) as caught:
        scene.order(budget_micros=12)
    assert caught.value.errors[0].field == "budget_micros"
    assert caught.value.errors[0].accepted == "at least 13 micro-units"
    assert_nothing_happened(scene)
    lease = scene.order(budget_micros=13).lease
    assert LeaseWindow.objects.get(lease=lease).coverage.seconds == 1


def test_the_same_order_again_is_the_same_order(scene: Scene) -> None:
    """R-C15 (api): a key places one order, however often it is sent."""
    first = scene.order()
    assert scene.order() == first
    assert Order.objects.count() == 1
    assert scene.wallet_micros() == MONEY - BUDGET
    with pytest.raises(ordering.OrderKeyReused) as caught:
        scene.order(budget_micros=BUDGET + 1)
    assert caught.value.status == 422


def test_a_taken_unit_names_the_nearest_alternatives(scene: Scene) -> None:
    """R-C2 (api): no unit is in two leases; the refusal says what else is free."""
    other = published_listing(scene.world, now=scene.now, name="reykjavik-2")
    scene.order()
    with pytest.raises(ordering.UnitsNotFree) as caught:
        scene.order(key="order-2")
    assert caught.value.status == 409
    assert caught.value.metadata["alternatives"] == [
        {
            "listing": other.public_id,
            "title": "Host CPU, 2 cores",
            "provider": "Northwind Compute",
            "region": "eu-north",
            "price_micros_per_hour": "50000",
        }
    ]
    assert Order.objects.count() == 1


@pytest.mark.parametrize(
    ("changes", "refusal"),
    [
        ({"price_cap_micros_per_hour": PRICE - 1}, order_checks.PriceAboveCap),
        ({"accepts_interruption": False}, order_checks.ConsentMissing),
        ({"accepts_unisolated": False}, order_checks.ConsentMissing),
        ({"unit_count": 2}, InvalidInput),
        ({"unit_count": 0}, InvalidInput),
        ({"unit_count": True}, InvalidInput),
        ({"max_seconds": 24 * 3600 + 1}, InvalidInput),
        ({"max_seconds": 0}, InvalidInput),
        ({"budget_micros": 0}, InvalidInput),
        ({"budget_micros": -1}, InvalidInput),
        ({"budget_micros": 10.5}, InvalidInput),
        ({"budget_micros": float("nan")}, InvalidInput),
        ({"budget_micros": 2**63}, InvalidInput),
        ({"key": ""}, InvalidInput),
    ],
)
def test_an_order_that_breaks_a_rule_leaves_nothing(
    scene: Scene, changes: dict[str, Any], refusal: type[DomainError]
) -> None:
    """R-C1 (api): whatever is refused has not happened."""
    with pytest.raises(refusal):
        scene.order(**changes)
    assert_nothing_happened(scene)


def test_unisolated_leases_need_the_providers_and_the_exchanges_consent(
    scene: Scene, settings: LazySettings
) -> None:
    """R-E1 (api): without a container nothing runs unless all three agree."""
    Node.objects.filter(pk=scene.node.pk).update(accepts_unisolated=False)
    with pytest.raises(order_checks.UnisolatedRefused):
        scene.order()
    Node.objects.filter(pk=scene.node.pk).update(accepts_unisolated=True)
    settings.FABRIC_ALLOW_UNISOLATED = False
    with pytest.raises(order_checks.UnisolatedRefused):
        scene.order()
    assert_nothing_happened(scene)


def test_simulated_nodes_take_no_orders_where_they_are_not_allowed(
    scene: Scene, settings: LazySettings
) -> None:
    """R-E4 (api): a simulated node sells nothing in production."""
    Node.objects.filter(pk=scene.node.pk).update(simulated=True)
    settings.FABRIC_ALLOW_SIMULATED = False
    with pytest.raises(order_checks.ListingNotOrderable):
        scene.order()
    assert_nothing_happened(scene)


@pytest.mark.parametrize("state", ["held_back", "fenced", "proving"])
def test_a_node_that_is_not_admitted_takes_no_orders(scene: Scene, state: str) -> None:
    """R-B6 (api): a fenced node gets no new placements at once."""
    Node.objects.filter(pk=scene.node.pk).update(state=state, held_back_reasons=[{"code": "X"}])
    with pytest.raises(order_checks.ListingNotOrderable):
        scene.order()
    assert_nothing_happened(scene)


def test_nobody_orders_from_themselves(scene: Scene) -> None:
    """R-C2 (api): a lease has two parties."""
    with pytest.raises(order_checks.OwnListing):
        scene.order(actor=scene.carol, project=scene.world.northwind_project)
    assert_nothing_happened(scene)


def test_an_order_is_placed_for_ones_own_project_and_by_right(scene: Scene) -> None:
    """R-C19 (api): another tenant's project does not exist, and a viewer does not order."""
    with pytest.raises(NotVisible):
        scene.order(project=scene.world.strangers_project)
    bob = scene.world.actor(scene.world.bob)
    with pytest.raises(NotAllowed):
        scene.order(actor=type(bob)(id=bob.id, organisation_id=bob.organisation_id))
    assert_nothing_happened(scene)
    assert scene.order(actor=bob).placed_by == bob.id


def test_a_projects_budget_bounds_its_open_orders(scene: Scene) -> None:
    """R-C19 (api): the second order is refused while the first one holds the budget."""
    scene.world.project.budget_micros = BUDGET + 5
    scene.world.project.save()
    other = published_listing(scene.world, now=scene.now, name="reykjavik-2")
    other.node.accepts_unisolated = True
    other.node.save()
    first = scene.order()
    with pytest.raises(ProjectBudgetExceeded) as caught:
        scene.order(listing=other, key="order-2", budget_micros=1000)
    assert caught.value.metadata == {
        "budget_micros": str(BUDGET + 5),
        "committed_micros": str(BUDGET),
    }
    scene.end(first.lease, scene.now)
    scene.sweep(scene.now + timedelta(seconds=1))
    assert scene.order(listing=other, key="order-2", budget_micros=1000).budget_micros == 1000


def test_a_listing_edited_under_a_live_lease_leaves_its_terms(scene: Scene) -> None:
    """R-A10 (api): a lease keeps the exact revision it was signed on."""
    lease = scene.order().lease
    before = bytes(lease.agreement.terms.get().digest)
    dearer = body_with(price__amount_micros="90000", title="Dearer")
    publishing.publish(
        actor=scene.carol,
        provider=scene.world.provider,
        node=scene.node,
        body=dearer,
        now=scene.now,
        listing=scene.listing,
    )
    checks.check_revision(revision=scene.listing.revisions.get(number=2), now=scene.now)
    scene.listing.refresh_from_db()
    assert scene.listing.price_micros_per_hour == 90_000
    lease = scene.again(lease)
    assert lease.revision.number == 1
    terms = lease.agreement.terms.get()
    assert bytes(terms.digest) == before
    assert terms.price_micros == PRICE


def test_escrow_moves_are_in_the_ledger_once(scene: Scene) -> None:
    """R-C13 (api): an order is one transfer out of the wallet."""
    scene.order()
    scene.order()
    assert Transfer.objects.filter(kind="order").count() == 1
