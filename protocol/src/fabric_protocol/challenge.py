"""A whole challenge: what the server asks, what the node answers, and what the server then knows.

Four documents travel, in this order. `parameters` with a nonce (the server's clock starts), the
node's `commitment`, the `opening` with a seed nobody could know before, and the `answer`. Every
device works on a nonce of its own, derived from the challenge's and from the report the node had
committed to, so that neither an answer nor an inventory can be exchanged afterwards.

Timings that a node states are claims. `trusted_timings` stretches them until they fill the time the
server measured; a node can move time between product and memory, and both are judged.
"""

import base64
import hashlib
import math
import secrets
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

from fabric_protocol import keystream, memory, product
from fabric_protocol.product import Finding

NONCE_BYTES = 32
DEFAULT_SECONDS = 2.5
AUDITED_STRETCHES = 8
_SIZES = (256, 512, 1024, 2048, 4096, 8192)
_MAX_ROUNDS = 6
_STEPS, _MOST_STEPS = 1 << 18, 1 << 20


@dataclass(frozen=True)
class DeviceWork:
    """What one device is asked to do."""

    ordinal: int
    product: product.ProductWork
    memory: memory.MemoryWork


@dataclass(frozen=True)
class Parameters:
    """What a challenge asks for; a scale above 1 says by how much a simulated node's work is cut."""

    report: str
    devices: tuple[DeviceWork, ...]
    product_scale: int = 1
    memory_scale: int = 1

    def as_document(self) -> dict[str, Any]:
        """Return the JSON form that travels and is kept."""
        return {
            "v": 1,
            "report": self.report,
            "product_scale": self.product_scale,
            "memory_scale": self.memory_scale,
            "devices": [asdict(device) for device in self.devices],
        }

    @classmethod
    def from_document(cls, document: dict[str, Any]) -> "Parameters":
        """Read the JSON form; ValueError when it asks for what the protocol does not allow."""
        try:
            devices = tuple(
                DeviceWork(
                    ordinal=int(item["ordinal"]),
                    product=product.ProductWork(**item["product"]),
                    memory=memory.MemoryWork(**item["memory"]),
                )
                for item in document["devices"]
            )
            parameters = cls(
                report=str(document["report"]),
                devices=devices,
                product_scale=int(document["product_scale"]),
                memory_scale=int(document["memory_scale"]),
            )
        except (KeyError, TypeError) as error:
            raise ValueError(f"the challenge's parameters cannot be read: {error}") from error
        if document.get("v") != 1 or not devices:
            raise ValueError("the challenge's parameters are of another version, or empty")
        if min(parameters.product_scale, parameters.memory_scale) < 1:
            raise ValueError("a scale is a whole number from 1")
        return parameters

    @property
    def is_scaled(self) -> bool:
        """Whether the work was cut, which only a simulated node may accept."""
        return self.product_scale > 1 or self.memory_scale > 1

    @property
    def operations(self) -> int:
        """Operations of the products of all devices, as if nothing had been scaled down."""
        return self.product_scale * sum(device.product.operations for device in self.devices)

    @property
    def bytes_touched(self) -> int:
        """Bytes written and read on all devices, as if nothing had been scaled down."""
        return self.memory_scale * sum(device.memory.bytes_touched for device in self.devices)

    @property
    def range_bytes(self) -> int:
        """Bytes held at once on all devices, as if nothing had been scaled down."""
        return self.memory_scale * sum(device.memory.range_bytes for device in self.devices)


def size_parameters(
    *,
    report: str,
    units_mib: dict[int, int],
    expected_gops: float,
    cores: int = 1,
    seconds: float = DEFAULT_SECONDS,
) -> Parameters:
    """Return work that keeps every device busy for about `seconds`, and fills its memory.

    `units_mib` is the promised memory of each device by ordinal and `expected_gops` the rate of
    one device. More cores walk further, since they also recompute faster (docs/adr).
    """
    rounds_of = _product_for(expected_gops * 1e9 * seconds)
    steps = min(_MOST_STEPS, _STEPS * max(1, 1 << (max(1, cores) - 1).bit_length() >> 1))
    return Parameters(
        report=report,
        devices=tuple(
            DeviceWork(
                ordinal=ordinal,
                product=rounds_of,
                memory=memory.MemoryWork.covering(mib << 20, steps=steps),
            )
            for ordinal, mib in sorted(units_mib.items())
        ),
    )


