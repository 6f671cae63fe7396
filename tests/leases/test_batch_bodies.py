"""Reading a meter batch's body."""

from typing import Any

import pytest

from leases.domain.batches import SENTINELS, BadBatch, read_batch

GOOD: dict[str, Any] = {
    "v": 1,
    "lease": "lse_x",
    "agreement": "agr_x",
    "node": "nod_x",
    "terms_digest": "ab" * 32,
    "epoch": 0,
    "seq": 3,
    "prev": "cd" * 32,
    "window_index": 353_000_000,
    "starts_at": "2026-12-01T12:00:00Z",
    "ends_at": "2026-12-01T12:00:05Z",
    "ready_seconds": 5,
    "observed": {"memory_mib": 1024, "cpu_model": "EPYC", "interconnect": None},
    "samples": 5,
    "monotonic_ns": "123456789",
    "final": False,
}


def code_of(**changes: Any) -> str:
    with pytest.raises(BadBatch) as caught:
        read_batch({**GOOD, **changes})
    return caught.value.code


def test_a_sound_body_is_read_as_it_is() -> None:
    """R-C4 (agent): nothing in a sound body is interpreted."""
    batch = read_batch(GOOD)
    assert batch.prev == bytes.fromhex("cd" * 32)
    assert batch.ready_seconds == 5
    assert batch.observed == GOOD["observed"]


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"v": 2}, "unknown_version"),
        ({"v": True}, "unknown_version"),
        ({"extra": 1}, "unknown_field"),
        ({"prev": "AB" * 32}, "malformed_prev"),
        ({"prev": "ab"}, "malformed_prev"),
        ({"terms_digest": None}, "malformed_terms_digest"),
        ({"seq": -1}, "implausible_seq"),
        ({"seq": 1.0}, "malformed_seq"),
        ({"seq": True}, "malformed_seq"),
        ({"ready_seconds": "5"}, "malformed_ready_seconds"),
        ({"ready_seconds": 2**64 - 1}, "implausible_ready_seconds"),
        ({"starts_at": "2026-12-01T12:00:00"}, "malformed_starts_at"),
        ({"starts_at": "2026-12-01T13:00:00+01:00"}, "malformed_starts_at"),
        ({"ends_at": "yesterday"}, "malformed_ends_at"),
        ({"ends_at": 1_700_000_000}, "malformed_ends_at"),
        ({"observed": []}, "malformed_observed"),
        ({"observed": {"memory_mib": {"value": 1}}}, "implausible_observed"),
        ({"observed": {"memory_mib": float("nan")}}, "implausible_observed"),
        ({"observed": {"memory_mib": float("inf")}}, "implausible_observed"),
        ({"observed": {"memory_mib": -4}}, "implausible_observed"),
        ({"observed": {"cpu_model": "x" * 201}}, "implausible_observed"),
        ({"observed": {f"f{n}": 1 for n in range(65)}}, "malformed_observed"),
        ({"monotonic_ns": 12}, "malformed_monotonic_ns"),
        ({"monotonic_ns": "-1"}, "malformed_monotonic_ns"),
        ({"final": 0}, "malformed_final"),
        ({"lease": ""}, "malformed_lease"),
    ],
)
def test_a_body_that_breaks_a_rule_is_refused_with_the_field(
    changes: dict[str, Any], code: str
) -> None:
    """R-C4 (agent): every field is checked, and the code names it."""
    assert code_of(**changes) == code


@pytest.mark.parametrize("value", sorted(SENTINELS))
def test_a_drivers_word_for_unknown_is_never_a_reading(value: int) -> None:
    """R-C5 (agent): a device that failed once reported 18446744073709551615 free."""
    assert code_of(observed={"memory_mib": value}) == "implausible_observed"


def test_a_missing_field_or_another_type_is_refused() -> None:
    """R-C4 (agent): a body is an object with exactly its fields."""
    short = {name: value for name, value in GOOD.items() if name != "samples"}
    for body, code in (
        (short, "missing_field"),
        ([GOOD], "not_an_object"),
        (None, "not_an_object"),
    ):
        with pytest.raises(BadBatch) as caught:
            read_batch(body)
        assert caught.value.code == code
