"""A seeded integer matrix product that only doing it can answer, and its cheap check.

The prover derives A and B from the nonce, multiplies, and commits to the rows of C = A·B by a
Merkle root. Only then does it learn the seed of r and of the rows to open. The checker works in
n² steps: A·(B·r) against the answered C·r (Freivalds), and r times every opened, committed row
against the same. Had r been known before the commitment, a cheat could answer A·(B·r) and skip C.

All arithmetic is exact. The factors hold integers of six bits, so that every partial sum of C
stays below 2^24 and single precision never rounds; r has 16 bits, so that the check stays below
2^53. A wrong row passes one column of r with a chance of 2^-16, two columns with 2^-32.
"""

import base64
import binascii
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fabric_protocol import keystream, merkle

MAX_N = 8192
_ENTRY_BITS = 6
_BLOCK_ROWS = 256
Matrix = NDArray[np.float32]
Exact = NDArray[np.float64]


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong with an answer: a stable code and a sentence."""

    code: str
    detail: str


@dataclass(frozen=True)
class ProductWork:
    """How much is asked: `rounds` products of n by n matrices, and what is opened of each."""

    n: int
    rounds: int
    columns: int = 2
    rows: int = 8

    def __post_init__(self) -> None:
        if not (
            16 <= self.n <= MAX_N
            and 1 <= self.rounds <= 64
            and 1 <= self.columns <= 8
            and 1 <= self.rows <= min(64, self.n)
        ):
            raise ValueError("the product asked for is outside what the protocol allows")

    @property
    def operations(self) -> int:
        """Multiplications and additions of the whole work."""
        return 2 * self.n**3 * self.rounds


class Product:
    """The prover's side: does the work, commits, and opens what the seed asks for."""

    def __init__(self, nonce: bytes, work: ProductWork) -> None:
        self.work = work
        self._nonce = nonce
        self._results: list[Matrix] = []
        self._trees: list[merkle.Tree] = []

    def commit(self) -> list[str]:
        """Multiply every round and return the Merkle root of each, in hex."""
        for number in range(self.work.rounds):
            result = multiply(self._nonce, self.work, number)
            self._results.append(result)
            self._trees.append(
                merkle.Tree(merkle.leaf(row_bytes(result, index)) for index in range(self.work.n))
            )
        return [tree.root.hex() for tree in self._trees]

    def open(self, seed: bytes) -> list[dict[str, Any]]:
        """Return, per round, C·r and the opened rows with their proofs."""
        return [
            {
                "products": _encode(_times(result, vectors(seed, self.work, number))),
                "rows": [
                    {
                        "row": base64.b64encode(row_bytes(result, index)).decode(),
                        "proof": [step.hex() for step in tree.proof(index)],
                    }
                    for index in opened_rows(seed, self.work, number)
                ],
            }
            for number, (result, tree) in enumerate(zip(self._results, self._trees, strict=True))
        ]


def multiply(nonce: bytes, work: ProductWork, number: int) -> Matrix:
    """Return C = A·B of one round, exact although computed in single precision."""
    left = _factor_rows(_factor_key(nonce, number, "a"), 0, work.n, work.n)
    right = _factor_rows(_factor_key(nonce, number, "b"), 0, work.n, work.n)
    result: Matrix = np.matmul(left, right)
    return result


def row_bytes(result: Matrix, index: int) -> bytes:
    """Return what a leaf of the commitment holds: a row as little-endian 32-bit integers."""
    return bytes(result[index].astype("<i4").data)


def vectors(seed: bytes, work: ProductWork, number: int) -> Exact:
    """Return the columns of r for a round, known only once the seed is revealed."""
    key = keystream.derive(seed, "product-r", number)
    words = keystream.stream(key, 2 * work.n * work.columns).view("<u2")
    return words.astype(np.float64).reshape(work.n, work.columns)


def opened_rows(seed: bytes, work: ProductWork, number: int) -> list[int]:
    """Return the rows of a round that the seed opens; a row may come twice."""
    key = keystream.derive(seed, "product-rows", number)
    return [int(index) for index in keystream.integers(key, work.rows, work.n)]


