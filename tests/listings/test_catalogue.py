"""The catalogue page: filters in the address, counts, chips, order, and ways out of nothing."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from django.test import Client

from listings.models import Listing
from providers.models import Device, Hold
from tests.listings.bodies import BODY, body_with
from tests.listings.machines import published_listing
from tests.world import World

URL = "/catalogue/"


def show(query: str = "", **headers: str) -> Any:
    response = Client().get(f"{URL}{query}", headers=headers)
    assert response.status_code == 200
    return response


def titles(query: str = "") -> list[str]:
    return [row.listing.title for row in show(query).context["rows"]]


@pytest.fixture
def three(world: World, now: datetime) -> dict[str, Listing]:
    """A cheap one, a dear one in another region, and a large one."""
    return {
        "cheap": published_listing(world, now=now, name="a", body=body_with(title="Cheap")),
        "dear": published_listing(
            world,
            now=now,
            name="b",
            body=body_with(title="Dear", region="eu-west", price__amount_micros="90000"),
        ),
        "large": published_listing(
            world,
            now=now,
            name="c",
            body=body_with(
                title="Large",
                country="DE",
                promise__memory_mib=32_768,
                promise__system_memory_mib=64_000,
                price__amount_micros="70000",
            ),
            provider=world.strangers_provider,
        ),
    }


def test_anyone_sees_what_is_on_sale_in_the_published_order(three: dict[str, Listing]) -> None:
    """R-A8 (page): cheapest measured compute first, and the page says so."""
    response = show()
    assert titles() == ["Cheap", "Large", "Dear"]
    text = response.content.decode()
    assert "Nobody can pay for a place" in text
    assert 'aria-sort="ascending"' in text
    assert "3 listings</b>" in text
    assert "from 2 providers" in text


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("?memory_mib_min=2000", ["Large"]),
        ("?memory_mib_max=2000", ["Cheap", "Dear"]),
        ("?region=eu-west", ["Dear"]),
        ("?region=eu-west&region=eu-north", ["Cheap", "Large", "Dear"]),
        ("?price_max=0.07", ["Cheap", "Large"]),
        ("?suits=training", ["Large"]),
        ("?suits=batch&tier=community&isolation=none", ["Cheap", "Large", "Dear"]),
        ("?tier=data_centre", []),
        ("?device_class=host-cpu&unit_count_min=1&country=DE", ["Large"]),
        ("?unit_count_min=2", []),
        ("?simulated=yes", []),
        ("?simulated=no", ["Cheap", "Large", "Dear"]),
        ("?suits=none", []),
        ("?sort=-price", ["Dear", "Large", "Cheap"]),
        ("?sort=-memory", ["Large", "Cheap", "Dear"]),
    ],
)
def test_each_filter_narrows_the_list(
    three: dict[str, Listing], query: str, expected: list[str]
) -> None:
    """R-A6 (page): every filter stands in the address and does what it says."""
    assert titles(query) == expected


def test_a_chip_removes_its_filter_and_keeps_the_rest(three: dict[str, Listing]) -> None:
    response = show("?region=eu-west&region=eu-north&price_max=0.08&sort=price")
    chips = {chip.text: chip.href for chip in response.context["chips"]}
    assert chips == {
        "eu-west": "?region=eu-north&price_max=0.08&sort=price",
        "eu-north": "?region=eu-west&price_max=0.08&sort=price",
        "\u2264 $0.08 per accelerator-hour": "?region=eu-west&region=eu-north&sort=price",
    }


def test_counts_say_what_a_word_would_show(three: dict[str, Listing]) -> None:
    facets = {facet.name: facet for facet in show("?region=eu-west").context["facets"]}
    regions = {o.value: (o.count, o.checked) for o in facets["region"].options}
    assert regions == {"eu-west": (1, True), "eu-north": (2, False)}
    suits = {o.value: (o.count, o.disabled) for o in facets["suits"].options}
    assert suits == {
        "serving": (0, True),
        "training": (0, True),
        "batch": (1, False),
        "none": (0, True),
    }


def test_nothing_found_names_the_filter_to_remove(three: dict[str, Listing]) -> None:
    response = show("?region=eu-west&memory_mib_min=9000")
    assert [(way.text, way.count) for way in response.context["ways_out"]] == [
        ("eu-west", 1),
        ("memory \u2265 9,000 MiB", 1),
    ]
    assert "No listing fits all of these" in response.content.decode()


def test_a_filter_that_cannot_be_read_is_named_and_the_rest_apply(
    three: dict[str, Listing],
) -> None:
    response = show("?price_max=nan&region=eu-west")
    assert [row.listing.title for row in response.context["rows"]] == ["Dear"]
    assert "Left out, because it could not be read" in response.content.decode()


def test_an_empty_catalogue_says_what_comes_next(world: World) -> None:
    assert "Nothing is on sale yet" in show().content.decode()


def test_htmx_gets_the_part_and_a_short_address(three: dict[str, Listing]) -> None:
    part = show("?region=eu-west&price_max=&memory_mib_min=", **{"HX-Request": "true"})
    text = part.content.decode()
    assert part["HX-Push-Url"] == "/catalogue/?region=eu-west"
    assert "HX-Request" in part["Vary"]
    assert "<html" not in text
    assert 'id="results"' in text
    whole = show("?region=eu-west").content.decode()
    assert "<html" in whole
    assert 'method="get"' in whole


def test_a_row_shows_measured_values_and_prices_in_three_units(three: dict[str, Listing]) -> None:
    """R-A8 (page): price per accelerator-hour, per GiB and per measured compute, side by side."""
    row = next(r for r in show().context["rows"] if r.listing.title == "Large")
    assert row.price.per_hour == 70_000
    assert row.price.per_gib_hour == 70_000 // 32
    assert row.price.per_peta_hour == int(70_000 * 1_000_000 / 20.5)
    text = show().content.decode()
    assert "32,768" in text
    assert 'class="gauge met"' in text


def test_what_is_held_is_not_free(world: World, now: datetime) -> None:
    listing = published_listing(world, now=now)
    assert show().context["rows"][0].free == 1
    device = Device.objects.get(node=listing.node)
    real_now = datetime.now(tz=now.tzinfo)
    Hold.objects.create(
        device=device,
        slots=(0, 1),
        period=(real_now, real_now + timedelta(hours=1)),
        kind="lease",
        holder="lse_test",
    )
    assert show().context["rows"][0].free == 0


def test_a_title_is_shown_as_text(world: World, now: datetime) -> None:
    title = '<script>alert(1)</script>" onmouseover="x'
    listing = published_listing(world, now=now, body=body_with(title=title))
    for path in (URL, f"/listings/{listing.public_id}/"):
        text = Client().get(path).content.decode()
        assert "<script>alert" not in text
        assert '" onmouseover' not in text
        assert "&lt;script&gt;alert(1)" in text


def test_simulated_machines_are_marked(world: World, now: datetime) -> None:
    published_listing(world, now=now, simulated=True)
    assert 'class="simulated"' in show().content.decode()


def test_the_page_costs_the_same_however_long_the_list(
    world: World, now: datetime, django_assert_num_queries: Any
) -> None:
    published_listing(world, now=now, name="n0")
    with django_assert_num_queries(14):
        show()
    for number in range(1, 5):
        published_listing(world, now=now, name=f"n{number}", body=BODY)
    with django_assert_num_queries(14):
        assert len(show().context["rows"]) == 5
