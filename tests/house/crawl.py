"""Every address of the product, with objects of one buyer and one provider to fill it in."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from django.apps import apps
from django.test import Client

from billing.models import TopUp, Transfer
from fabric.accounts.domain.roles import Role
from fabric.accounts.models import ApiKey, User
from fabric.accounts.services.invitations import invite_member
from fabric.api.matrix import addresses
from fabric.lib.clock import utc_now
from fabric.lib.models import PublicModel
from leases.models import Lease
from leases.services import disputes
from providers.services.enrolment import create_token
from tests.leases.clients import key_client
from tests.leases.scene import Scene, build_scene, second
from tests.world import World

# Machines of others have their own tests; these two libraries bring their own pages.
OUTSIDE = ("/agent/v1/", "/webhooks/", "/operator/", "/accounts/")


@dataclass(frozen=True)
class Town:
    """A lease with everything about it, and what each part of an address stands for."""

    scene: Scene
    lease: Lease
    parts: dict[str, str]

    @property
    def world(self) -> World:
        return self.scene.world

    def fill(self, path: str) -> str:
        """Return an address with ids in it; an unknown part means: add its object here."""
        for part in parts_of(path):
            path = path.replace("{" + part + "}", self.name_of(part))
        return path

    def name_of(self, part: str) -> str:
        """Return what stands for one part of an address."""
        return self.parts.get(part) or _first_of(part)

    def clients(self, person: User | None) -> dict[str, Client]:
        """Return how a person calls pages and the API."""
        if person is None:
            return {"page": Client(), "api": Client()}
        has_key = person.memberships.exists()
        page = self.world.client(person)
        return {"page": page, "api": key_client(person) if has_key else page}


def build_town(world: World) -> Town:
    """Build one of everything that an address can name."""
    now = utc_now().replace(microsecond=0)
    scene = build_scene(world, now)
    start = datetime.fromtimestamp(int(now.timestamp()) // 5 * 5 - 20, tz=UTC)
    scene.beat(start)
    lease = scene.running(now=start)
    scene.deliver(lease, scene.meter(lease).next(start), second(start, 5))
    reading = lease.readings.get()
    dispute = disputes.open_dispute(
        actor=scene.alice, reading=reading, statement="Slow.", now=second(start, 6)
    )
    invitation = invite_member(
        actor=scene.alice,
        organisation=world.meridian,
        invited_by=world.alice,
        email="erin@example.org",
        role=Role.MEMBER,
        now=now,
    )
    key = ApiKey.objects.create(
        project=world.project,
        name="crawl",
        visible_prefix="fk_test_crawl000",
        digest=bytes(32),
        scopes=["account:read"],
        created_by=world.alice,
        created_at=now,
    )
    TopUp.objects.create(
        organisation=world.meridian,
        amount_micros=10_000_000,
        created_by=world.alice.public_id,
        created_at=now,
    )
    _, token = create_token(provider=world.provider, actor=scene.carol, now=now)
    # Parts that no row names by itself; `{lease_id}` and its like find their row (see `fill`).
    parts = {
        "number": "1",
        "lease_id": lease.public_id,
        "listing_id": scene.listing.public_id,
        "project_id": world.project.public_id,
        "person_id": world.bob.public_id,
        "key_id": key.public_id,
        "report_id": scene.node.reports.latest("received_at").public_id,
        "token_id": token.public_id,
        "transfer_id": str(Transfer.objects.filter(kind="top_up").latest("id").pk),
        "code": "not_found",
        "token": "not-a-token",
    }
    assert dispute.reading == reading
    assert invitation.organisation == world.meridian
    return Town(scene, scene.again(lease), parts)


def _first_of(part: str) -> str:
    """Return the public id of the only kind of row that `{usage_record_id}` can mean."""
    noun = part.removesuffix("_id").replace("_", "")
    for model in apps.get_models():
        if issubclass(model, PublicModel) and model._meta.model_name == noun:
            row = model._default_manager.first()
            assert row is not None, f"{part}: let build_town make one of them"
            return row.public_id
    raise AssertionError(f"{part}: no model is called so; let build_town say what it means")


def parts_of(path: str) -> list[str]:
    """Return the names between braces."""
    return [piece.split("}")[0] for piece in path.split("{")[1:]]


def all_addresses() -> Iterator[str]:
    """Yield every address, once, outside of what has its own tests."""
    seen = set()
    for path, _ in addresses():
        if not path.startswith(OUTSIDE) and path not in seen:
            seen.add(path)
            yield path


def kind_of(path: str) -> str:
    """Return which client an address wants."""
    return "api" if path.startswith("/api/v1/") else "page"
