"""A listing's body is read strictly, and every refusal names field, reason and accepted values."""

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabric.lib.errors import InvalidInput
from listings.domain.bodies import read_body
from listings.domain.kinds import find_kind
from tests.listings.bodies import BODY, body_with

HUGE = 10**30


def refusals(body: object) -> dict[str, str]:
    with pytest.raises(InvalidInput) as refused:
        read_body(body)
    assert all(error.reason and error.accepted for error in refused.value.errors)
    return {error.field: error.code for error in refused.value.errors}


def test_a_good_body_is_stored_as_it_was_written() -> None:
    assert read_body(BODY) == BODY


def test_the_amount_is_stored_as_text_however_it_was_written() -> None:
    assert read_body(body_with(price__amount_micros=50_000)) == BODY


def test_a_body_without_a_kind_is_an_accelerator() -> None:
    assert read_body(body_with(kind=None))["kind"] == "accelerator"


def test_the_five_lines_are_all_there() -> None:
    """R-A1, R-A2, R-A3, R-A4, R-A5 (api): each of the five lines has fields with units."""
    kind = find_kind("accelerator")
    named = {line: {spec.name for spec in kind.fields if spec.line == line} for line in range(1, 6)}
    assert {"device_class", "unit_count", "unit_kind"} <= named[1]
    assert {"memory_mib"} <= named[2]
    assert {"cpu_model", "cpu_cores", "system_memory_mib", "disk_kind", "disk_gib"} <= named[3]
    assert {"disk_read_mb_s", "disk_write_mb_s", "network_down_mbit_s"} <= named[3]
    assert {"interconnect", "peer_bandwidth_gb_s", "pcie_generation", "nvlink_version"} <= named[4]
    assert {"runtime", "driver_version", "interface"} <= named[5]
    assert len([name for name in BODY["promise"] if name in {s.name for s in kind.fields}]) >= 12


@pytest.mark.parametrize(
    ("changes", "field", "code"),
    [
        ({"promise__memory_mib": None}, "promise.memory_mib", "MISSING"),
        ({"title": None}, "title", "MISSING"),
        ({"price": None}, "price.amount_micros", "MISSING"),
        ({"promise__memory_gib": 24}, "promise.memory_gib", "UNKNOWN"),
        ({"colour": "red"}, "colour", "UNKNOWN"),
        ({"price__currency": "USD"}, "price.currency", "UNKNOWN"),
        ({"price__amount_micros": "-1"}, "price.amount_micros", "TOO_SMALL"),
        ({"price__amount_micros": 0}, "price.amount_micros", "TOO_SMALL"),
        ({"price__amount_micros": math.nan}, "price.amount_micros", "NOT_FINITE"),
        ({"price__amount_micros": "NaN"}, "price.amount_micros", "WRONG_TYPE"),
        ({"price__amount_micros": math.inf}, "price.amount_micros", "NOT_FINITE"),
        ({"price__amount_micros": HUGE}, "price.amount_micros", "TOO_LARGE"),
        ({"price__amount_micros": "9" * 5000}, "price.amount_micros", "TOO_LARGE"),
        ({"price__amount_micros": 0.5}, "price.amount_micros", "WRONG_TYPE"),
        ({"price__per_quantity": 60}, "price.per_quantity", "TOO_SMALL"),
        ({"price__meter_unit": "token"}, "price.meter_unit", "UNKNOWN_CHOICE"),
        ({"promise__memory_mib": "1024"}, "promise.memory_mib", "WRONG_TYPE"),
        ({"promise__memory_mib": "24 GiB"}, "promise.memory_mib", "WRONG_TYPE"),
        ({"promise__memory_mib": 24}, "promise.memory_mib", "TOO_SMALL"),
        ({"promise__memory_mib": True}, "promise.memory_mib", "WRONG_TYPE"),
        ({"promise__cpu_cores": -2}, "promise.cpu_cores", "TOO_SMALL"),
        ({"promise__unit_count": 1.5}, "promise.unit_count", "WRONG_TYPE"),
        ({"promise__compute_gops": math.nan}, "promise.compute_gops", "NOT_FINITE"),
        ({"promise__compute_gops": 1.23456}, "promise.compute_gops", "TOO_PRECISE"),
        ({"promise__disk_kind": "tape"}, "promise.disk_kind", "UNKNOWN_CHOICE"),
        ({"promise__device_class": "NVIDIA H100"}, "promise.device_class", "INVALID"),
        ({"promise__unit_kind": "slice"}, "promise.slice_kind", "MISSING"),
        ({"promise__slice_kind": "mig"}, "promise.slice_profile", "MISSING"),
        ({"promise": [1]}, "promise", "INVALID"),
        ({"country": "XX"}, "country", "INVALID"),
        ({"interruptible": "no"}, "interruptible", "WRONG_TYPE"),
        ({"title": "bidi \u202e override"}, "title", "INVALID"),
        ({"title": "x" * 121}, "title", "TOO_LONG"),
        ({"kind": "spaceship"}, "kind", "UNKNOWN"),
    ],
)
def test_a_bad_field_is_refused_by_name(changes: dict[str, Any], field: str, code: str) -> None:
    """R-A11 (api): bad fields are refused with name, reason and accepted values."""
    assert refusals(body_with(**changes)).get(field) == code


def test_every_bad_field_is_named_at_once() -> None:
    body = body_with(title=None, promise__cpu_cores=0, price__amount_micros=0)
    assert set(refusals(body)) == {"title", "promise.cpu_cores", "price.amount_micros"}


def test_a_field_in_the_wrong_unit_is_pointed_to_the_right_one() -> None:
    with pytest.raises(InvalidInput) as refused:
        read_body(body_with(promise__memory_gib=24))
    assert refused.value.errors[0].accepted == "promise.memory_mib"


@pytest.mark.parametrize("body", [None, 7, "text", [], {}])
def test_what_is_no_listing_at_all_is_refused(body: object) -> None:
    assert refusals(body)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=True) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=8,
)
NAMES = [spec.name for spec in find_kind("accelerator").fields]


def read_or_refuse(body: Any) -> tuple[dict[str, Any] | None, list[str]]:
    try:
        return read_body(body), []
    except InvalidInput as refused:
        return None, [error.field for error in refused.errors]


@given(name=st.sampled_from(NAMES), value=JSON)
def test_any_value_is_stored_cleanly_or_refused_by_name(name: str, value: Any) -> None:
    body = body_with()
    body["promise"][name] = value
    read, refused = read_or_refuse(body)
    if read is None:
        assert refused in ([f"promise.{name}"], ["promise.slice_kind"], ["promise.slice_profile"])
    else:
        json.dumps(read, allow_nan=False)
        assert read_body(read) == read


@given(JSON)
def test_reading_never_fails_in_another_way(body: Any) -> None:
    read, refused = read_or_refuse(body)
    assert (read is None) is bool(refused)
