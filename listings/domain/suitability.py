"""What a promise is good for, said from its five lines alone, with the reason of every field.

A kind of work is suited when all its needed rules are met. A rule that is only helpful is shown
and never decides. The thresholds are published: they stand on every listing page.
"""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from listings.domain.states import Suitability

SERVING_MEMORY_MIB = 12_288
BATCH_MEMORY_MIB = 1_024
TRAINING_MEMORY_MIB = 24_576
SERVING_NETWORK_MBIT_S = 100
BATCH_DISK_GIB = 10
TRAINING_DISK_READ_MB_S = 500
PEER_BANDWIDTH_GB_S = 50


@dataclass(frozen=True)
class Reason:
    """One field's say: whether it meets the rule, and whether the rule decides or only helps."""

    field: str
    line: int
    met: bool
    needed: bool
    text: str


@dataclass(frozen=True)
class Advice:
    """Whether a promise suits one kind of work, and why."""

    work: Suitability
    suits: bool
    reasons: tuple[Reason, ...]

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON object that the API shows."""
        return {
            "work": str(self.work),
            "suits": self.suits,
            "reasons": [asdict(reason) for reason in self.reasons],
        }


def advise(kind: str, promise: Mapping[str, Any]) -> list[Advice]:
    """Return one advice per kind of work; a kind of listing without rules suits none."""
    rules = _RULES.get(kind, {})
    advice = []
    for work, checks in rules.items():
        reasons = tuple(check(promise) for check in checks)
        suits = all(reason.met for reason in reasons if reason.needed)
        advice.append(Advice(work=work, suits=suits, reasons=reasons))
    return advice


def suited(kind: str, promise: Mapping[str, Any]) -> list[str]:
    """Return the kinds of work that suit; an empty list is the answer `none`."""
    return [str(item.work) for item in advise(kind, promise) if item.suits]


def one_machine(promise: Mapping[str, Any]) -> Reason:
    """Say whether the units can serve one model as one machine, from their peer bandwidth."""
    count = promise.get("unit_count", 1)
    if count == 1:
        return Reason("unit_count", 1, met=True, needed=True, text="One accelerator, no peers")
    return _at_least(
        "peer_bandwidth_gb_s", 4, PEER_BANDWIDTH_GB_S, "GB/s", "between the lowest pair"
    )(promise)


_Check = Callable[[Mapping[str, Any]], Reason]


def _at_least(
    field: str, line: int, minimum: int, unit: str, purpose: str, *, needed: bool = True
) -> _Check:
    def check(promise: Mapping[str, Any]) -> Reason:
        value = promise.get(field)
        if value is None:
            text = f"{minimum:,} {unit} {purpose} wanted; nothing is promised"
            return Reason(field, line, met=False, needed=needed, text=text)
        met = value >= minimum
        word = "at least" if met else "below the"
        text = f"{value:,} {unit} {purpose}, {word} {minimum:,}{' needed' if needed else ' wanted'}"
        return Reason(field, line, met=met, needed=needed, text=text)

    return check


def _one_of(field: str, line: int, good: tuple[str, ...], yes: str, no: str) -> _Check:
    def check(promise: Mapping[str, Any]) -> Reason:
        value = str(promise.get(field, "nothing"))
        met = value in good
        word = value.upper() if value in {"http", "ssh"} else value.replace("_", " ")
        text = f"{word}: {yes if met else no}"
        return Reason(field, line, met=met, needed=True, text=text)

    return check


def _host_memory(promise: Mapping[str, Any]) -> Reason:
    total = promise.get("memory_mib", 0) * promise.get("unit_count", 1)
    host = promise.get("system_memory_mib", 0)
    met = host >= total
    text = (
        f"{host:,} MiB of system memory {'hold' if met else 'cannot hold'} {total:,} MiB of state"
    )
    return Reason("system_memory_mib", 3, met=met, needed=True, text=text)


def _large_enough_host(promise: Mapping[str, Any]) -> Reason:
    cores, count = promise.get("cpu_cores", 0), promise.get("unit_count", 1)
    met = cores >= count
    text = f"{cores:,} cores for {count:,} accelerator{'s' if count > 1 else ''}"
    return Reason("cpu_cores", 3, met=met, needed=True, text=text)


def _speed_is_its_own(promise: Mapping[str, Any]) -> Reason:
    shared = promise.get("slice_kind") == "time_slice"
    text = "time slice: a neighbour's burst delays answers" if shared else "its speed is its own"
    return Reason("unit_kind", 1, met=not shared, needed=True, text=text)


_RULES: dict[str, dict[Suitability, tuple[_Check, ...]]] = {
    "accelerator": {
        Suitability.SERVING: (
            _speed_is_its_own,
            _at_least("memory_mib", 2, SERVING_MEMORY_MIB, "MiB", "for weights and cache"),
            _at_least(
                "network_up_mbit_s", 3, SERVING_NETWORK_MBIT_S, "Mbit/s", "towards callers",
                needed=False,
            ),
            one_machine,
            _one_of(
                "interface", 5, ("http", "kubernetes"),
                "callers and health checks reach it", "carries no health checks",
            ),
        ),
        Suitability.BATCH: (
            _one_of(
                "unit_kind", 1, ("whole", "slice"),
                "nobody waits for a job", "a job cannot run on it",
            ),
            _at_least("memory_mib", 2, BATCH_MEMORY_MIB, "MiB", "per accelerator"),
            _large_enough_host,
            _at_least("disk_gib", 3, BATCH_DISK_GIB, "GiB", "for input and output"),
            _one_of(
                "interface", 5, ("http", "ssh", "jupyter", "kubernetes"),
                "a job can be handed in", "a job cannot be handed in",
            ),
        ),
        Suitability.TRAINING: (
            _one_of(
                "unit_kind", 1, ("whole",), "all its memory and speed", "a share of a device is too little"
            ),
            _at_least("memory_mib", 2, TRAINING_MEMORY_MIB, "MiB", "for weights and gradients"),
            _host_memory,
            _at_least(
                "disk_read_mb_s", 3, TRAINING_DISK_READ_MB_S, "MB/s", "from local storage",
                needed=False,
            ),
            one_machine,
        ),
    }
}  # fmt: skip
