"""The memory proof: honest memory passes, and every saving of memory shows."""

import base64
import copy
import hashlib
import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fabric_protocol import memory, merkle

NONCE, SEED = b"n" * 32, b"s" * 32
SHAPE = {"cell_bytes": 256, "group": 16, "layers": 2, "steps": 256, "stretch": 8, "opened": 8}
WORK = memory.MemoryWork.covering(1 << 20, **SHAPE)
ALL_STRETCHES = list(range(WORK.steps // WORK.stretch))


@pytest.fixture
def held():
    prover = memory.Memory(NONCE, WORK)
    prover.fill_and_mix()
    yield prover
    prover.close()


def codes(root, answer, *, nonce=NONCE, work=WORK, seed=SEED, audited=ALL_STRETCHES):
    findings = memory.check(nonce, work, root, seed, answer, audited=audited)
    return {finding.code for finding in findings}


def test_memory_that_was_held_passes(held):
    """R-B3 (agent): memory filled and read back under a nonce is accepted."""
    root = held.commit()
    assert codes(root, held.open(SEED)) == set()


def test_the_checker_makes_every_cell_without_the_memory(held):
    indices = list(range(0, WORK.cells, 97))
    made = memory.Recomputer(NONCE, WORK).cells(indices)
    assert made == [bytes(held.cell(index)) for index in indices]


@settings(max_examples=20, deadline=None)
@given(
    st.sampled_from([256, 512]),
    st.sampled_from([4, 8, 16]),
    st.integers(1, 3),
    st.binary(min_size=32, max_size=32),
)
def test_prover_and_checker_agree_on_any_shape(cell_bytes, group, layers, nonce):
    work = memory.MemoryWork.covering(
        100_000, cell_bytes=cell_bytes, group=group, layers=layers, steps=16, opened=2
    )
    prover = memory.Memory(nonce, work)
    prover.fill_and_mix()
    root, answer = prover.commit(), prover.open(nonce)
    prover.close()
    assert codes(root, answer, nonce=nonce, work=work, seed=nonce, audited=[0, 1]) == set()


@pytest.mark.parametrize("promised_mib", [1, 7, 100, 1024, 24_576, 81_920, 196_608])
def test_at_least_95_percent_of_the_promise_is_filled(promised_mib):
    """R-B3 (agent): at least 95 % of the promised memory is touched, and little more."""
    work = memory.MemoryWork.covering(promised_mib << 20)
    share = work.range_bytes / (promised_mib << 20)
    assert 0.95 <= share <= (1.1 if promised_mib < 32 else 0.99)
    assert work.bytes_touched >= 6 * work.range_bytes


@given(st.integers(0, 2**31))
def test_the_order_of_cells_is_a_permutation(number):
    work = memory.MemoryWork(rows=9, columns=16, group=16)
    order = memory.Permutation(number.to_bytes(32, "big"), work, 0)
    places = np.arange(work.cells)
    cells = order.forward(places)
    assert sorted(cells) == list(places)
    assert np.array_equal(order.inverse(cells), places)


def test_each_cell_depends_on_thousands_across_the_range():
    """One changed bit of any input changes every output of its group, through every layer."""
    assert memory.MemoryWork.covering(1 << 30).tree_cells == 4096
    cipher = memory.keystream.block_cipher(b"k" * 16)
    groups = np.random.default_rng(1).integers(0, 2**63, (1, 64, 256), dtype=np.uint64)
    before = memory.mix(groups, cipher)
    for member in range(64):
        changed = groups.copy()
        changed[0, member, 5] ^= np.uint64(1 << 40)
        after = memory.mix(changed, cipher)
        assert all((after[0, out] != before[0, out]).any() for out in range(64))


def test_no_small_summary_of_a_group_replaces_its_members():
    """The network has full rank: its outputs hold as much as its inputs, so none can be dropped."""
    groups = np.random.default_rng(2).integers(0, 2**63, (1, 16, 32), dtype=np.uint64)
    cipher = memory.keystream.block_cipher(b"k" * 16)
    outputs = memory.mix(groups, cipher)[0]
    bits = np.unpackbits(outputs.view(np.uint8), axis=1).astype(np.float64) - 0.5
    correlation = np.corrcoef(bits)
    np.fill_diagonal(correlation, 0.0)
    assert np.abs(correlation).max() < 0.15


class Forgetful(memory.Memory):
    """A cheat that keeps a share of the range and, where it dropped a cell, makes it again."""

    def __init__(self, nonce, work, kept_bps):
        super().__init__(nonce, work)
        self.fill_and_mix()
        self.root = self.commit()
        self.kept_cells = work.cells * kept_bps // 10_000
        self.recomputer = memory.Recomputer(nonce, work)
        self.recomputed = 0

    def walk_lazily(self, seed, *, recompute):
        state, out = memory.first_state(seed), []
        for number in range(1, self.work.steps + 1):
            index = int.from_bytes(state[:8], "little") % self.work.cells
            if index < self.kept_cells:
                cell = bytes(self.cell(index))
            elif recompute:
                cell, self.recomputed = self.recomputer.cells([index])[0], self.recomputed + 1
            else:
                cell = bytes(self.work.cell_bytes)
            state = hashlib.sha256(state + cell).digest()[:16]
            if number % self.work.stretch == 0:
                out.append(state)
        return base64.b64encode(b"".join(out)).decode()


def test_a_dropped_cell_that_is_not_made_again_shows_in_the_walk():
    """R-B3 (agent): a machine with less memory than it promised cannot answer the walk."""
    cheat = Forgetful(NONCE, WORK, 7_500)
    answer = cheat.open(SEED) | {"checkpoints": cheat.walk_lazily(SEED, recompute=False)}
    assert "WALK_WRONG" in codes(cheat.root, answer)
    cheat.close()


def test_eight_stretches_drawn_afterwards_find_a_quarter_dropped_almost_surely():
    cheat = Forgetful(NONCE, WORK, 7_500)
    answer = cheat.open(SEED) | {"checkpoints": cheat.walk_lazily(SEED, recompute=False)}
    missed = sum(
        codes(cheat.root, answer, audited=memory.draw_audit(WORK, bytes([trial]), 8)) == set()
        for trial in range(20)
    )
    assert missed == 0
    cheat.close()


def test_making_dropped_cells_again_costs_a_tree_each_one_after_another():
    """Recomputing instead of storing gives a right answer, and the time bound is what catches it:
    every step that meets a dropped cell costs a whole tree, and the next address waits for it."""
    cheat = Forgetful(NONCE, WORK, 7_500)
    answer = cheat.open(SEED) | {"checkpoints": cheat.walk_lazily(SEED, recompute=True)}
    assert codes(cheat.root, answer) == set()
    assert WORK.steps * 0.15 < cheat.recomputed < WORK.steps * 0.35
    cheat.close()


def test_a_plain_keyed_pattern_without_mixing_is_found():
    """R-B3 (agent): the fill alone, which can be made at any place, is not accepted."""
    prover = memory.Memory(NONCE, WORK)
    memory.keystream.fill(memory.keystream.derive(NONCE, "memory-fill"), prover._bytes)
    assert codes(prover.commit(), prover.open(SEED)) == {"CELL_WRONG", "WALK_WRONG"}
    prover.close()


def test_a_layer_left_out_is_found():
    one_layer = memory.MemoryWork.covering(1 << 20, **(SHAPE | {"layers": 1}))
    prover = memory.Memory(NONCE, one_layer)
    prover.fill_and_mix()
    assert codes(prover.commit(), prover.open(SEED)) == {"CELL_WRONG", "WALK_WRONG"}
    prover.close()


def test_cells_made_after_the_opening_are_not_under_the_root(held):
    other = memory.Memory(b"o" * 32, WORK)
    other.fill_and_mix()
    other_root = other.commit()
    other.close()
    held.commit()
    assert codes(other_root, held.open(SEED)) == {"CELL_WRONG"}


def test_swapped_proofs_are_found(held):
    root = held.commit()
    answer = held.open(SEED)
    answer["proofs"].reverse()
    assert codes(root, answer) == {"CELL_WRONG"}


def test_an_answer_to_another_nonce_or_seed_is_found(held):
    """R-B4 (agent): a memory proof for another nonce, or replayed for an older seed, fails."""
    root = held.commit()
    answer = held.open(SEED)
    assert codes(root, answer, nonce=b"x" * 32) == {"CELL_WRONG", "WALK_WRONG"}
    assert codes(root, answer, seed=b"x" * 32) == {"CELL_WRONG", "WALK_WRONG"}


@pytest.mark.parametrize(
    "spoil",
    [
        lambda a: a.pop("checkpoints"),
        lambda a: a.update(checkpoints=a["checkpoints"][:-24]),
        lambda a: a.update(checkpoints="%"),
        lambda a: a["proofs"].pop(),
        lambda a: a.update(proofs=[["xx"]]),
        lambda a: a.update(proofs=7),
    ],
)
def test_an_answer_that_cannot_be_read_is_a_finding_and_no_crash(held, spoil):
    root = held.commit()
    answer = copy.deepcopy(held.open(SEED))
    spoil(answer)
    assert codes(root, answer) == {"MEMORY_MALFORMED"}


@pytest.mark.parametrize("answer", [None, [], "x", 7])
def test_an_answer_of_another_shape_is_a_finding(answer):
    assert codes("00" * 32, answer) == {"MEMORY_MALFORMED"}


@pytest.mark.parametrize(
    "shape",
    [
        {"rows": 1},
        {"columns": 100},
        {"cell_bytes": 100},
        {"group": 128},
        {"layers": 0},
        {"layers": 4},
        {"steps": 0},
        {"steps": 17},
        {"opened": 0},
    ],
)
def test_work_outside_the_protocol_is_refused(shape):
    with pytest.raises(ValueError, match="outside what the protocol allows"):
        memory.MemoryWork(**({"rows": 64, "columns": 64, "group": 64} | shape))


def test_the_root_is_an_rfc_6962_root_over_the_cells(held):
    leaves = [bytes(held.cell(index)) for index in range(WORK.cells)]
    assert held.commit() == merkle.root(leaves).hex()


def test_an_odd_number_of_cells_keeps_proofs_and_root_in_step():
    for rows, cell_bytes in itertools.product((3, 5, 7), (256,)):
        work = memory.MemoryWork(
            rows=rows, columns=4, group=4, cell_bytes=cell_bytes, steps=8, opened=4
        )
        prover = memory.Memory(NONCE, work)
        prover.fill_and_mix()
        assert codes(prover.commit(), prover.open(SEED), work=work, audited=[0]) == set()
        prover.close()
