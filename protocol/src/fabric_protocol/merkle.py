"""RFC 6962 Merkle trees: leaves and nodes hash apart, an odd node moves up unchanged."""

import hashlib
from collections.abc import Iterable, Sequence

HASH_BYTES = 32
EMPTY_ROOT = hashlib.sha256(b"").digest()


def leaf(data: bytes) -> bytes:
    """Return the hash of a leaf's data."""
    return hashlib.sha256(b"\x00" + data).digest()


def node(left: bytes, right: bytes) -> bytes:
    """Return the hash of an inner node."""
    return hashlib.sha256(b"\x01" + left + right).digest()


class Tree:
    """A whole tree over leaf hashes, kept level by level so that proofs are only look-ups."""

    def __init__(self, leaf_hashes: Iterable[bytes]) -> None:
        self._levels: list[list[bytes]] = [list(leaf_hashes)]
        while len(self._levels[-1]) > 1:
            self._levels.append(_level_above(self._levels[-1]))

    def __len__(self) -> int:
        return len(self._levels[0])

    @property
    def root(self) -> bytes:
        """The tree's head."""
        return self._levels[-1][0] if len(self) else EMPTY_ROOT

    def proof(self, index: int) -> list[bytes]:
        """Return the hashes that lead from leaf `index` to the root, lowest first."""
        if not 0 <= index < len(self):
            raise IndexError("no leaf at this index")
        path = []
        for level in self._levels[:-1]:
            sibling = index ^ 1
            if sibling < len(level):
                path.append(level[sibling])
            index >>= 1
        return path


def _level_above(level: list[bytes]) -> list[bytes]:
    sha256 = hashlib.sha256
    above = [
        sha256(b"\x01" + left + right).digest()
        for left, right in zip(level[0::2], level[1::2], strict=False)
    ]
    if len(level) & 1:
        above.append(level[-1])
    return above


def root(leaves: Iterable[bytes]) -> bytes:
    """Return the tree head over leaf data (not hashes)."""
    return Tree(leaf(data) for data in leaves).root


def proof(leaves: Iterable[bytes], index: int) -> list[bytes]:
    """Return the inclusion proof of leaf `index` over leaf data (not hashes)."""
    return Tree(leaf(data) for data in leaves).proof(index)


def verify(
    leaf_hash: bytes, index: int, size: int, path: Sequence[bytes], expected_root: bytes
) -> bool:
    """Say whether `path` shows that leaf `index` of `size` has this hash under the root."""
    if not 0 <= index < size or len(leaf_hash) != HASH_BYTES:
        return False
    current, last = leaf_hash, size - 1
    for step in path:
        if last == 0 or len(step) != HASH_BYTES:
            return False
        if index & 1 or index == last:
            current = node(step, current)
            while not index & 1 and index:  # the last node moved up past these levels
                index, last = index >> 1, last >> 1
        else:
            current = node(current, step)
        index, last = index >> 1, last >> 1
    return last == 0 and current == expected_root
