"""Clients that call the API with a key."""

from collections.abc import Callable, Sequence

import pytest
from django.test import Client

from fabric.accounts.access import actor_of_person
from fabric.accounts.domain.scopes import SCOPES
from fabric.accounts.models import Membership, User
from fabric.accounts.services.api_keys import issue_key
from fabric.lib.clock import utc_now
from tests.standin import shared_standin, standin

__all__ = ["ApiClient", "api", "shared_standin", "standin"]

ApiClient = Callable[..., Client]


@pytest.fixture
def api() -> ApiClient:
    """Return a maker of clients that hold a key of a person's first project."""

    def make(person: User, scopes: Sequence[str] = tuple(SCOPES)) -> Client:
        membership = Membership.objects.select_related("organisation").get(user=person)
        text, _ = issue_key(
            actor=actor_of_person(person, membership),
            created_by=person,
            project=membership.organisation.projects.order_by("id")[0],
            name="tests",
            scopes=scopes,
            now=utc_now(),
        )
        return Client(headers={"Authorization": f"Bearer {text}"})

    return make
