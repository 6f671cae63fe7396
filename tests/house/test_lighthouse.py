"""What is read out of Lighthouse's reports, without running it."""

from typing import Any

import pytest

from simulator import lighthouse

URL = "http://127.0.0.1:8000/catalogue/"


def report_of(score: float | None = 1.0, loaded: float = 120_400.0) -> dict[str, Any]:
    """Return a report as Lighthouse writes it, with one audit a category."""
    names = lighthouse.CATEGORIES
    return {
        "finalDisplayedUrl": URL,
        "categories": {
            name: {"score": score, "auditRefs": [{"id": f"one-{name}", "weight": 3}]}
            for name in names
        },
        "audits": {
            **{f"one-{name}": {"score": score, "title": f"About {name}"} for name in names},
            "total-byte-weight": {
                "numericValue": loaded,
                "details": {"items": [{"url": f"{URL}app.css", "totalBytes": 6_700}]},
            },
        },
    }


def test_scores_weight_and_what_cost_points_are_read() -> None:
    seen = lighthouse.read_report(report_of(0.93), url=URL)
    assert set(seen.scores.values()) == {93.0}
    assert seen.loaded_bytes == 120_400
    assert "performance: About performance" in seen.findings
    assert seen.heaviest == ((f"{URL}app.css", 6_700),)
    assert lighthouse.read_report(report_of(), url=URL).findings == ()


@pytest.mark.parametrize(
    "changes",
    [
        {"finalDisplayedUrl": "http://127.0.0.1:8000/accounts/login/"},
        {"runtimeError": {"code": "NO_NAVSTART"}},
    ],
)
def test_a_report_of_another_page_is_refused(changes: dict[str, Any]) -> None:
    """A page that led to sign-in would score well and show nothing."""
    with pytest.raises(lighthouse.LighthouseFailed, match="did not see"):
        lighthouse.read_report({**report_of(), **changes}, url=URL)


def test_a_missing_score_is_no_score() -> None:
    with pytest.raises(lighthouse.LighthouseFailed, match="no score"):
        lighthouse.read_report(report_of(None), url=URL)


def test_a_median_is_taken_of_each_figure() -> None:
    visits = [
        lighthouse.read_report(report_of(score, loaded), url=URL)
        for score, loaded in ((0.9, 10_000.0), (1.0, 30_000.0), (0.95, 20_000.0))
    ]
    figures = lighthouse.median_of(visits)
    assert figures.pop("loaded_kb") == 20.0
    assert {round(value) for value in figures.values()} == {95}


def test_a_machine_without_npm_is_told_what_to_install(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(lighthouse.LighthouseFailed, match="install nodejs"):
        lighthouse.install(tmp_path)
