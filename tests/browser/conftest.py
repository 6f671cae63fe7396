"""One browser for all tests that need one; without one they are skipped, loudly."""

import os
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, sync_playwright

from tests.agent.conftest import machine
from tests.browser.harness import FLAGS, find_chromium
from tests.standin import connected_standin

__all__ = ["connected_standin", "machine"]

# Playwright keeps an event loop in this thread; our queries here are plain and wait their turn.
os.environ.setdefault("DJANGO_ALLOW_ASYNC_UNSAFE", "true")


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Start Chromium; FABRIC_NEED_BROWSER makes its absence a failure instead of a skip."""
    path = find_chromium()
    if path is None:
        message = "no Chromium: install the package `chromium` or set FABRIC_CHROMIUM"
        if os.environ.get("FABRIC_NEED_BROWSER"):
            pytest.fail(message)
        pytest.skip(message)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield browser
        browser.close()
