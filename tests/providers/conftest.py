"""What tests of the agent's door share."""

import pytest
from django.core.cache import cache

from fabric.lib.clock import utc_now
from providers.services.enrolment import create_token
from tests.providers.agents import TestAgent
from tests.world import World


@pytest.fixture(autouse=True)
def _empty_cache() -> None:
    """Forget nonces and sweeps of other tests."""
    cache.clear()


@pytest.fixture
def token(world: World) -> str:
    """A fresh enrolment token of Carol's, for a machine without containers."""
    text, _ = create_token(
        provider=world.provider,
        actor=world.actor(world.carol),
        now=utc_now(),
        accepts_unisolated=True,
    )
    return text


@pytest.fixture
def agent(token: str) -> TestAgent:
    """An agent whose machine is enrolled and has reported nothing yet."""
    return TestAgent().enrol(token)
