"""RFC 6962 trees: published heads, and proofs that show exactly one leaf at one place."""

import hashlib
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabric_protocol import merkle

VECTORS = Path(__file__).resolve().parents[3] / "shared" / "data" / "rfc6962.json"
LEAVES = st.lists(st.binary(max_size=8), min_size=1, max_size=40)


def by_definition(leaves):
    """The recursive definition of RFC 6962 section 2.1, as an independent second reading."""
    if not leaves:
        return hashlib.sha256(b"").digest()
    if len(leaves) == 1:
        return hashlib.sha256(b"\x00" + leaves[0]).digest()
    k = 1
    while k * 2 < len(leaves):
        k *= 2
    return hashlib.sha256(b"\x01" + by_definition(leaves[:k]) + by_definition(leaves[k:])).digest()


@pytest.mark.skipif(not VECTORS.is_file(), reason="published vectors are not on this machine")
def test_published_heads_are_reproduced():
    data = json.loads(VECTORS.read_text())
    leaves = [bytes.fromhex(text) for text in data["leaves_hex"]]
    heads = [merkle.root(leaves[:n]).hex() for n in range(len(leaves) + 1)]
    assert heads == data["tree_heads_hex"]


def test_a_small_tree_has_the_head_worked_out_by_hand():
    a, b, c = (hashlib.sha256(b"\x00" + leaf).digest() for leaf in (b"", b"\x00", b"\x10"))
    pair = hashlib.sha256(b"\x01" + a + b).digest()
    assert merkle.root([b"", b"\x00", b"\x10"]) == hashlib.sha256(b"\x01" + pair + c).digest()
    assert merkle.root([]).hex().startswith("e3b0c44298fc1c14")


@given(LEAVES)
def test_the_head_follows_the_definition(leaves):
    assert merkle.root(leaves) == by_definition(leaves)


@given(LEAVES, st.data())
def test_a_proof_shows_its_leaf_at_its_place_and_nothing_else(leaves, data):
    index = data.draw(st.integers(0, len(leaves) - 1))
    path, root = merkle.proof(leaves, index), merkle.root(leaves)
    assert merkle.verify(merkle.leaf(leaves[index]), index, len(leaves), path, root)
    assert not merkle.verify(merkle.leaf(b"another one"), index, len(leaves), path, root)
    assert not merkle.verify(merkle.leaf(leaves[index]), index, len(leaves), path, bytes(32))
    assert not merkle.verify(
        merkle.leaf(leaves[index]), index, len(leaves), [*path, bytes(32)], root
    )
    if path:
        assert not merkle.verify(merkle.leaf(leaves[index]), index, len(leaves), path[:-1], root)
        assert not merkle.verify(
            merkle.leaf(leaves[index]), index, len(leaves), [b"short", *path[1:]], root
        )
    for place in range(len(leaves)):
        if leaves[place] != leaves[index]:
            assert not merkle.verify(merkle.leaf(leaves[index]), place, len(leaves), path, root)


@pytest.mark.parametrize("index", [-1, 3, 10**9])
def test_a_place_outside_the_tree_proves_nothing(index):
    leaves = [b"a", b"b", b"c"]
    assert not merkle.verify(
        merkle.leaf(b"a"), index, 3, merkle.proof(leaves, 0), merkle.root(leaves)
    )
    with pytest.raises(IndexError):
        merkle.proof(leaves, index)
