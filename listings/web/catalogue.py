"""The catalogue page: every filter in the address, the same answer with and without JavaScript."""

from dataclasses import dataclass
from typing import Any

from django.core.paginator import Page, Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.cache import patch_vary_headers
from django.views.decorators.http import require_GET

from fabric.lib.clock import utc_now
from listings.domain.kinds import find_kind
from listings.domain.prices import NormalisedPrice, normalise
from listings.filters import DEFAULT_SORT, SORTS, ListingFilter, sorted_by
from listings.models import Listing
from listings.selectors import free_unit_counts, promise_of
from listings.web.facets import (
    build_chips,
    build_facets,
    class_words,
    find_ways_out,
    name_classes,
    tidy,
)

ROWS_PER_PAGE = 25
_COMPUTE = find_kind("accelerator").field("compute_gops")

ORDER_WORDS = {
    "value": "price of measured compute, lowest first; then price per accelerator-hour, then age",
    "price": "price per accelerator-hour, lowest first; then price of measured compute, then age",
    "-price": "price per accelerator-hour, highest first; then price of measured compute, then age",
    "memory": "promised memory, least first; then price of measured compute, then age",
    "-memory": "promised memory, most first; then price of measured compute, then age",
    "-compute": "measured compute, most first; then its price, then age",
}


@dataclass(frozen=True)
class Row:
    """One listing as the table shows it."""

    listing: Listing
    offer: str
    promise: dict[str, Any]
    price: NormalisedPrice
    free: int
    tolerance_bps: int = _COMPUTE.tolerance_bps

    @property
    def promised_gops(self) -> float | None:
        """The compute that is promised, or None where the listing promises none."""
        return self.promise.get("compute_gops")

    @property
    def peer_bandwidth(self) -> float | None:
        """The promised bandwidth between the lowest pair, in GB/s."""
        return self.promise.get("peer_bandwidth_gb_s")

    @property
    def interconnect(self) -> str:
        """How the units of the listing are joined, in words."""
        if self.listing.unit_count == 1:
            return "One accelerator"
        return _INTERCONNECTS.get(str(self.promise["interconnect"]), "Other")


_INTERCONNECTS = {
    "none": "None",
    "pcie": "PCIe",
    "nvlink": "NVLink",
    "nvswitch": "NVSwitch",
    "xgmi": "xGMI",
    "infiniband": "InfiniBand",
    "roce": "RoCE",
}


@dataclass(frozen=True)
class SortLink:
    """A column head that sorts: where it leads, and how the column is sorted now."""

    href: str
    aria: str


@require_GET
def show_catalogue(request: HttpRequest) -> HttpResponse:
    """Show what is on sale under the filters in the address; no sign-in needed."""
    now = utc_now()
    sort = request.GET.get("sort", DEFAULT_SORT)
    if sort not in SORTS:
        sort = DEFAULT_SORT
    on_sale = Listing.objects.on_sale().select_related("provider", "node", "current_revision")
    chosen = ListingFilter(request.GET, queryset=on_sale)
    chosen.form.is_valid()  # Filters that cannot be read are named, and the others still apply.
    page = _page(chosen, sort, request.GET.get("page", "1"))
    class_names = name_classes()
    chips = build_chips(chosen, request.GET, class_names)
    free = free_unit_counts(list(page), now=now)
    context = {
        "now": now,
        "rows": [_row(listing, class_names, free[listing.pk]) for listing in page],
        "page": page,
        "facets": build_facets(chosen, class_names),
        "form": chosen.form,
        "errors": {chosen.filters[n].label: e[0] for n, e in chosen.form.errors.items()},
        "chips": chips,
        "ways_out": [] if page.paginator.count else find_ways_out(chosen, chips, request.GET),
        "sort": sort,
        "is_default_sort": sort == DEFAULT_SORT,
        "order_words": ORDER_WORDS[sort],
        "sorts": {name: _sort_link(request, name, sort) for name in _COLUMNS},
        "providers": chosen.without().order_by().values("provider").distinct().count(),
    }
    is_part = bool(request.headers.get("HX-Request")) and not request.headers.get(
        "HX-History-Restore-Request"
    )
    template = "listings/catalogue.html#browse" if is_part else "listings/catalogue.html"
    response = render(request, template, context)
    patch_vary_headers(response, ["HX-Request"])
    if is_part:
        address = tidy(request.GET).urlencode()
        response["HX-Push-Url"] = f"{request.path}?{address}" if address else request.path
    return response


# Column → its orders, the one a first click asks for in front.
_COLUMNS: dict[str, tuple[str, ...]] = {
    "memory": ("-memory", "memory"),
    "compute": ("-compute",),
    "price": ("price", "-price"),
    "value": ("value",),
}


def _page(chosen: ListingFilter, sort: str, number: str) -> Page[Listing]:
    return Paginator(sorted_by(chosen.without(), sort), ROWS_PER_PAGE).get_page(number)


def _row(listing: Listing, class_names: dict[str, str], free: int) -> Row:
    assert listing.current_revision is not None
    price = normalise(
        micros_per_hour=listing.price_micros_per_hour,
        memory_mib=listing.measured_memory_mib,
        gops=listing.measured_gops,
    )
    return Row(
        listing=listing,
        offer=class_words(listing, class_names),
        promise=promise_of(listing.current_revision),
        price=price,
        free=min(free, listing.unit_count),
    )


def _sort_link(request: HttpRequest, column: str, current: str) -> SortLink:
    orders = _COLUMNS[column]
    is_sorted = current in orders
    following = orders[(orders.index(current) + 1) % len(orders)] if is_sorted else orders[0]
    address = request.GET.copy()
    address["sort"] = following
    address.pop("page", None)
    aria = ""
    if is_sorted:
        aria = "descending" if current.startswith("-") else "ascending"
    return SortLink(f"?{tidy(address).urlencode()}", aria)
