"""What page templates show with: icons, verdicts, gauges, digests, money, times."""

from datetime import UTC, datetime, timedelta
from typing import Any

from django import template
from django.forms import (
    BoundField,
    CheckboxInput,
    CheckboxSelectMultiple,
    RadioSelect,
    Select,
)
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe

from fabric.lib.money import MICROS, format_amount
from fabric.web import gauges, wording
from listings.domain.kinds import KINDS

register = template.Library()

MINUS = "\N{MINUS SIGN}"


@register.simple_tag
def icon(name: str) -> SafeString:
    """Draw an icon of the sprite; always beside a word, so it is hidden from readers."""
    return format_html(
        '<svg class="ico" viewBox="0 0 16 16" aria-hidden="true"><use href="#i-{}"/></svg>', name
    )


@register.simple_tag
def verdict(key: object, detail: object = "") -> SafeString:
    """Say a verdict or state as icon, word and colour; `detail` follows the word (`9.2 %`)."""
    colour, mark, word = wording.look_of(str(key or "unknown"))
    text = f"{word} {detail}" if detail not in ("", None) else word
    return format_html('<span class="verdict {}">{}{}</span>', colour, icon(mark), text)


@register.filter
def state_word(key: object) -> str:
    """Say a state in the product's words, without icon."""
    return wording.look_of(str(key or "unknown"))[2]


@register.filter
def verdict_class(key: object) -> str:
    """Return the class that colours a verdict: met, short, missed or unknown."""
    return wording.look_of(str(key or "unknown"))[0]


@register.simple_tag
def gauge(
    promised: Any,
    measured: Any,
    tolerance_bps: Any = 0,
    direction: str = "higher",
    verdict: str = "",
) -> SafeString:
    """Draw a measurement on the promise line; left is worse, right is better, ±15 % wide.

    Where a judged `verdict` is at hand it names the colour, so that picture and word never differ.
    """
    mark = gauges.draw(promised, measured, int(tolerance_bps or 0), str(direction or "higher"))
    colour = wording.look_of(verdict)[0] if verdict else mark.verdict
    if mark.x is None:
        inside = mark_safe('<path class="gap" d="M46 11h40" stroke-dasharray="3 3"/>')
    else:
        inside = format_html(
            '<rect class="tol" x="{}" y="4" width="{}" height="14"/>'
            '<path class="promise" d="M66 0v22"/><path class="gap" d="M66 11H{}"/>'
            '<path class="at" d="M{} 6l5 5-5 5-5-5z"/>{}',
            _short(mark.band_x),
            _short(mark.band_width),
            _short(mark.x),
            _short(mark.x),
            _CHEVRONS[mark.beyond],
        )
    return format_html(
        '<svg class="gauge {}" viewBox="0 0 132 22" role="img" aria-label="{}">{}</svg>',
        colour,
        mark.sentence,
        inside,
    )


_CHEVRONS = {
    "": "",
    "left": mark_safe('<path class="more" d="M5 7l-4 4 4 4"/>'),
    "right": mark_safe('<path class="more" d="M127 7l4 4-4 4"/>'),
}


@register.simple_tag
def digest(value: Any) -> SafeString:
    """Show a hash: weave, first 8 and last 4 digits; the full value in its title and in print."""
    text = bytes(value).hex() if isinstance(value, (bytes, memoryview)) else str(value or "")
    if len(text) < 16:
        return mark_safe('<span class="nothing">none yet</span>')
    bars = "".join(
        f"M{index * 2.5:g} 11v-{2 + int(letter, 16) * 0.6:.3g}h1.5V11z"
        for index, letter in enumerate(text[:16])
    )
    return format_html(
        '<span class="hash" title="sha256 {}" data-full="{}">'
        '<svg viewBox="0 0 40 11" aria-hidden="true"><path d="{}"/></svg>{}…{}</span>',
        text,
        text,
        bars,
        text[:8],
        text[-4:],
    )


@register.filter
def micros(value: object, decimals: int = 2) -> str:
    """Write micro-units as money with its sign: `$2.38`; places that are not zero are kept."""
    if value in ("", None):
        return "none yet"
    amount = int(str(value))
    text = format_amount(abs(amount), decimals=int(decimals))
    return f"{MINUS if amount < 0 else ''}${text}"


@register.filter
def cents(value: object) -> str:
    """Write micro-units as money of two places, cut, for figures that say how much is there."""
    if value in ("", None):
        return "none yet"
    amount = int(str(value))
    whole = abs(amount) // 10_000 * 10_000
    return f"{MINUS if amount < 0 else ''}${format_amount(whole)}"


