"""A real browser on our pages: what it complains about fails the test."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.test import Client
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, Response

from fabric.accounts.models import User

HERE = Path(__file__).resolve().parent
AXE = HERE / "vendor" / "axe-core" / "axe.min.js"
SHOTS = settings.BASE_DIR / ".local" / "shots"
# A container's or root's Chromium starts only with these; the rest keeps it from calling home.
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
WCAG = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
SIZES = {"desktop": (1280, 800), "phone": (390, 844)}
THEMES = ("light", "dark")
# Each theme and each width once in the fast tests; the other pairs among the slow ones.
LOOKS = [
    ("light", "desktop"),
    ("dark", "phone"),
    pytest.param(("dark", "desktop"), marks=pytest.mark.slow),
    pytest.param(("light", "phone"), marks=pytest.mark.slow),
]


def find_chromium() -> str | None:
    """Return the browser's path: FABRIC_CHROMIUM, or what the system calls it."""
    named = os.environ.get("FABRIC_CHROMIUM")
    return named or shutil.which("chromium") or shutil.which("chromium-browser")


@dataclass
class Visitor:
    """One browser window with everything that went wrong in it."""

    page: Page
    context: BrowserContext
    base_url: str
    theme: str
    size: str
    complaints: list[str] = field(default_factory=list)

    def go(self, path: str, *, status: int = 200) -> Response:
        """Open a path and insist on its status."""
        with self.expecting(status):
            answer = self.page.goto(self.base_url + path, wait_until="load")
        assert answer is not None
        assert answer.status == status, f"{path} answered {answer.status}"
        return answer

    @contextmanager
    def expecting(self, status: int) -> Iterator[None]:
        """Let the browser report one page's own error status, which it logs as a failure."""
        before = len(self.complaints)
        yield
        if status >= 400:
            self.complaints[before:] = [
                text
                for text in self.complaints[before:]
                if f"the server responded with a status of {status}" not in text
            ]

    def sign_in(self, person: User) -> None:
        """Put a session of this person into the window, without the form."""
        client = Client()
        client.force_login(person, backend=settings.AUTHENTICATION_BACKENDS[0])
        cookie = client.cookies[settings.SESSION_COOKIE_NAME]
        self.context.add_cookies(
            [{"name": cookie.key, "value": cookie.value, "url": self.base_url, "httpOnly": True}]
        )

    def find_barriers(self) -> list[str]:
        """Return what axe-core finds, one line each: rule, where, why.

        Its advice beyond WCAG 2.2 AA counts too, except where the frame is another's: the back
        office's theme draws its own landmarks.
        """
        rules = WCAG if "/operator/" in self.page.url else [*WCAG, "best-practice"]
        self.page.evaluate(AXE.read_text())
        report: dict[str, Any] = self.page.evaluate(
            "(rules) => axe.run(document, {resultTypes: ['violations'], runOnly: rules})", rules
        )
        return [
            f"{rule['id']} at {node['target']}: {node['failureSummary']}"
            for rule in report["violations"]
            for node in rule["nodes"]
        ]

    def take_shot(self, name: str) -> Path:
        """Photograph the whole page."""
        SHOTS.mkdir(parents=True, exist_ok=True)
        target = SHOTS / f"{name}-{self.size}-{self.theme}.png"
        self.page.screenshot(path=target, full_page=True, animations="disabled")
        return target

    def find_overflow(self) -> str:
        """Return what sticks out of the page sideways, which no page may do."""
        text: str = self.page.evaluate(
            """() => {
              const wide = document.documentElement.clientWidth;
              if (document.documentElement.scrollWidth <= wide) return "";
              const out = [...document.querySelectorAll("main *, header *, nav *")].filter(
                (e) => e.getBoundingClientRect().right > wide + 1 && !e.closest(".scroll, .rail, .tabs, .visually-hidden"));
              return out.slice(0, 3).map((e) => e.tagName + "." + e.getAttribute("class")).join(", ") || "the page";
            }"""
        )
        return text


@contextmanager
def open_window(
    browser: Browser,
    base_url: str,
    *,
    theme: str = "light",
    size: str = "desktop",
    script: bool = True,
) -> Iterator[Visitor]:
    """Open a window; on leaving, fail for anything the browser complained about."""
    width, height = SIZES[size]
    context = browser.new_context(
        viewport={"width": width, "height": height},
        color_scheme="dark" if theme == "dark" else "light",
        java_script_enabled=script,
        reduced_motion="reduce",
    )
    page = context.new_page()
    page.set_default_timeout(30_000)
    visitor = Visitor(page, context, base_url, theme, size)

    def hear(message: ConsoleMessage) -> None:
        if message.type in {"error", "warning"}:
            visitor.complaints.append(f"{page.url}: console {message.type}: {message.text}")

    page.on("console", hear)
    page.on("pageerror", lambda error: visitor.complaints.append(f"{page.url}: {error}"))
    try:
        yield visitor
    finally:
        context.close()
    assert not visitor.complaints, "\n".join(visitor.complaints)
