"""The demo's cast: complete, safe to make twice, and never part of a real exchange."""

import json
from datetime import datetime
from io import StringIO
from typing import Any

import pytest
from django.conf import LazySettings
from django.core.management import CommandError, call_command

from fabric.accounts.models import Organisation, User
from fabric.journal.models import ProtocolParameters
from providers.models import EnrolmentToken, Node, Provider
from tests.world import World


def _create() -> dict[str, Any]:
    said = StringIO()
    call_command("create_demo_cast", stdout=said)
    made: dict[str, Any] = json.loads(said.getvalue())
    return made


def test_the_cast_has_three_logins_and_nine_machines_to_enrol(db: None) -> None:
    """R-E5 (page): buyer, provider and operator can sign in; eight classes are simulated."""
    made = _create()
    assert set(made["logins"]) == {"buyer", "provider", "operator"}
    for email in made["logins"].values():
        assert User.objects.get(email=email).check_password(made["password"])
    assert len({node["class"] for node in made["simulated"]}) == 8
    assert EnrolmentToken.objects.filter(simulated=True).count() == 8
    assert EnrolmentToken.objects.filter(simulated=False).count() == 1


def test_windows_of_seconds_are_parameters_not_code(db: None) -> None:
    """R-C3 (api): the demo's windows come from the same versioned rows as everybody's."""
    _create()
    body = ProtocolParameters.objects.get(kind="commercial").body
    assert (body["window_seconds"], body["dispute_window_seconds"]) == (5, 10)


def test_making_the_cast_again_adds_nobody(db: None) -> None:
    _create()
    before = (User.objects.count(), Organisation.objects.count(), Provider.objects.count())
    _create()
    assert (User.objects.count(), Organisation.objects.count(), Provider.objects.count()) == before
    assert ProtocolParameters.objects.count() == 2


def test_an_enrolled_machine_gets_no_second_token(db: None, now: datetime) -> None:
    first = _create()
    provider = Provider.objects.get(slug="northwind-compute")
    Node.objects.create(provider=provider, name=first["host"]["name"], enrolled_at=now)
    again = _create()
    assert again["host"]["token"] is None
    assert all(node["token"] for node in again["simulated"])


def test_a_real_exchange_has_no_demo_cast(world: World, settings: LazySettings) -> None:
    settings.FABRIC_ALLOW_SIMULATED = False
    before = User.objects.count()
    with pytest.raises(CommandError, match="no demo cast"):
        _create()
    assert User.objects.count() == before