def scaled_parameters(
    *, report: str, units_mib: dict[int, int], expected_gops: float, seconds: float
) -> Parameters:
    """Return the same questions for a simulated node, cut to a few megabytes and milliseconds.

    The factors it was cut by stand in the parameters, so that rates on the node's virtual clock
    come out as if the whole work had been done.
    """
    small = product.ProductWork(n=256, rounds=1, rows=4)
    mixed = memory.MemoryWork.covering(2 << 20, cell_bytes=256, group=16, steps=256, opened=4)
    promised = sum(units_mib.values()) << 20
    return Parameters(
        report=report,
        product_scale=max(1, round(expected_gops * 1e9 * seconds / small.operations)),
        memory_scale=max(1, round(promised / (len(units_mib) * mixed.range_bytes))),
        devices=tuple(DeviceWork(ordinal, small, mixed) for ordinal in sorted(units_mib)),
    )


def _product_for(operations: float) -> product.ProductWork:
    for n in _SIZES:
        rounds = math.ceil(operations / (2 * n**3))
        if rounds <= _MAX_ROUNDS:
            return product.ProductWork(n=n, rounds=max(1, rounds))
    rounds = min(64, math.ceil(operations / (2 * _SIZES[-1] ** 3)))
    return product.ProductWork(n=_SIZES[-1], rounds=rounds, rows=2)


def new_nonce() -> bytes:
    """Return a nonce for one challenge."""
    return secrets.token_bytes(NONCE_BYTES)


def new_opening() -> dict[str, Any]:
    """Return the seed that is revealed once the node has committed."""
    return {"seed": base64.b64encode(secrets.token_bytes(NONCE_BYTES)).decode()}


def device_nonce(nonce: bytes, report: str, ordinal: int) -> bytes:
    """Return the nonce one device works on, bound to challenge, report and place."""
    return keystream.derive(nonce + hashlib.sha256(report.encode()).digest(), "device", ordinal)


@dataclass
class Prover:
    """The node's side of a challenge, one device after another; see `Timings` for its clock."""

    nonce: bytes
    parameters: Parameters
    clock: Callable[[], float] = time.perf_counter
    timings: dict[str, float] = field(default_factory=dict)
    _products: list[product.Product] = field(default_factory=list)
    _memories: list[memory.Memory] = field(default_factory=list)

    def commit_products(self) -> list[list[str]]:
        """Multiply on every device and return its roots."""
        start, roots = self.clock(), []
        for device in self.parameters.devices:
            self._products.append(product.Product(self._nonce_of(device), device.product))
            roots.append(self._products[-1].commit())
        self.timings["product_seconds"] = self.clock() - start
        return roots

    def commit_memories(self) -> list[str]:
        """Fill, mix and hash the memory of every device and return its root."""
        start, roots = self.clock(), []
        for device in self.parameters.devices:
            self._memories.append(memory.Memory(self._nonce_of(device), device.memory))
            self._memories[-1].fill_and_mix()
            roots.append(self._memories[-1].commit())
        self.timings["memory_seconds"] = self.clock() - start
        return roots

    def commit(self) -> dict[str, Any]:
        """Do all the work and return the commitment document."""
        product_roots, memory_roots = self.commit_products(), self.commit_memories()
        return commitment_document(self.parameters, product_roots, memory_roots)

    def open(self, opening: dict[str, Any]) -> list[dict[str, Any]]:
        """Return what the opening asks of every device."""
        start, seed = self.clock(), read_seed(opening)
        opened = [
            {"ordinal": device.ordinal, "product": done.open(seed), "memory": held.open(seed)}
            for device, done, held in zip(
                self.parameters.devices, self._products, self._memories, strict=True
            )
        ]
        self.timings["read_back_seconds"] = self.clock() - start
        return opened

    def close(self) -> None:
        """Give all memory back."""
        for held in self._memories:
            held.close()
        self._memories.clear()
        self._products.clear()

    def _nonce_of(self, device: DeviceWork) -> bytes:
        return device_nonce(self.nonce, self.parameters.report, device.ordinal)


def commitment_document(
    parameters: Parameters, product_roots: list[list[str]], memory_roots: list[str]
) -> dict[str, Any]:
    """Return the commitment as it travels."""
    return {
        "v": 1,
        "devices": [
            {"ordinal": device.ordinal, "product_roots": roots, "memory_root": root}
            for device, roots, root in zip(
                parameters.devices, product_roots, memory_roots, strict=True
            )
        ],
    }


def read_back_limit_seconds(parameters: Parameters, *, network_seconds: float = 8.0) -> float:
    """Return how long opening and reading back may take, by the server's clock.

    An honest step costs about five microseconds; 30 are allowed, and a part for the
    network and a busy host.
    Making a dropped cell again costs a thousand and more, which is what the limit is for.
    """
    steps = sum(device.memory.steps for device in parameters.devices)
    rounds = sum(device.product.rounds for device in parameters.devices)
    return network_seconds + steps * 30e-6 + rounds * 0.5


