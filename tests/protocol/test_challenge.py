"""A whole challenge: sizes, binding to report and device, clocks and figures."""

import json

import pytest

from fabric_protocol import challenge

REPORT = "ab" * 32


def small(**changes):
    values = {"report": REPORT, "units_mib": {0: 16}, "expected_gops": 100.0, "seconds": 2.5}
    return challenge.scaled_parameters(**(values | changes))


def run(parameters, nonce):
    prover = challenge.Prover(nonce, parameters)
    commitment = prover.commit()
    opening = challenge.new_opening()
    answer = prover.open(opening)
    prover.close()
    return commitment, opening, answer, prover.timings


def codes(parameters, nonce, commitment, opening, answer):
    return {
        finding.code
        for finding in challenge.check_answer(
            nonce=nonce,
            parameters=parameters,
            commitment=commitment,
            opening=opening,
            answer=answer,
        )
    }


def test_an_honest_node_passes_after_every_document_travelled_as_json():
    """R-B4 (agent): the whole exchange, through JSON and back, is accepted."""
    parameters = small(units_mib={0: 16, 1: 16})
    read = challenge.Parameters.from_document(json.loads(json.dumps(parameters.as_document())))
    assert read == parameters
    nonce = challenge.new_nonce()
    documents = json.loads(json.dumps(run(read, nonce)))
    challenge.check_commitment(parameters, documents[0])
    assert codes(parameters, nonce, *documents[:3]) == set()
    assert documents[3]["product_seconds"] > 0
    assert documents[3]["memory_seconds"] > 0


def test_devices_cannot_answer_for_one_another():
    """R-B4 (agent): one device cannot stand in for two, since each has its own nonce."""
    parameters, nonce = small(units_mib={0: 16, 1: 16}), challenge.new_nonce()
    commitment, opening, answer, _ = run(parameters, nonce)
    for document in (commitment["devices"], answer):
        document[1] = document[0] | {"ordinal": 1}
    found = codes(parameters, nonce, commitment, opening, answer)
    assert found >= {"PRODUCT_WRONG", "CELL_WRONG", "WALK_WRONG"}


def test_work_done_for_another_report_is_found():
    """R-B4 (agent): the inventory committed to before the nonce is part of the nonce."""
    nonce = challenge.new_nonce()
    commitment, opening, answer, _ = run(small(report="cd" * 32), nonce)
    assert "PRODUCT_WRONG" in codes(small(), nonce, commitment, opening, answer)


def test_a_replay_of_a_passed_challenge_fails_under_a_new_nonce():
    """R-B4 (agent): a proof is good once."""
    parameters, nonce = small(), challenge.new_nonce()
    documents = run(parameters, nonce)[:3]
    assert codes(parameters, nonce, *documents) == set()
    assert codes(parameters, challenge.new_nonce(), *documents) >= {"PRODUCT_WRONG", "CELL_WRONG"}


@pytest.mark.parametrize("answer", [None, [], {}, [None], [{"ordinal": 1}], [{"ordinal": 0}]])
def test_an_answer_of_another_shape_is_a_finding(answer):
    parameters, nonce = small(), challenge.new_nonce()
    commitment, opening, _, _ = run(parameters, nonce)
    found = codes(parameters, nonce, commitment, opening, answer)
    assert found
    assert found <= {"ANSWER_MALFORMED", "PRODUCT_MALFORMED", "MEMORY_MALFORMED"}


@pytest.mark.parametrize(
    "spoil",
    [
        lambda c: c.clear(),
        lambda c: c["devices"].clear(),
        lambda c: c["devices"][0].update(ordinal=3),
        lambda c: c["devices"][0].update(memory_root="xyz"),
        lambda c: c["devices"][0].update(product_roots=[]),
        lambda c: c["devices"][0].update(product_roots="00"),
        lambda c: c["devices"].__setitem__(0, None),
    ],
)
def test_a_commitment_that_leaves_something_open_is_refused(spoil):
    parameters = small()
    commitment, *_ = run(parameters, challenge.new_nonce())
    spoil(commitment)
    with pytest.raises(ValueError, match=r"device|commitment"):
        challenge.check_commitment(parameters, commitment)


def test_work_is_sized_to_the_machine():
    slow = challenge.size_parameters(report=REPORT, units_mib={0: 1024}, expected_gops=80.0)
    fast = challenge.size_parameters(
        report=REPORT, units_mib={0: 1024}, expected_gops=8000.0, cores=64
    )
    for parameters, gops in ((slow, 80.0), (fast, 8000.0)):
        seconds = parameters.operations / (gops * 1e9)
        assert 2.5 <= seconds < 5.0
        assert parameters.devices[0].memory.range_bytes >= 0.95 * (1024 << 20)
        assert not parameters.is_scaled
    assert fast.devices[0].memory.steps > slow.devices[0].memory.steps
    assert fast.devices[0].product.rounds <= 64


def test_scaled_work_states_its_factors():
    parameters = small(units_mib={0: 81_920}, expected_gops=1e6)
    assert parameters.is_scaled
    assert parameters.operations == pytest.approx(2.5e15, rel=0.01)
    assert parameters.range_bytes == pytest.approx(81_920 << 20, rel=0.01)
    assert parameters.devices[0].memory.range_bytes < 4 << 20


def test_claimed_timings_are_stretched_to_the_servers_clock():
    """R-B4 (agent): a node cannot make itself faster than the time the server measured."""
    trusted = challenge.trusted_timings(
        {"product_seconds": 2.0, "memory_seconds": 6.0}, commit_seconds=10.0
    )
    assert trusted == {"product_seconds": 2.5, "memory_seconds": 7.5}
    figures = challenge.figures(small(), {"product_seconds": 2.5, "memory_seconds": 1.0})
    assert figures["compute_gops"]["value"] == pytest.approx(100.0, rel=0.05)
    assert figures["compute_gops"]["unit"] == "GOPS"


@pytest.mark.parametrize(
    "claimed",
    [
        {"product_seconds": 6.0, "memory_seconds": 6.0},
        {"product_seconds": -1.0, "memory_seconds": 2.0},
        {"product_seconds": 0.0, "memory_seconds": 2.0},
        {"product_seconds": float("nan"), "memory_seconds": 2.0},
        {"product_seconds": "x", "memory_seconds": 2.0},
        {},
        None,
    ],
)
def test_timings_that_cannot_be_true_are_refused(claimed):
    with pytest.raises(ValueError, match=r"timings|states"):
        challenge.trusted_timings(claimed, commit_seconds=10.0)


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d.pop("devices"),
        lambda d: d.update(v=2),
        lambda d: d.update(devices=[]),
        lambda d: d.update(product_scale=0),
        lambda d: d["devices"][0]["memory"].update(rows=1 << 40),
        lambda d: d["devices"][0]["product"].update(n=1 << 20),
        lambda d: d["devices"][0]["product"].update(extra=1),
    ],
)
def test_parameters_beyond_the_protocol_are_refused_by_the_node(change):
    document = small().as_document()
    change(document)
    with pytest.raises(ValueError, match=r"."):
        challenge.Parameters.from_document(document)


def test_a_seed_of_another_length_is_refused():
    with pytest.raises(ValueError, match="32 bytes"):
        challenge.read_seed({"seed": "AAAA"})
