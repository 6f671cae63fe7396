"""The words, marks and figures that every page shows."""

from datetime import UTC, datetime

import pytest
from django.template import Context, Template

from fabric.web import gauges


def show(text: str, **context: object) -> str:
    return Template("{% load fabric_ui %}" + text).render(Context(context))


@pytest.mark.parametrize(
    ("micros", "money", "ledger"),
    [
        (2_380_000, "$2.38", "2.380000"),
        (1_284_073_333, "$1,284.073333", "1,284.073333"),
        (-420_000, "\N{MINUS SIGN}$0.42", "\N{MINUS SIGN}0.420000"),
        (0, "$0.00", "0.000000"),
        (None, "none yet", "none yet"),
    ],
)
def test_money_is_never_rounded_away(micros: int | None, money: str, ledger: str) -> None:
    assert show("{{ m|micros }}", m=micros) == money
    assert show("{{ m|micros6 }}", m=micros) == ledger


def test_a_summary_figure_is_cut_to_cents_and_never_rounded_up() -> None:
    assert show("{{ m|cents }}", m=1_999_999) == "$1.99"


@pytest.mark.parametrize(
    ("key", "colour", "mark", "word"),
    [
        ("match", "met", "met", "Met"),
        ("short", "short", "short", "Short"),
        ("different", "missed", "missed", "Different"),
        ("not_measured", "unknown", "unknown", "Not measured"),
        ("held_back", "missed", "missed", "Held back"),
    ],
)
def test_a_verdict_is_icon_word_and_colour(key: str, colour: str, mark: str, word: str) -> None:
    html = show("{% verdict key %}", key=key)
    assert f'class="verdict {colour}"' in html
    assert f"#i-{mark}" in html
    assert html.endswith(f"{word}</span>")


def test_a_verdict_escapes_what_a_machine_said() -> None:
    assert "<b>" not in show("{% verdict 'short' detail %}", detail="<b>9 %</b>")


@pytest.mark.parametrize(
    ("promised", "measured", "direction", "sentence", "side"),
    [
        (740, 761, "higher", "2.8 % better than promised; tolerance 3 %", 1),
        (90, 71, "lower", "21.1 % better than promised; tolerance 3 %", 1),
        (90, 100, "lower", "11.1 % worse than promised; tolerance 3 %", -1),
        (8, 9, "exact", "12.5 % worse than promised; tolerance 3 %", -1),
        (8, 8, "exact", "exactly as promised; tolerance 3 %", 0),
    ],
)
def test_left_is_worse_and_right_is_better_whatever_the_direction(
    promised: float, measured: float, direction: str, sentence: str, side: int
) -> None:
    mark = gauges.draw(promised, measured, 300, direction)
    assert mark.sentence == sentence
    assert mark.x is not None
    assert (mark.x > gauges.CENTRE) - (mark.x < gauges.CENTRE) == side


def test_colour_follows_the_verdict_and_not_the_distance() -> None:
    assert gauges.draw(10_000, 9_410, 1_000, "higher").verdict == "met"
    assert gauges.draw(12.0, 10.9, 500, "higher").verdict == "short"
    assert gauges.draw("a", "b", 0, "exact").verdict == "missed"


def test_nothing_measured_is_a_dashed_stub_and_the_words() -> None:
    html = show("{% gauge 5 None 100 'higher' %}")
    assert 'aria-label="not measured"' in html
    assert "stroke-dasharray" in html
    assert 'class="at"' not in html


def test_a_mark_beyond_the_scale_stays_on_it_and_says_so() -> None:
    mark = gauges.draw(100, 10, 100, "higher")
    assert (mark.x, mark.beyond) == (gauges.CENTRE - gauges.EDGE, "left")


def test_equal_hashes_have_equal_weaves_and_keep_the_full_value() -> None:
    value = bytes(range(32))
    html = show("{% digest value %}", value=value)
    assert html == show("{% digest value %}", value=value.hex())
    assert f"sha256 {value.hex()}" in html
    assert "00010203…1e1f" in html
    assert html.count("M") == 16


def test_times_are_utc_and_say_so() -> None:
    at = datetime(2026, 12, 1, 14, 0, 5, tzinfo=UTC)
    assert "2026-12-01 14:00:05 UTC" in show("{{ at|utc }}", at=at)
    assert ">1 Dec 14:00:05<" in show("{{ at|utc:'short' }}", at=at)
    assert show("{{ at|utc }}", at=None) == "none yet"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0 s"), (59, "59 s"), (3_600, "1 h"), (64_260, "17 h 51 min"), (971_999, "11 d 5 h")],
)
def test_a_duration_has_its_two_largest_units(seconds: int, text: str) -> None:
    assert show("{{ s|duration }}", s=seconds) == text
