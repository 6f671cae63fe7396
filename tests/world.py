"""The people every test knows; a test says only what differs.

Alice owns Meridian Lab, which buys; Bob is a member there. Carol owns Northwind Compute, which
provides. Dave is a stranger with an organisation of his own that both buys and provides. Olga
operates the exchange.
"""

from dataclasses import dataclass
from datetime import UTC, datetime

from allauth.account.models import EmailAddress
from django.conf import settings
from django.test import Client

from fabric.accounts.access import actor_of_person
from fabric.accounts.domain.actors import Actor
from fabric.accounts.domain.roles import Role
from fabric.accounts.models import Membership, Organisation, Project, User
from fabric.journal.models import ProtocolParameters
from fabric.journal.services import parameters
from providers.models import Provider
from providers.services.reference import load_classes

PASSWORD = "a long enough sentence to sign in with"
IN_FORCE_SINCE = datetime(2026, 1, 1, tzinfo=UTC)

# The rules of the demo: short windows, so that a test can live through several.
COMMERCIAL = {
    "window_seconds": 5,
    "dispute_window_seconds": 10,
    "reserve_ahead_windows": 2,
    "provision_timeout_seconds": 60,
    "provider_bps": 8_500,
    "verification_bps": 300,
    "network_bps": 300,
    "infrastructure_bps": 400,
    "margin_bps": 500,
    "hold_bps": 2_000,
}
OPERATIONAL = {
    "beat_seconds": 1,
    "suspect_after_seconds": 5,
    "dead_after_seconds": 15,
    "challenge_seconds": 120,
}


@dataclass(frozen=True)
class World:
    """Who is there, with ready-made actors and signed-in clients."""

    alice: User
    bob: User
    carol: User
    dave: User
    olga: User
    meridian: Organisation
    northwind: Organisation
    strangers: Organisation
    project: Project
    northwind_project: Project
    strangers_project: Project
    provider: Provider
    strangers_provider: Provider
    commercial: ProtocolParameters
    operational: ProtocolParameters

    def actor(self, person: User) -> Actor:
        """Return the person as services see them: with the rights of their one organisation."""
        membership = person.memberships.select_related("organisation").first()
        return actor_of_person(person, membership)

    def client(self, person: User | None = None) -> Client:
        """Return a test client, signed in as the person if one is given."""
        client = Client()
        if person is not None:
            client.force_login(person, backend=settings.AUTHENTICATION_BACKENDS[0])
        return client


def build_world() -> World:
    """Create everybody, the rules in force and the hardware classes."""
    meridian = _organisation("Meridian Lab", "meridian-lab")
    northwind = _organisation("Northwind Compute", "northwind-compute")
    strangers = _organisation("Dave and Daughters", "dave-and-daughters")
    olga = _person("Olga", staff=True)
    load_classes()
    commercial, operational = adopt_rules(olga)
    return World(
        alice=_person("Alice", (meridian, Role.OWNER)),
        bob=_person("Bob", (meridian, Role.MEMBER)),
        carol=_person("Carol", (northwind, Role.OWNER)),
        dave=_person("Dave", (strangers, Role.OWNER)),
        olga=olga,
        meridian=meridian,
        northwind=northwind,
        strangers=strangers,
        project=Project.objects.create(organisation=meridian, name="Protein folding"),
        northwind_project=Project.objects.create(organisation=northwind, name="Northwind"),
        strangers_project=Project.objects.create(organisation=strangers, name="Household"),
        provider=_provider(northwind, country="DE", region="eu-central"),
        strangers_provider=_provider(strangers, country="FI", region="eu-north"),
        commercial=commercial,
        operational=operational,
    )


def adopt_rules(operator: User) -> tuple[ProtocolParameters, ProtocolParameters]:
    """Put the rules of the tests into force, long before the tests' `now`."""
    commercial = parameters.adopt_parameters(
        kind=ProtocolParameters.Kind.COMMERCIAL,
        body=COMMERCIAL,
        proposed_by=operator.public_id,
        approved_by="exchange",
        effective_at=IN_FORCE_SINCE,
    )
    operational = parameters.adopt_parameters(
        kind=ProtocolParameters.Kind.OPERATIONAL,
        body=OPERATIONAL,
        proposed_by=operator.public_id,
        approved_by="exchange",
        effective_at=IN_FORCE_SINCE,
    )
    return commercial, operational


def _organisation(name: str, slug: str) -> Organisation:
    return Organisation.objects.create(name=name, slug=slug)


def _person(
    name: str, membership: tuple[Organisation, Role] | None = None, *, staff: bool = False
) -> User:
    person = User.objects.create_user(
        f"{name.lower()}@example.org", PASSWORD, name=name, is_staff=staff, is_superuser=staff
    )
    EmailAddress.objects.create(user=person, email=person.email, primary=True, verified=True)
    if membership is not None:
        organisation, role = membership
        Membership.objects.create(user=person, organisation=organisation, role=role)
    return person


def _provider(organisation: Organisation, *, country: str, region: str) -> Provider:
    return Provider.objects.create(
        organisation=organisation,
        name=organisation.name,
        slug=organisation.slug,
        country=country,
        region=region,
    )