def check(
    nonce: bytes, work: ProductWork, roots: list[str], seed: bytes, answers: Any
) -> list[Finding]:
    """Return what is wrong with the answers, nothing when they hold. Costs n² per round."""
    if not isinstance(answers, list) or not len(answers) == len(roots) == work.rounds:
        return [Finding("PRODUCT_MALFORMED", "every round needs one root and one answer")]
    findings: list[Finding] = []
    for number, (root, answer) in enumerate(zip(roots, answers, strict=True)):
        try:
            findings += _check_round(nonce, work, number, root=root, seed=seed, answer=answer)
        except (KeyError, TypeError, ValueError, binascii.Error, AttributeError):
            findings.append(
                Finding("PRODUCT_MALFORMED", f"round {number} cannot be read as an answer")
            )
    return findings


def _check_round(
    nonce: bytes, work: ProductWork, number: int, *, root: str, seed: bytes, answer: Any
) -> list[Finding]:
    answered = _decode(answer["products"], "<i8", work.n * work.columns)
    answered = answered.reshape(work.n, work.columns)
    r = vectors(seed, work, number)
    expected = expected_products(nonce, work, number, r)
    findings = []
    if not np.array_equal(answered, expected):
        wrong = int(np.any(answered != expected, axis=1).sum())
        findings.append(
            Finding("PRODUCT_WRONG", f"round {number}: {wrong} of {work.n} rows are not A·B")
        )
    places = opened_rows(seed, work, number)
    if len(answer["rows"]) != len(places):
        raise ValueError("every opened row needs an answer")
    for place, opened in zip(places, answer["rows"], strict=True):
        row = _decode(opened["row"], "<i4", work.n)
        path = [bytes.fromhex(step) for step in opened["proof"]]
        leaf = merkle.leaf(row.tobytes())
        if not merkle.verify(leaf, place, work.n, path, bytes.fromhex(root)):
            findings.append(
                Finding("ROW_NOT_COMMITTED", f"round {number}: row {place} is not under the root")
            )
        elif not np.array_equal(row.astype(np.int64) @ r.astype(np.int64), expected[place]):
            findings.append(
                Finding("ROW_WRONG", f"round {number}: committed row {place} is not that of A·B")
            )
    return findings


def expected_products(nonce: bytes, work: ProductWork, number: int, r: Exact) -> NDArray[np.int64]:
    """Return A·(B·r) in exact integers, a block of rows at a time."""
    right = _blocked_times(_factor_key(nonce, number, "b"), work.n, r)
    return _blocked_times(_factor_key(nonce, number, "a"), work.n, right).astype(np.int64)


def _blocked_times(key: bytes, n: int, vector: Exact) -> Exact:
    out = np.empty((n, vector.shape[1]), dtype=np.float64)
    for first in range(0, n, _BLOCK_ROWS):
        count = min(_BLOCK_ROWS, n - first)
        out[first : first + count] = _factor_rows(key, first, count, n) @ vector
    return out


def _times(result: Matrix, r: Exact) -> NDArray[np.int64]:
    out = np.empty((result.shape[0], r.shape[1]), dtype=np.int64)
    for first in range(0, len(result), _BLOCK_ROWS):
        block = result[first : first + _BLOCK_ROWS].astype(np.float64)
        out[first : first + _BLOCK_ROWS] = block @ r
    return out


def _factor_key(nonce: bytes, number: int, which: str) -> bytes:
    return keystream.derive(nonce, f"product-{which}", number)


def _factor_rows(key: bytes, first: int, count: int, n: int) -> Matrix:
    """Return rows of a factor: integers in [-32, 32), one byte of the stream each."""
    raw = np.empty(count * n, dtype=np.uint8)
    keystream.fill(key, raw, first_block=first * n // keystream.BLOCK_BYTES)
    values = (raw & ((1 << _ENTRY_BITS) - 1)).astype(np.float32)
    values -= 1 << (_ENTRY_BITS - 1)
    return values.reshape(count, n)


def _encode(values: NDArray[np.int64]) -> str:
    return base64.b64encode(values.astype("<i8").tobytes()).decode()


def _decode(text: str, kind: str, count: int) -> NDArray[Any]:
    values = np.frombuffer(base64.b64decode(text, validate=True), dtype=kind)
    if len(values) != count:
        raise ValueError("an answer has another length than the work")
    return values