def read_seed(opening: dict[str, Any]) -> bytes:
    """Return the seed of an opening; ValueError when it is not one."""
    seed = base64.b64decode(str(opening["seed"]), validate=True)
    if len(seed) != NONCE_BYTES:
        raise ValueError("an opening's seed has 32 bytes")
    return seed


def check_commitment(parameters: Parameters, commitment: Any) -> None:
    """Refuse, with ValueError, a commitment that does not cover every device of the challenge."""
    devices = commitment.get("devices") if isinstance(commitment, dict) else None
    if not isinstance(devices, list) or len(devices) != len(parameters.devices):
        raise ValueError("the commitment must name every device of the challenge")
    for device, committed in zip(parameters.devices, devices, strict=True):
        if not isinstance(committed, dict) or committed.get("ordinal") != device.ordinal:
            raise ValueError(f"device {device.ordinal} is missing or out of order")
        roots = [committed.get("memory_root"), *_list(committed.get("product_roots"))]
        if len(roots) != 1 + device.product.rounds or not all(map(_is_digest, roots)):
            raise ValueError(f"device {device.ordinal}: every root is a SHA-256 in hex")


def check_answer(
    *,
    nonce: bytes,
    parameters: Parameters,
    commitment: dict[str, Any],
    opening: dict[str, Any],
    answer: Any,
    randomness: bytes | None = None,
    audited: int = AUDITED_STRETCHES,
) -> list[Finding]:
    """Return everything wrong with the answered work, nothing when all of it holds.

    `answer` is the list of devices in the node's signed answer. Which stretches of the walk are
    followed is drawn here, after the answer, so that nothing could be prepared for it.
    """
    if not isinstance(answer, list) or len(answer) != len(parameters.devices):
        return [Finding("ANSWER_MALFORMED", "the answer must name every device of the challenge")]
    seed, findings = read_seed(opening), []
    drawn = secrets.token_bytes(NONCE_BYTES) if randomness is None else randomness
    for device, committed, answered in zip(
        parameters.devices, commitment["devices"], answer, strict=True
    ):
        if not isinstance(answered, dict) or answered.get("ordinal") != device.ordinal:
            findings.append(
                Finding("ANSWER_MALFORMED", f"device {device.ordinal} is missing or out of order")
            )
            continue
        own = device_nonce(nonce, parameters.report, device.ordinal)
        findings += product.check(
            own, device.product, committed["product_roots"], seed, answered.get("product")
        )
        findings += memory.check(
            own,
            device.memory,
            committed["memory_root"],
            seed,
            answered.get("memory"),
            audited=memory.draw_audit(device.memory, drawn, audited),
        )
    return findings


def trusted_timings(claimed: Any, *, commit_seconds: float) -> dict[str, float]:
    """Return product and memory seconds that fill the time the server saw; ValueError if they lie.

    `commit_seconds` lies between the nonce leaving and the commitment arriving, by the server's
    clock (or, for a simulated node, by its virtual one).
    """
    try:
        work = float(claimed["product_seconds"])
        held = float(claimed["memory_seconds"])
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError("the answer states no timings") from error
    total = work + held
    if not (math.isfinite(total) and work > 0 and held > 0):
        raise ValueError("stated timings are positive numbers")
    if total > commit_seconds:
        raise ValueError(f"the node states {total:.3f} s of work within {commit_seconds:.3f} s")
    return {
        "product_seconds": work * commit_seconds / total,
        "memory_seconds": held * commit_seconds / total,
    }


def figures(parameters: Parameters, timings: dict[str, float]) -> dict[str, dict[str, Any]]:
    """Return what the work shows of one device, as facts: rates over trusted timings.

    All devices of a node work at the same time, each on its own share; the slowest sets the time.
    """
    share = len(parameters.devices)
    how = "challenge work over the time from nonce to commitment"
    return {
        "compute_gops": {
            "value": round(parameters.operations / share / timings["product_seconds"] / 1e9, 3),
            "unit": "GOPS",
            "method": f"exact integer matrix product, {how}",
        },
        "memory_bandwidth_gb_s": {
            "value": round(parameters.bytes_touched / share / timings["memory_seconds"] / 1e9, 3),
            "unit": "GB/s",
            "method": f"fill, mixing and hashing of the promised memory, {how}",
        },
    }


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _is_digest(value: Any) -> bool:
    return (
        isinstance(value, str)
        and len(value) == 64
        and all(letter in "0123456789abcdef" for letter in value)
    )
