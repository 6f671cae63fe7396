"""The catalogue's filters as the page shows them: facets with counts, chips, ways out of nothing."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.http import QueryDict

from fabric.lib.money import format_amount
from listings.filters import NONE, ListingFilter
from listings.models import Listing
from providers.models import HardwareClass

_OPEN_WORDS = ("device_class", "region", "country")
_FACETS = (
    "device_class",
    "unit_kind",
    "suits",
    "tier",
    "isolation",
    "region",
    "country",
    "simulated",
)
_SHUT = frozenset({"isolation", "region", "country"})


@dataclass(frozen=True)
class Option:
    """One word of a facet and how many listings it would show."""

    value: str
    label: str
    count: int
    checked: bool

    @property
    def disabled(self) -> bool:
        """Whether choosing it could only show nothing; it is kept, so that the list holds still."""
        return self.count == 0 and not self.checked


@dataclass(frozen=True)
class Facet:
    """One filter of words."""

    name: str
    label: str
    options: tuple[Option, ...]
    open: bool


@dataclass(frozen=True)
class Chip:
    """A filter that is set, and the address without it."""

    name: str
    text: str
    href: str


@dataclass(frozen=True)
class WayOut:
    """One filter whose removal shows something again."""

    text: str
    href: str
    count: int


def build_facets(chosen: ListingFilter, class_names: Mapping[str, str]) -> list[Facet]:
    """Return the facets with counts; each counts under all the other filters. A query each."""
    return [_facet(chosen, name, class_names) for name in _FACETS]


def build_chips(
    chosen: ListingFilter, address: QueryDict, class_names: Mapping[str, str]
) -> list[Chip]:
    """Return one chip for every value that narrows the list."""
    chips = []
    for name in chosen.active():
        value = chosen.form.cleaned_data[name]
        for item in value if isinstance(value, list) else [value]:
            text = _chip_text(chosen, name, item, class_names)
            shown = item if isinstance(value, list) else None
            chips.append(Chip(name, text, address_without(address, name, shown)))
    return chips


def find_ways_out(chosen: ListingFilter, chips: list[Chip], address: QueryDict) -> list[WayOut]:
    """Return, best first, which single filter to remove so that something shows. A query each."""
    ways = []
    for name in dict.fromkeys(chip.name for chip in chips):
        count = chosen.without(name).order_by().count()
        texts = " or ".join(chip.text for chip in chips if chip.name == name)
        if count:
            ways.append(WayOut(texts, address_without(address, name), count))
    return sorted(ways, key=lambda way: (-way.count, way.text))


def address_without(address: QueryDict, name: str, value: object = None) -> str:
    """Return the address without a filter, or without one of its words; a new list starts anew."""
    left = address.copy()
    kept = [word for word in left.getlist(name) if value is not None and word != str(value)]
    left.setlist(name, kept)
    left.pop("page", None)
    return f"?{tidy(left).urlencode()}"


def tidy(address: QueryDict) -> QueryDict:
    """Return the address without parameters that say nothing, so that it is short to share."""
    tidied = QueryDict(mutable=True)
    for name, values in address.lists():
        said = [value for value in values if value.strip()]
        if said:
            tidied.setlist(name, said)
    return tidied


def name_classes() -> dict[str, str]:
    """Return the names of the hardware classes by slug; costs a query."""
    return dict(HardwareClass.objects.values_list("slug", "name"))


def class_words(listing: Listing, class_names: Mapping[str, str]) -> str:
    """Return what a listing offers in words: how many of which class."""
    name = class_names.get(listing.class_slug, listing.class_slug)
    return f"{listing.unit_count} \N{MULTIPLICATION SIGN} {name}"


def _facet(chosen: ListingFilter, name: str, class_names: Mapping[str, str]) -> Facet:
    counts = chosen.counts(name)
    picked = chosen.form.cleaned_data.get(name) or []
    if name in _OPEN_WORDS:
        words = {word: _word(name, word, class_names) for word in sorted({*counts, *picked})}
    else:
        words = {word: str(label) for word, label in chosen.filters[name].extra["choices"]}
    options = tuple(
        Option(word, label, counts.get(word, 0), checked=word in picked)
        for word, label in words.items()
    )
    label = str(chosen.filters[name].label)
    return Facet(name, label, options, open=bool(picked) or name not in _SHUT)


def _word(name: str, word: str, class_names: Mapping[str, str]) -> str:
    return class_names.get(word, word) if name == "device_class" else word


def _chip_text(chosen: ListingFilter, name: str, value: Any, class_names: Mapping[str, str]) -> str:
    match name:
        case "memory_mib_min":
            return f"memory \N{GREATER-THAN OR EQUAL TO} {value:,} MiB"
        case "memory_mib_max":
            return f"memory \N{LESS-THAN OR EQUAL TO} {value:,} MiB"
        case "unit_count_min":
            return f"\N{GREATER-THAN OR EQUAL TO} {value:,} accelerators"
        case "price_max":
            amount = format_amount(value)
            return f"\N{LESS-THAN OR EQUAL TO} ${amount} per accelerator-hour"
        case "suits":
            return "suits nothing" if value == NONE else f"suits {value}"
        case "isolation":
            return f"isolation: {str(value).replace('_', ' ')}"
        case "device_class" | "region" | "country":
            return _word(name, value, class_names)
        case _:
            words = dict(chosen.filters[name].extra["choices"])
            return str(words.get(value, value))
