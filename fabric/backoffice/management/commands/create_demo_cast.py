"""Puts the people, organisations and rules of a demo there; safe to run again."""

import json
from dataclasses import dataclass
from datetime import datetime
from io import StringIO
from typing import Any

from allauth.account.models import EmailAddress
from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from django.db import transaction

from fabric.accounts.domain.actors import EXCHANGE
from fabric.accounts.domain.roles import Role
from fabric.accounts.models import Membership, Organisation, Project, User
from fabric.lib.clock import utc_now
from providers.models import Node, Provider
from providers.services import enrolment

PASSWORD = "fabric-demo-2026"  # noqa: S105 - opens only a demo on the loopback
HOST_PRICE_MICROS = 3_600_000  # an hour: a tenth of a cent a second, so that one sees money move
# Windows of seconds, so that a person can watch one settle; the same code runs with hours.
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
    "suspect_after_seconds": 6,
    "dead_after_seconds": 20,
    "challenge_seconds": 120,
}


@dataclass(frozen=True)
class Simulated:
    """A simulated node: its class, what its listing says, and its price per accelerator-hour."""

    slug: str
    title: str
    price_micros: int


# Organisation, country, region, and the simulated nodes it runs.
SIMULATED_PROVIDERS: tuple[tuple[str, str, str, tuple[Simulated, ...]], ...] = (
    (
        "Lumen Racks",
        "SE",
        "eu-north",
        (
            Simulated("nvidia-h100-80gb-sxm", "H100 SXM, one of eight", 2_390_000),
            Simulated("nvidia-h200-141gb-sxm", "H200 SXM for long contexts", 3_150_000),
            Simulated("nvidia-a100-80gb-sxm", "A100 80 GB, steady", 1_290_000),
        ),
    ),
    (
        "Harbour Compute",
        "SG",
        "ap-southeast",
        (
            Simulated("nvidia-l4-24gb", "L4, small and cool", 290_000),
            Simulated("nvidia-l40s-48gb", "L40S for inference", 790_000),
            Simulated("nvidia-rtx-6000-ada-48gb", "RTX 6000 Ada workstation", 740_000),
        ),
    ),
    (
        "Kitchen Table GPUs",
        "BR",
        "sa-east",
        (
            Simulated("nvidia-rtx-4090-24gb", "4090 under the table", 340_000),
            Simulated("nvidia-rtx-3090-24gb", "3090, retired from games", 190_000),
        ),
    ),
)


class Command(BaseCommand):
    """Creates the cast and prints, as one JSON object, how to sign in and what may still enrol."""

    help = "Create a demo's people, providers, rules and enrolment tokens."

    def handle(self, *args: Any, **options: Any) -> None:
        """Create what is missing; never in a deployment that takes no simulated nodes."""
        if not settings.FABRIC_ALLOW_SIMULATED:
            raise CommandError("this deployment takes no simulated nodes, so it has no demo cast")
        now = utc_now()
        call_command("load_reference_data", stdout=StringIO(), **COMMERCIAL, **OPERATIONAL)
        with transaction.atomic():
            self.stdout.write(json.dumps(_create_cast(now)))


def _create_cast(now: datetime) -> dict[str, Any]:
    operator = _person("operator@demo.example", "Olga Operator", staff=True)
    buyer = _person("buyer@demo.example", "Alice Buyer")
    _member(buyer, "Meridian Lab", project="Protein folding")
    provider = _person("provider@demo.example", "Carol Provider")
    home = _member(provider, "Northwind Compute", project="House")
    northwind = _provider(home, "DE", "eu-central")
    return {
        "password": PASSWORD,
        "logins": {
            "buyer": buyer.email,
            "provider": provider.email,
            "operator": operator.email,
        },
        "host": {
            **_enrolment(northwind, "this-machine", now, simulated=False),
            "title": "This machine's own processor",
            "price_micros": HOST_PRICE_MICROS,
        },
        "simulated": [
            {
                **_enrolment(owner, f"sim-{number:02d}", now, simulated=True),
                "class": node.slug,
                "title": node.title,
                "price_micros": node.price_micros,
            }
            for number, (owner, node) in enumerate(_simulated_nodes(), start=1)
        ],
    }


def _person(email: str, name: str, *, staff: bool = False) -> User:
    known = User.objects.filter(email=email).first()
    if known is not None:
        return known
    person = User.objects.create_user(
        email, PASSWORD, name=name, is_staff=staff, is_superuser=staff
    )
    EmailAddress.objects.create(user=person, email=email, primary=True, verified=True)
    return person


def _member(person: User, organisation_name: str, *, project: str) -> Organisation:
    organisation, _ = Organisation.objects.get_or_create(
        slug=organisation_name.lower().replace(" ", "-"), defaults={"name": organisation_name}
    )
    Membership.objects.get_or_create(
        user=person, organisation=organisation, defaults={"role": Role.OWNER}
    )
    Project.objects.get_or_create(organisation=organisation, name=project)
    return organisation


def _provider(organisation: Organisation, country: str, region: str) -> Provider:
    provider, _ = Provider.objects.get_or_create(
        organisation=organisation,
        defaults={
            "name": organisation.name,
            "slug": organisation.slug,
            "country": country,
            "region": region,
        },
    )
    return provider


def _simulated_nodes() -> list[tuple[Provider, Simulated]]:
    keeper = _person("fleet@demo.example", "Keeper of the simulated fleet")
    return [
        (owner, node)
        for name, country, region, nodes in SIMULATED_PROVIDERS
        for owner in [_provider(_member(keeper, name, project="House"), country, region)]
        for node in nodes
    ]


def _enrolment(owner: Provider, name: str, now: datetime, *, simulated: bool) -> dict[str, Any]:
    """Return a node's name and a token to enrol it with, or None when it is enrolled already."""
    token = None
    if not Node.objects.filter(provider=owner, name=name).exists():
        token, _ = enrolment.create_token(
            provider=owner,
            actor=EXCHANGE,
            now=now,
            accepts_unisolated=settings.FABRIC_ALLOW_UNISOLATED,
            simulated=simulated,
        )
    return {
        "name": name,
        "token": token,
        "simulated": simulated,
        "region": owner.region,
        "country": owner.country,
    }
