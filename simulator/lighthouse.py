"""Lighthouse on one page: what it scores, and how much a first visit loads."""

import json
import os
import shutil
import statistics
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from simulator.measure import MeasurementFailed

CATEGORIES = ("performance", "accessibility", "best-practices")
_MOST_TRIES = 3
_TIMEOUT_SECONDS = 180
_FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]  # root's and a container's


class LighthouseFailed(MeasurementFailed):
    """Lighthouse is not there, or could not load the page; the message says what to do."""


@dataclass(frozen=True)
class Visit:
    """One visit with an empty cache: scores from 0 to 100, and the bytes that were transferred."""

    scores: Mapping[str, float]
    loaded_bytes: int
    findings: tuple[str, ...]
    """Titles of what cost points, by category."""
    heaviest: tuple[tuple[str, int], ...]
    """The largest of what was transferred: address and bytes."""


def install(root: Path) -> None:
    """Install the locked Lighthouse below `root`."""
    if shutil.which("npm") is None:
        raise LighthouseFailed("Lighthouse needs Node 18.16 or later with npm; install nodejs.")
    done = subprocess.run(
        ["npm", "ci"], cwd=root, capture_output=True, text=True, timeout=300, check=False
    )
    if done.returncode != 0:
        raise LighthouseFailed(f"npm ci failed: {done.stderr.strip()[-2000:]}")


def find_browser() -> str:
    """Return the Chromium that Lighthouse drives."""
    names = ("chromium", "chromium-browser", "google-chrome")
    found = os.environ.get("FABRIC_CHROMIUM") or next(filter(None, map(shutil.which, names)), None)
    if found is None:
        raise LighthouseFailed(
            "Lighthouse needs Chromium; install it or name it in FABRIC_CHROMIUM."
        )
    return found


def visit(url: str, *, browser: str, cookies: Mapping[str, str]) -> Visit:
    """Visit a page once, on the desktop preset, with nothing cached; `cookies` sign the visitor in.

    On a busy machine the browser at times records nothing, and Lighthouse asks to be run again.
    """
    for tries_left in reversed(range(_MOST_TRIES)):
        try:
            return _visit(url, browser=browser, cookies=cookies)
        except LighthouseFailed as failure:
            if not tries_left:
                raise
            print(f"again, because {failure}", flush=True)
    raise AssertionError("a visit is tried at least once")


def _visit(url: str, *, browser: str, cookies: Mapping[str, str]) -> Visit:
    asked = {
        "url": url,
        "browser": browser,
        "flags": _FLAGS,
        "categories": CATEGORIES,
        "cookies": [{"name": name, "value": value} for name, value in cookies.items()],
    }
    done = subprocess.run(
        ["node", str(Path(__file__).with_suffix(".mjs"))],
        input=json.dumps(asked),
        capture_output=True,
        text=True,
        timeout=_TIMEOUT_SECONDS,
        check=False,
    )
    if done.returncode != 0:
        raise LighthouseFailed(f"Lighthouse could not visit {url}: {done.stderr.strip()[-2000:]}")
    return read_report(json.loads(done.stdout), url=url)


def read_report(report: Mapping[str, Any], *, url: str) -> Visit:
    """Read a report; one of another page, or with a score missing, is LighthouseFailed."""
    if report.get("runtimeError") or report.get("finalDisplayedUrl") != url:
        reason = report.get("runtimeError") or f"it ended at {report.get('finalDisplayedUrl')}"
        raise LighthouseFailed(f"Lighthouse did not see {url}: {reason}")
    audits = report["audits"]
    scores, findings = {}, []
    for name in CATEGORIES:
        category = report["categories"][name]
        if category["score"] is None:
            raise LighthouseFailed(f"Lighthouse gave {url} no score for {name}.")
        scores[name] = category["score"] * 100
        for part in category["auditRefs"]:
            audit = audits[part["id"]]
            if part["weight"] and audit["score"] is not None and audit["score"] < 1:
                findings.append(f"{name}: {audit['title']} {audit.get('displayValue', '')}".strip())
    weight = audits["total-byte-weight"]
    heaviest = tuple((item["url"], item["totalBytes"]) for item in weight["details"]["items"])
    return Visit(scores, int(weight["numericValue"]), tuple(findings), heaviest)


def median_of(visits: Sequence[Visit]) -> dict[str, float]:
    """Return the median of each score, and of the kilobytes (1,000 bytes) a visit loads."""
    figures = {
        name.replace("-", "_"): statistics.median(seen.scores[name] for seen in visits)
        for name in CATEGORIES
    }
    figures["loaded_kb"] = statistics.median(seen.loaded_bytes for seen in visits) / 1000
    return figures