@register.filter
def micros6(value: object) -> str:
    """Write micro-units as a ledger line: all six places, no currency sign."""
    if value in ("", None):
        return "none yet"
    amount = int(str(value))
    whole, rest = divmod(abs(amount), MICROS)
    return f"{MINUS if amount < 0 else ''}{whole:,}.{rest:06d}"


@register.filter
def mib(value: object) -> str:
    """Write MiB with thousands commas; the unit stands in the column's head."""
    return figure(value)


@register.filter
def figure(value: object) -> str:
    """Write a number with thousands commas and a real minus; other values as they are."""
    if value in ("", None):
        return "none yet"
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return str(value)
    text = (
        f"{value:,}"
        if isinstance(value, int)
        else f"{value:,.4g}"
        if abs(value) < 1000
        else f"{value:,.0f}"
    )
    return text.replace("-", MINUS)


@register.filter
def percent(bps: object) -> str:
    """Write basis points as percent: 9500 is `95 %`."""
    return f"{int(str(bps or 0)) / 100:g} %"


_TIME_FORMATS = {
    "full": "%Y-%m-%d %H:%M:%S UTC",
    "minute": "%Y-%m-%d %H:%M UTC",
    "day": "%Y-%m-%d",
    "time": "%H:%M:%S",
}


@register.filter
def utc(value: object, style: str = "full") -> SafeString | str:
    """Write an instant in UTC: `full`, `minute`, `day`, `time` or `short` (`1 Dec 14:00:05`)."""
    if not isinstance(value, datetime):
        return "none yet"
    at = value.astimezone(UTC)
    text = f"{at.day} {at:%b %H:%M:%S}" if style == "short" else at.strftime(_TIME_FORMATS[style])
    return format_html('<time datetime="{}">{}</time>', at.strftime("%Y-%m-%dT%H:%M:%SZ"), text)


@register.filter
def duration(value: object) -> str:
    """Write seconds or a timedelta in its two largest units: `17 h 51 min`."""
    if value in ("", None):
        return "none yet"
    seconds = int(value.total_seconds() if isinstance(value, timedelta) else float(str(value)))
    sign, seconds = (MINUS if seconds < 0 else ""), abs(seconds)
    parts: list[str] = []
    for size, name in ((86_400, "d"), (3600, "h"), (60, "min"), (1, "s")):
        count, seconds = divmod(seconds, size)
        if count or (name == "s" and not parts):
            parts.append(f"{count} {name}")
    return sign + " ".join(parts[:2])


@register.filter
def words(value: object) -> str:
    """Write a key of ours as words: `data_centre` is `data centre`."""
    return str(value).replace("_", " ")


@register.filter
def field_label(name: object) -> str:
    """Return what the listings' schemas call a promised field; an unknown one reads as itself."""
    for kind in KINDS.values():
        for spec in kind.fields:
            if spec.name == name:
                return spec.label
    return str(name or "").replace("_", " ")


@register.simple_tag
def widget(field: BoundField) -> SafeString:
    """Draw a form field's input with the classes of the look."""
    kind = field.field.widget
    if isinstance(kind, CheckboxInput | RadioSelect | CheckboxSelectMultiple):
        css = "form-check-input"
    else:
        css = "form-select" if isinstance(kind, Select) else "form-control"
    given = kind.attrs.get("class", "")
    return field.as_widget(attrs={"class": f"{css} {given}".strip()})


@register.filter
def is_checkbox(field: BoundField) -> bool:
    """Say whether a field is one box to tick, whose label stands beside it."""
    return isinstance(field.field.widget, CheckboxInput)


@register.simple_tag(takes_context=True)
def query(context: template.Context, **changes: object) -> str:
    """Return this page's query string with some parameters changed; None removes one."""
    parameters = context["request"].GET.copy()
    for name, value in changes.items():
        if value is None:
            parameters.pop(name, None)
        else:
            parameters[name] = str(value)
    return f"?{parameters.urlencode()}"


@register.simple_tag
def bar(total: int, *parts: Any) -> SafeString:
    """Draw parts of a total as one bar; parts come as pairs of (class a to d, amount)."""
    width, x = 600.0, 0.0
    drawn = []
    for name, amount in zip(parts[::2], parts[1::2], strict=True):
        size = 0.0 if not total else max(0.0, float(amount) / float(total) * width)
        drawn.append((name, _short(x), _short(size)))
        x += size
    return format_html_join("", '<rect class="{}" x="{}" y="0" width="{}" height="14"/>', drawn)


def _short(number: float) -> str:
    return f"{number:.1f}".rstrip("0").rstrip(".")
