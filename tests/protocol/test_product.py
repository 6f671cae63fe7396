"""The matrix product: honest work passes, every way round it is found."""

import base64
import copy

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fabric_protocol import merkle, product

NONCE, OTHER_NONCE = b"n" * 32, b"m" * 32
SEED = b"s" * 32
WORK = product.ProductWork(n=64, rounds=2, rows=8)


def prove(nonce=NONCE, work=WORK, seed=SEED):
    prover = product.Product(nonce, work)
    return prover.commit(), prover.open(seed)


def codes(roots, answers, *, nonce=NONCE, work=WORK, seed=SEED):
    return {finding.code for finding in product.check(nonce, work, roots, seed, answers)}


class Cheat(product.Product):
    """A prover that commits to results of its own making."""

    def __init__(self, nonce, work, results):
        super().__init__(nonce, work)
        self._results = results
        self._trees = [
            merkle.Tree(merkle.leaf(product.row_bytes(result, i)) for i in range(work.n))
            for result in results
        ]

    def roots(self):
        return [tree.root.hex() for tree in self._trees]


def honest_results(work=WORK):
    return [product.multiply(NONCE, work, number) for number in range(work.rounds)]


def test_honest_work_passes():
    """R-B4 (agent): a product done on the server's nonce is accepted."""
    assert codes(*prove()) == set()


def test_the_product_is_exact_integer_arithmetic():
    """Single precision never rounds here, so that every machine gets the same bytes."""
    work = product.ProductWork(n=512, rounds=1)
    left = product._factor_rows(product._factor_key(NONCE, 0, "a"), 0, 512, 512)
    right = product._factor_rows(product._factor_key(NONCE, 0, "b"), 0, 512, 512)
    exact = left.astype(np.int64) @ right.astype(np.int64)
    assert np.array_equal(product.multiply(NONCE, work, 0).astype(np.int64), exact)
    assert left.min() == -32
    assert left.max() == 31


@settings(max_examples=15, deadline=None)
@given(st.binary(min_size=32, max_size=32), st.binary(min_size=32, max_size=32))
def test_honest_work_passes_on_any_nonce_and_seed(nonce, seed):
    work = product.ProductWork(n=32, rounds=1, rows=2)
    roots, answers = prove(nonce, work, seed)
    assert codes(roots, answers, nonce=nonce, work=work, seed=seed) == set()


def test_a_wrong_entry_of_c_is_found():
    """R-B4 (agent): a product with a single wrong entry fails Freivalds' check."""
    results = honest_results()
    results[1][17, 3] += 1
    cheat = Cheat(NONCE, WORK, results)
    assert codes(cheat.roots(), cheat.open(SEED)) >= {"PRODUCT_WRONG"}


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 63), st.integers(0, 63), st.integers(-1000, 1000).filter(bool))
def test_any_wrong_entry_is_found_for_a_seed_unknown_at_commitment(row, column, error):
    results = honest_results()
    results[0][row, column] += error
    cheat = Cheat(NONCE, WORK, results)
    assert "PRODUCT_WRONG" in codes(cheat.roots(), cheat.open(SEED))


def test_skipping_c_and_answering_from_r_is_found_by_the_opened_rows():
    """R-B4 (agent): who commits to nothing and computes A·(B·r) afterwards has no rows to open."""
    cheat = Cheat(NONCE, WORK, [np.zeros((64, 64), dtype=np.float32)] * 2)
    roots, answers = cheat.roots(), cheat.open(SEED)
    for number, answer in enumerate(answers):
        r = product.vectors(SEED, WORK, number)
        expected = product.expected_products(NONCE, WORK, number, r)
        answer["products"] = product._encode(expected)
    assert codes(roots, answers) == {"ROW_WRONG"}


def test_rows_made_after_the_opening_are_not_under_the_root():
    roots, _ = prove(seed=SEED)
    cheat = Cheat(NONCE, WORK, [np.zeros((64, 64), dtype=np.float32)] * 2)
    _, answers = prove()
    assert codes(cheat.roots(), answers) == {"ROW_NOT_COMMITTED"}
    assert codes(roots, answers) == set()


def test_a_seed_known_beforehand_would_help_and_so_it_is_drawn_afterwards():
    """What a cheat prepares for one seed fails under the one that is then drawn."""
    r = [product.vectors(SEED, WORK, number) for number in range(WORK.rounds)]
    results = []
    for number, columns in enumerate(r):
        # A result that agrees with A·B on these columns of r only, made without the product.
        wanted = product.expected_products(NONCE, WORK, number, columns).astype(np.float64)
        results.append((wanted @ np.linalg.pinv(columns)).astype(np.float32))
    cheat = Cheat(NONCE, WORK, results)
    assert codes(cheat.roots(), cheat.open(b"t" * 32)) >= {"PRODUCT_WRONG"}


def test_swapped_rows_are_found():
    results = honest_results()
    results[0][[3, 4]] = results[0][[4, 3]]
    cheat = Cheat(NONCE, WORK, results)
    assert "PRODUCT_WRONG" in codes(cheat.roots(), cheat.open(SEED))


def test_opened_rows_in_another_order_are_found():
    roots, answers = prove()
    answers[0]["rows"].reverse()
    assert codes(roots, answers) == {"ROW_NOT_COMMITTED"}


def test_an_answer_to_another_nonce_is_found():
    """R-B4 (agent): a proof made for another nonce is worth nothing."""
    roots, answers = prove(nonce=OTHER_NONCE)
    assert codes(roots, answers) >= {"PRODUCT_WRONG", "ROW_WRONG"}


def test_a_replayed_answer_to_an_older_seed_is_found():
    """R-B4 (agent): an answer to an older opening is a replay and fails."""
    roots, answers = prove(seed=b"old-seed" * 4)
    assert "PRODUCT_WRONG" in codes(roots, answers)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda a: a.pop(),
        lambda a: a[0].pop("products"),
        lambda a: a[0].update(products="%%%"),
        lambda a: a[0].update(products=base64.b64encode(b"x" * 8).decode()),
        lambda a: a[0]["rows"].pop(),
        lambda a: a[0].update(rows="none"),
        lambda a: a[0]["rows"][0].update(row=7),
        lambda a: a[0]["rows"][0].update(proof=["zz"]),
        lambda a: a.__setitem__(0, None),
    ],
)
def test_an_answer_that_cannot_be_read_is_a_finding_and_no_crash(spoil):
    roots, answers = prove()
    broken = copy.deepcopy(answers)
    spoil(broken)
    assert codes(roots, broken) == {"PRODUCT_MALFORMED"}


@pytest.mark.parametrize("answers", [None, {}, "x", 7, []])
def test_an_answer_of_another_shape_is_a_finding(answers):
    roots, _ = prove()
    assert codes(roots, answers) == {"PRODUCT_MALFORMED"}


@pytest.mark.parametrize(
    "shape",
    [
        {"n": 8, "rounds": 1},
        {"n": 16_384, "rounds": 1},
        {"n": 64, "rounds": 0},
        {"n": 64, "rounds": 65},
        {"n": 64, "rounds": 1, "rows": 65},
        {"n": 64, "rounds": 1, "columns": 0},
    ],
)
def test_work_outside_the_protocol_is_refused(shape):
    with pytest.raises(ValueError, match="outside what the protocol allows"):
        product.ProductWork(**shape)
