"""The filters of the catalogue, one set for the page and for the API."""

from typing import Any

import django_filters as df
from django import forms
from django.db.models import Count, F, Func, Q, QuerySet, Value
from django.db.models.functions import Coalesce

from fabric.lib.money import parse_amount
from listings.domain.kinds import find_kind
from listings.domain.states import Suitability
from listings.models import Listing
from providers.domain.nodes import Tier

NONE = "none"
_ACCELERATOR = find_kind("accelerator")

SORTS: dict[str, tuple[str, ...]] = {
    "value": ("micros_per_peta_hour", "price_micros_per_hour", "published_at", "id"),
    "price": ("price_micros_per_hour", "micros_per_peta_hour", "published_at", "id"),
    "-price": ("-price_micros_per_hour", "micros_per_peta_hour", "published_at", "id"),
    "memory": ("memory_mib", "micros_per_peta_hour", "published_at", "id"),
    "-memory": ("-memory_mib", "micros_per_peta_hour", "published_at", "id"),
    "-compute": ("-gops_known", "micros_per_peta_hour", "published_at", "id"),
}
DEFAULT_SORT = "value"


class AmountField(forms.CharField):
    """A plain amount such as 3.20, read into micro-units."""

    def clean(self, value: Any) -> Any:
        """Return micro-units, or None where nothing was given."""
        text = super().clean(value)
        if not text:
            return None
        try:
            return parse_amount(text)
        except ValueError as error:
            raise forms.ValidationError(str(error)) from error


class AmountFilter(df.Filter):
    """Compares a column of micro-units with an amount."""

    field_class = AmountField


class WordsFilter(df.MultipleChoiceFilter):
    """Any of several words; repeated in the address, as `?tier=a&tier=b`."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        kwargs.setdefault("widget", forms.CheckboxSelectMultiple)
        kwargs.setdefault("distinct", False)
        super().__init__(*args, **kwargs)


class AnyWordField(forms.MultipleChoiceField):
    """Several words of an open vocabulary, such as classes: unknown ones match nothing."""

    def valid_value(self, value: str) -> bool:
        """Accept any short word; what exists is a question for the rows."""
        return len(value) <= 60


class AnyWordsFilter(WordsFilter):
    """Any of several words of an open vocabulary."""

    field_class = AnyWordField


class SuitsFilter(WordsFilter):
    """Any of several kinds of work; `none` keeps the listings that suit nothing."""

    def filter(self, qs: QuerySet[Listing], value: list[str]) -> QuerySet[Listing]:
        """Return the listings that suit one of the words."""
        if not value:
            return qs
        condition = Q(suits__overlap=[work for work in value if work != NONE])
        return qs.filter(condition | Q(suits=[]) if NONE in value else condition)


class SimulatedFilter(WordsFilter):
    """Real or simulated machines; both words, or neither, keep all."""

    def filter(self, qs: QuerySet[Listing], value: list[str]) -> QuerySet[Listing]:
        """Return the listings of the kind of machine asked for."""
        return qs if len(value) != 1 else qs.filter(simulated=value[0] == "yes")


def _words(name: str) -> list[tuple[str, str]]:
    return [(choice, choice.replace("_", " ")) for choice in _ACCELERATOR.field(name).choices]


class ListingFilter(df.FilterSet):
    """Filters whose names are those of the fields, units last; all of them stand in the address."""

    device_class = AnyWordsFilter(field_name="class_slug", label="Class")
    memory_mib_min = df.NumberFilter(
        field_name="memory_mib",
        lookup_expr="gte",
        label="Memory, MiB, at least",
        min_value=0,
        max_value=2**31 - 1,
    )
    memory_mib_max = df.NumberFilter(
        field_name="memory_mib",
        lookup_expr="lte",
        label="Memory, MiB, at most",
        min_value=0,
        max_value=2**31 - 1,
    )
    unit_count_min = df.NumberFilter(
        field_name="unit_count",
        lookup_expr="gte",
        label="Accelerators, at least",
        min_value=1,
        max_value=1024,
    )
    price_max = AmountFilter(
        field_name="price_micros_per_hour",
        lookup_expr="lte",
        label="Price per accelerator-hour, at most",
    )
    suits = SuitsFilter(
        label="Suits",
        choices=[*Suitability.choices(), (NONE, NONE)],
    )
    tier = WordsFilter(label="Tier, by benchmark", choices=Tier.choices())
    unit_kind = WordsFilter(label="Unit", choices=_words("unit_kind"))
    isolation = WordsFilter(label="Isolation", choices=_words("isolation"))
    region = AnyWordsFilter(label="Region")
    country = AnyWordsFilter(label="Country")
    simulated = SimulatedFilter(
        label="Measured on",
        choices=[("no", "real hardware"), ("yes", "simulated hardware")],
    )

    class Meta:
        model = Listing
        fields: tuple[str, ...] = ()

    def without(self, *names: str) -> QuerySet[Listing]:
        """Return the listings as if these filters had not been set."""
        queryset: QuerySet[Listing] = self.queryset.all()
        for name, value in self.form.cleaned_data.items():
            if name not in names:
                queryset = self.filters[name].filter(queryset, value)
        return queryset

    def counts(self, name: str) -> dict[str, int]:
        """Return how many listings each word of a facet would show, other filters kept."""
        rows = self.without(name).order_by()
        if name == "suits":
            words = rows.annotate(word=Func(F("suits"), function="unnest")).values_list("word")
            counted = dict(words.annotate(count=Count("pk")).order_by())
            counted[NONE] = rows.filter(suits=[]).count()
            return counted
        column = self.filters[name].field_name
        counted = dict(rows.values_list(column).annotate(count=Count("pk")).order_by())
        if name == "simulated":
            return {"yes": counted.get(True, 0), "no": counted.get(False, 0)}
        return counted

    def active(self) -> list[str]:
        """Return the names of the filters that are set."""
        return [n for n, v in self.form.cleaned_data.items() if v not in (None, "", [])]


def sorted_by(queryset: QuerySet[Listing], sort: str) -> QuerySet[Listing]:
    """Return the listings in a published order; what was not measured comes last."""
    known = queryset.annotate(gops_known=Coalesce("measured_gops", Value(0.0)))
    return known.order_by(*SORTS[sort])
