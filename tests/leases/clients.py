"""Clients of the API for people of the scene."""

from typing import Any

from django.test import Client

from fabric.accounts.access import actor_of_person
from fabric.accounts.domain.scopes import SCOPES
from fabric.accounts.models import Membership, Project, User
from fabric.accounts.services.api_keys import issue_key
from fabric.lib.clock import utc_now
from leases.models import Lease
from tests.leases.scene import BUDGET, PRICE, Scene


def key_client(person: User, project: Project | None = None) -> Client:
    """Return a client with a key of all scopes, of the person's first project by default."""
    membership = Membership.objects.select_related("organisation").get(user=person)
    text, _ = issue_key(
        actor=actor_of_person(person, membership),
        created_by=person,
        project=project or membership.organisation.projects.order_by("id")[0],
        name="tests",
        scopes=list(SCOPES),
        now=utc_now(),
    )
    return Client(headers={"Authorization": f"Bearer {text}"})


def order_body(scene: Scene, **changes: Any) -> dict[str, Any]:
    """Return the body of an order for the scene's unit."""
    return {
        "listing": scene.listing.public_id,
        "budget_micros": str(BUDGET),
        "price_cap_micros_per_hour": str(PRICE),
        "max_seconds": 3600,
        "accepts_interruption": True,
        "accepts_unisolated": True,
        **changes,
    }


def addresses_of(lease: Lease) -> list[tuple[str, str]]:
    """Return every operation on the objects of a lease: method and address."""
    reading = lease.readings.get()
    batch = reading.batch
    dispute = lease.disputes.get()
    assert batch is not None
    lease_path = f"/api/v1/leases/{lease.public_id}/"
    dispute_path = f"/api/v1/disputes/{dispute.public_id}/"
    return [
        ("GET", f"/api/v1/orders/{lease.order.public_id}/"),
        ("GET", lease_path),
        *(
            ("GET", f"{lease_path}{part}/")
            for part in ("readings", "batches", "witness-readings", "lines", "events")
        ),
        ("GET", f"/api/v1/readings/{reading.public_id}/"),
        ("GET", f"/api/v1/batches/{batch.public_id}/envelope/"),
        ("GET", f"/api/v1/disputes/?lease={lease.public_id}"),
        ("GET", dispute_path),
        ("POST", f"{lease_path}ending/"),
        ("POST", f"{lease_path}top-ups/"),
        ("POST", f"{lease_path}access-token/"),
        ("POST", f"{dispute_path}withdrawal/"),
    ]
