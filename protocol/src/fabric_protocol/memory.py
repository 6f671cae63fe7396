"""A proof that a range of memory was held at once, which the checker follows without holding it.

The prover fills the range with a keyed stream, mixes it in place, commits to every cell by a Merkle
root, and then walks: each read-back address follows from the values read before. Mixing works in
layers over groups of cells that a keyed permutation draws from the whole range; a cell depends on
all `group` members of its group, so after `layers` layers on group**layers cells. The checker makes
any one cell from the nonce by following that tree, and so checks opened cells and stretches of the
walk by itself. Whoever dropped a cell pays for the same tree, thousands of cells for one, at every
step that meets it, one step after another. docs/adr states what that leaves to a cheat.
"""

import base64
import binascii
import hashlib
import mmap
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fabric_protocol import keystream, merkle
from fabric_protocol.product import Finding

FRACTION_BPS = 9_500
_STATE_BYTES = 16
_BATCH_BYTES = 256 << 10
_ROUNDS = 4
Indices = NDArray[np.int64]
Words = NDArray[np.uint64]


@dataclass(frozen=True)
class MemoryWork:
    """How much is asked: `cells` = rows·columns cells, how they mix, and what is read back."""

    rows: int
    columns: int
    cell_bytes: int = 2048
    group: int = 64
    layers: int = 2
    steps: int = 16_384
    stretch: int = 8
    opened: int = 16

    def __post_init__(self) -> None:
        if not (
            self.group in {4, 8, 16, 32, 64}
            and 1 <= self.layers <= 3
            and self.cell_bytes in {256, 512, 1024, 2048, 4096, 8192, 16_384, 65_536}
            and 2 <= self.rows <= 1 << 24
            and 2 <= self.columns <= 1 << 16
            and self.columns % self.group == 0
            and 1 <= self.stretch <= 64
            and self.stretch <= self.steps <= 1 << 20
            and self.steps % self.stretch == 0
            and 1 <= self.opened <= 256
        ):
            raise ValueError("the memory asked for is outside what the protocol allows")

    @classmethod
    def covering(cls, promised_bytes: int, **shape: int) -> "MemoryWork":
        """Return the work that fills at least 95 % of the promised bytes, and little more."""
        cell_bytes = shape.get("cell_bytes", cls.cell_bytes)
        group = shape.get("group", cls.group)
        needed = -(-promised_bytes * FRACTION_BPS // 10_000 // cell_bytes)
        columns = max(group, 1 << (int(needed**0.5).bit_length() - 1))
        return cls(rows=max(2, -(-needed // columns)), columns=columns, **shape)

    @property
    def cells(self) -> int:
        """How many cells the range has."""
        return self.rows * self.columns

    @property
    def range_bytes(self) -> int:
        """How many bytes are filled."""
        return self.cells * self.cell_bytes

    @property
    def bytes_touched(self) -> int:
        """Bytes written and read: the fill, every layer twice, the commitment, the walk."""
        return self.range_bytes * (2 + 2 * self.layers) + self.steps * self.cell_bytes

    @property
    def tree_cells(self) -> int:
        """How many cells of the fill each cell of the mixed range depends on."""
        return int(self.group**self.layers)


class Memory:
    """The prover's side: fills, mixes, commits, and reads back; holds the whole range."""

    def __init__(self, nonce: bytes, work: MemoryWork) -> None:
        self.work = work
        self._nonce = nonce
        self._map = mmap.mmap(-1, work.range_bytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        if hasattr(mmap, "MADV_HUGEPAGE"):
            self._map.madvise(mmap.MADV_HUGEPAGE)
        self._bytes = np.frombuffer(self._map, dtype=np.uint8)
        self._levels: list[bytearray] = []

    def fill_and_mix(self) -> None:
        """Write the keyed stream over the range and mix it in place, layer by layer."""
        work = self.work
        keystream.fill(keystream.derive(self._nonce, "memory-fill"), self._bytes)
        cells = self._bytes.view(np.uint64).reshape(work.cells, work.cell_bytes // 8)
        batch = max(1, _BATCH_BYTES // (work.group * work.cell_bytes)) * work.group
        for layer in range(work.layers):
            order = Permutation(self._nonce, work, layer)
            cipher = keystream.block_cipher(_layer_key(self._nonce, layer))
            for first in range(0, work.cells, batch):
                last = min(first + batch, work.cells)
                places = order.forward(np.arange(first, last, dtype=np.int64))
                groups = cells[places].reshape(-1, work.group, cells.shape[1])
                cells[places] = mix(groups, cipher).reshape(len(places), -1)

    def commit(self) -> str:
        """Return the Merkle root over all cells, in hex; keeps the levels for the proofs."""
        leaves = bytearray(self.work.cells * merkle.HASH_BYTES)
        for place, digest in enumerate(self._leaf_hashes()):
            leaves[place * merkle.HASH_BYTES : (place + 1) * merkle.HASH_BYTES] = digest
        self._levels = [leaves]
        while len(self._levels[-1]) > merkle.HASH_BYTES:
            self._levels.append(_level_above(self._levels[-1]))
        return self._levels[-1].hex()

    def open(self, seed: bytes) -> dict[str, Any]:
        """Walk the range from the seed and prove the opened cells."""
        return {
            "checkpoints": base64.b64encode(b"".join(self._walk(seed))).decode(),
            "proofs": [
                [step.hex() for step in self._proof(index)]
                for index in opened_cells(seed, self.work)
            ],
        }

    def close(self) -> None:
        """Give the memory back."""
        del self._bytes
        self._map.close()

    def cell(self, index: int) -> memoryview:
        """Return the bytes of one cell as they are held."""
        size = self.work.cell_bytes
        return self._bytes.data[index * size : (index + 1) * size]

    def _leaf_hashes(self) -> Iterator[bytes]:
        sha256, size, view = hashlib.sha256, self.work.cell_bytes, self._bytes.data
        for start in range(0, self.work.range_bytes, size):
            hasher = sha256(b"\x00")
            hasher.update(view[start : start + size])
            yield hasher.digest()

    def _walk(self, seed: bytes) -> Iterator[bytes]:
        work, sha256, view = self.work, hashlib.sha256, self._bytes.data
        state, size, cells = first_state(seed), work.cell_bytes, work.cells
        for number in range(1, work.steps + 1):
            start = int.from_bytes(state[:8], "little") % cells * size
            hasher = sha256(state)
            hasher.update(view[start : start + size])
            state = hasher.digest()[:_STATE_BYTES]
            if number % work.stretch == 0:
                yield state

    def _proof(self, index: int) -> list[bytes]:
        path = []
        for level in self._levels[:-1]:
            sibling = (index ^ 1) * merkle.HASH_BYTES
            if sibling < len(level):
                path.append(bytes(level[sibling : sibling + merkle.HASH_BYTES]))
            index >>= 1
        return path


class Permutation:
    """A keyed order of all cells, cheap in both directions: four rounds over a grid."""

    def __init__(self, nonce: bytes, work: MemoryWork, layer: int) -> None:
        self._rows, self._columns = work.rows, work.columns
        self._shifts = [
            keystream.integers(
                keystream.derive(nonce, "memory-order", layer, number),
                work.rows if number & 1 else work.columns,
                work.columns if number & 1 else work.rows,
            )
            for number in range(_ROUNDS)
        ]

    def forward(self, places: Indices) -> Indices:
        """Return which cell stands at each place of the order."""
        row, column = np.divmod(places, self._columns)
        for number, shift in enumerate(self._shifts):
            if number & 1:
                column = (column + shift[row]) % self._columns
            else:
                row = (row + shift[column]) % self._rows
        return row * self._columns + column

    def inverse(self, cells: Indices) -> Indices:
        """Return the place at which each cell stands in the order."""
        row, column = np.divmod(cells, self._columns)
        for number, shift in reversed(list(enumerate(self._shifts))):
            if number & 1:
                column = (column - shift[row]) % self._columns
            else:
                row = (row - shift[column]) % self._rows
        return row * self._columns + column


def mix(groups: Words, cipher: Any) -> Words:
    """Return the groups mixed: every cell of the result depends on all cells of its group.

    A network of log2(group) levels joins pairs; what comes out is encrypted and added to the cell
    that went in. The first half alone could be undone, and a missing cell be had from its
    neighbours and one input; the sum with the input cell closes that way.
    """
    members = groups.shape[1]
    mixed = groups.copy()
    for level in range(members.bit_length() - 1):
        step = 1 << level
        pairs = mixed.reshape(len(groups), members // (2 * step), 2, step, -1)
        low, high = pairs[:, :, 0], pairs[:, :, 1]
        np.add(low, high, out=low)
        turn = _turn(level)
        np.bitwise_xor(high[..., turn:], low[..., :-turn], out=high[..., turn:])
        np.bitwise_xor(high[..., :turn], low[..., -turn:], out=high[..., :turn])
    sealed = _encrypt(cipher, mixed)
    np.bitwise_xor(sealed, groups, out=sealed)
    return sealed


def mix_one(groups: Words, member: Indices, cipher: Any) -> Words:
    """Return what `mix` gives for one member of each group, at a fraction of the work."""
    rest = groups
    for level in range(groups.shape[1].bit_length() - 1):
        high = rest[:, 1::2]
        kept = rest[:, 0::2] + high
        takes_high = (member >> level) & 1 == 1
        kept[takes_high] = high[takes_high] ^ np.roll(kept[takes_high], _turn(level), axis=-1)
        rest = kept
    sealed = _encrypt(cipher, rest[:, 0])
    np.bitwise_xor(sealed, groups[np.arange(len(groups)), member], out=sealed)
    return sealed


class Recomputer:
    """The checker's side: makes single cells of the mixed range from the nonce alone."""

    def __init__(self, nonce: bytes, work: MemoryWork) -> None:
        self._work = work
        self._fill_key = keystream.derive(nonce, "memory-fill")
        self._orders = [Permutation(nonce, work, layer) for layer in range(work.layers)]
        self._ciphers = [
            keystream.block_cipher(_layer_key(nonce, layer)) for layer in range(work.layers)
        ]

    def cells(self, indices: list[int]) -> list[bytes]:
        """Return the mixed cells at `indices`; each costs `tree_cells` cells of the fill."""
        return [
            self._after(np.array([index], dtype=np.int64), self._work.layers)[0].tobytes()
            for index in indices
        ]

    def _after(self, indices: Indices, layer: int) -> Words:
        if layer == 0:
            return keystream.cells(self._fill_key, indices, self._work.cell_bytes).view(np.uint64)
        size, order = self._work.group, self._orders[layer - 1]
        place, member = np.divmod(order.inverse(indices), size)
        members = order.forward((place[:, None] * size + np.arange(size)).reshape(-1))
        groups = self._after(members, layer - 1).reshape(len(indices), size, -1)
        return mix_one(groups, member, self._ciphers[layer - 1])


def first_state(seed: bytes) -> bytes:
    """Return where the walk begins."""
    return keystream.derive(seed, "memory-walk")[:_STATE_BYTES]


def opened_cells(seed: bytes, work: MemoryWork) -> list[int]:
    """Return the cells whose place under the root the seed asks for."""
    key = keystream.derive(seed, "memory-open")
    return [int(index) for index in keystream.integers(key, work.opened, work.cells)]


def check(
    nonce: bytes, work: MemoryWork, root: str, seed: bytes, answer: Any, *, audited: list[int]
) -> list[Finding]:
    """Return what is wrong with an answer, nothing when it holds.

    `audited` are the stretches of the walk to follow, drawn by the checker after the answer came
    and told to no one; see `draw_audit`.
    """
    recomputer = Recomputer(nonce, work)
    try:
        checkpoints = base64.b64decode(answer["checkpoints"], validate=True)
        proofs = [[bytes.fromhex(step) for step in path] for path in answer["proofs"]]
        head = bytes.fromhex(root)
    except (KeyError, TypeError, ValueError, binascii.Error, AttributeError):
        return [Finding("MEMORY_MALFORMED", "the memory answer cannot be read")]
    stretches = work.steps // work.stretch
    if len(checkpoints) != stretches * _STATE_BYTES or len(proofs) != work.opened:
        return [Finding("MEMORY_MALFORMED", "the memory answer is shorter than the work")]
    findings = []
    places = opened_cells(seed, work)
    for place, path, cell in zip(places, proofs, recomputer.cells(places), strict=True):
        if not merkle.verify(merkle.leaf(cell), place, work.cells, path, head):
            findings.append(
                Finding("CELL_WRONG", f"the committed cell {place} is not what mixing gives")
            )
    states = [first_state(seed)] + [
        checkpoints[start : start + _STATE_BYTES]
        for start in range(0, len(checkpoints), _STATE_BYTES)
    ]
    findings += [
        Finding("WALK_WRONG", f"steps {number * work.stretch} and on did not read the range")
        for number in audited
        if not _follows(recomputer, work, states[number], states[number + 1])
    ]
    return findings


def draw_audit(work: MemoryWork, randomness: bytes, count: int) -> list[int]:
    """Return which stretches of the walk to follow, from fresh randomness of the checker."""
    key = keystream.derive(randomness, "memory-audit")
    return [int(number) for number in keystream.integers(key, count, work.steps // work.stretch)]


def _follows(recomputer: Recomputer, work: MemoryWork, start: bytes, end: bytes) -> bool:
    state = start
    for _ in range(work.stretch):
        index = int.from_bytes(state[:8], "little") % work.cells
        state = hashlib.sha256(state + recomputer.cells([index])[0]).digest()[:_STATE_BYTES]
    return state == end


def _layer_key(nonce: bytes, layer: int) -> bytes:
    return keystream.derive(nonce, "memory-mix", layer)


def _turn(level: int) -> int:
    return 2 * level + 1


def _encrypt(cipher: Any, words: Words) -> Words:
    data = np.ascontiguousarray(words).view(np.uint8).reshape(-1)
    return keystream.encrypt_blocks(cipher, data).view(np.uint64).reshape(words.shape)


def _level_above(level: bytearray) -> bytearray:
    """Return the level above; written in place, since the limit leaves little besides the cells."""
    sha256, size = hashlib.sha256, merkle.HASH_BYTES
    nodes = len(level) // (2 * size)
    above = bytearray(nodes * size)
    for place in range(nodes):
        pair = level[2 * place * size : 2 * (place + 1) * size]
        above[place * size : (place + 1) * size] = sha256(b"\x01" + pair).digest()
    return above + level[2 * nodes * size :]
