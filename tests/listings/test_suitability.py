"""What a promise is good for, from its five lines alone."""

from typing import Any

import pytest

from listings.domain.suitability import advise, one_machine, suited
from tests.listings.bodies import BODY

H100S: dict[str, Any] = {
    **BODY["promise"],
    "device_class": "nvidia-h100-80gb-sxm",
    "unit_count": 8,
    "memory_mib": 80_900,
    "system_memory_mib": 2_000_000,
    "cpu_cores": 96,
    "disk_gib": 12_000,
    "disk_read_mb_s": 10_000,
    "network_up_mbit_s": 10_000,
    "interconnect": "nvswitch",
    "peer_bandwidth_gb_s": 680,
}


def test_one_listing_can_suit_all_kinds_of_work() -> None:
    """R-A6 (api): serving, batch and training are all said from the five lines."""
    assert suited("accelerator", H100S) == ["serving", "batch", "training"]


def test_a_listing_can_suit_none_and_every_field_says_why() -> None:
    """R-A6 (api): none is an answer, with a reason for every field that was asked."""
    tiny = {**BODY["promise"], "memory_mib": 512}
    assert suited("accelerator", tiny) == []
    for advice in advise("accelerator", tiny):
        against = {r.field for r in advice.reasons if r.needed and not r.met}
        assert "memory_mib" in against
        assert all(r.text and r.line in range(1, 6) for r in advice.reasons)


@pytest.mark.parametrize(
    ("change", "lost"),
    [
        ({"interface": "ssh"}, "serving"),
        ({"unit_kind": "slice", "slice_kind": "time_slice"}, "serving"),
        ({"memory_mib": 12_287}, "serving"),
        ({"memory_mib": 24_575}, "training"),
        ({"unit_kind": "slice", "slice_kind": "mig"}, "training"),
        ({"peer_bandwidth_gb_s": 49}, "training"),
        ({"peer_bandwidth_gb_s": None}, "training"),
        ({"system_memory_mib": 8 * 80_900 - 1}, "training"),
        ({"disk_gib": 9}, "batch"),
        ({"cpu_cores": 7}, "batch"),
    ],
)
def test_one_field_can_decide(change: dict[str, Any], lost: str) -> None:
    promise = {k: v for k, v in {**H100S, **change}.items() if v is not None}
    assert lost not in suited("accelerator", promise)


def test_a_helpful_field_never_decides() -> None:
    promise = {**H100S, "disk_read_mb_s": 10}
    assert "training" in suited("accelerator", promise)


def test_price_and_title_have_no_say() -> None:
    assert suited("accelerator", {**H100S, "price": 0, "title": "best"}) == suited(
        "accelerator", H100S
    )


def test_units_serve_as_one_machine_by_peer_bandwidth() -> None:
    """R-A4 (api): whether units can serve one model as one machine follows from peer bandwidth."""
    assert one_machine({**H100S, "unit_count": 1}).met
    assert one_machine(H100S).met
    assert not one_machine({**H100S, "peer_bandwidth_gb_s": 20}).met


def test_a_kind_without_rules_suits_nothing() -> None:
    assert advise("storage", {}) == []
