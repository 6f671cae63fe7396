"""The documents that travel between agent and control plane: their types and their members.

Member names here are the contract. Instants are RFC 3339 text in UTC with a `Z`; digests are hex;
nonces and keys are base64; counters that may pass 2^53 are text.
"""

import datetime as dt
from typing import Any, Literal, NotRequired, TypedDict

REPORT = "application/vnd.fabric.report.v1+json"
CHALLENGE_ANSWER = "application/vnd.fabric.challenge-answer.v1+json"
METER_BATCH = "application/vnd.fabric.meter-batch.v1+json"
RECEIPT = "application/vnd.fabric.receipt.v1+json"
DESIRED_STATE = "application/vnd.fabric.desired-state.v1+json"
LISTING = "application/vnd.fabric.listing.v1+json"
ENVELOPE_CONTENT_TYPE = "application/vnd.dsse.envelope.v1+json"


class Fact(TypedDict):
    """One thing measured or read on a host; `value` is null when it could not be."""

    value: Any
    unit: str
    method: str


class HostFacts(TypedDict):
    """What the operating system says about itself."""

    hostname: str
    os: str
    kernel: str
    container_runtime: str | None


# `class` is a keyword, so this one is written in the functional form.
DeviceReport = TypedDict(
    "DeviceReport",
    {
        "ordinal": int,
        "identity": str,
        "name": str,
        "kind": str,
        "class": str,
        "memory_mib": int,
        "slots": int,
        "instruction_set": str,
        "pci_device_id": str | None,
    },
)


class UnitReport(TypedDict):
    """What the provider offers: slots `[a, b)` of a device, with the memory it promises."""

    device: int
    slots: list[int]
    memory_mib: int


class Report(TypedDict):
    """Body of REPORT: the inventory a node commits to before it is challenged."""

    v: Literal[1]
    driver: str
    agent_version: str
    host: HostFacts
    facts: dict[str, Fact]
    devices: list[DeviceReport]
    units: list[UnitReport]
    isolation: Literal["none", "container"]


class WorkloadItem(TypedDict):
    """A desired item of kind workload: what a lease asks of the node."""

    key: str
    kind: Literal["workload"]
    agreement: str
    terms_digest: str
    window_seconds: int
    unit_ordinals: list[int]
    memory_mib: int
    interface: Literal["http"]
    access_token: str
    paid_until: str
    stop: bool
    isolation: Literal["none", "container"]


class ChallengeItem(TypedDict):
    """A desired item of kind challenge: the node shall start the challenge `key`."""

    key: str
    kind: Literal["challenge"]


class DesiredState(TypedDict):
    """Body of DESIRED_STATE, signed by the control plane; generations only rise."""

    v: Literal[1]
    node: str
    generation: int
    issued_at: str
    items: list[dict[str, Any]]


class Access(TypedDict):
    """Where a workload can be reached."""

    interface: str
    host: str
    port: int


class WorkloadStatus(TypedDict):
    """One workload in a beat."""

    lease: str
    state: Literal["starting", "running", "stopping", "stopped", "failed"]
    access: Access | None
    detail: str


class Beat(TypedDict):
    """Body of a beat (not an envelope: it says only what holds now)."""

    seq: int
    health: dict[str, Any]
    workloads: list[WorkloadStatus]


class MeterBatch(TypedDict):
    """Body of METER_BATCH: what the meter saw in one window, chained to the batch before."""

    v: Literal[1]
    lease: str
    agreement: str
    node: str
    terms_digest: str
    epoch: int
    seq: int
    prev: str | None
    window_index: int
    starts_at: str
    ends_at: str
    ready_seconds: int
    observed: dict[str, Any]
    samples: int
    monotonic_ns: str
    final: bool


class Receipt(TypedDict):
    """What the control plane answers to a batch; signed inside the reply."""

    digest: str
    state: Literal["accepted", "parked", "refused"]
    reason: str
    epoch: int
    seq: int
    signature: NotRequired[str]


class ChallengeAnswer(TypedDict):
    """Body of CHALLENGE_ANSWER: the opened work of every device, and the clock it claims."""

    v: Literal[1]
    challenge: str
    node: str
    report: str
    devices: list[dict[str, Any]]
    timings: dict[str, float]
    virtual_clock: bool
    memory_limit: dict[str, Any]


class ListingRequest(TypedDict):
    """Body of LISTING: a new listing, or a new revision of one."""

    listing_id: str | None
    body: dict[str, Any]


def write_instant(at: dt.datetime) -> str:
    """Write an instant as RFC 3339 in UTC, with microseconds only where there are any."""
    return at.astimezone(dt.UTC).isoformat().replace("+00:00", "Z")


def read_instant(text: str) -> dt.datetime:
    """Read an RFC 3339 instant that states its offset; ValueError otherwise."""
    at = dt.datetime.fromisoformat(text)
    if at.tzinfo is None:
        raise ValueError("an instant states its offset")
    try:
        return at.astimezone(dt.UTC)
    except OverflowError as error:
        raise ValueError("an instant lies in the years 1 to 9999, in UTC too") from error
