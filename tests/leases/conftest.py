"""Fixtures of the tests of leases."""

from datetime import datetime

import pytest
from django.core.cache import cache

from tests.leases.scene import Scene, build_scene
from tests.world import World


@pytest.fixture(autouse=True)
def _empty_cache() -> None:
    """Forget since when another test was listening."""
    cache.clear()


@pytest.fixture
def scene(world: World, now: datetime) -> Scene:
    """One unit on sale and a buyer who can pay for it."""
    return build_scene(world, now)
