"""A challenge's work in a child of its own: bounded, answered, and ended whatever happens."""

import resource

import pytest

from fabric_agent.challenge_process import ChallengeFailed, ChallengeProcess
from fabric_agent.drivers.simulated import Simulated, find_profile, load_profiles
from fabric_agent.health import limit_own_memory
from fabric_agent.memory_limit import RUNTIME_BYTES, MemoryLimit
from fabric_agent.problems import ConfigProblem
from fabric_protocol import challenge, memory, product

REPORT = "ab" * 32


def parameters(*, mib=64):
    return challenge.Parameters(
        report=REPORT,
        devices=(
            challenge.DeviceWork(
                0,
                product.ProductWork(n=256, rounds=2),
                memory.MemoryWork.covering(mib << 20, steps=1024),
            ),
        ),
    )


def findings(nonce, asked, committed, opening, answered):
    return challenge.check_answer(
        nonce=nonce,
        parameters=asked,
        commitment=committed,
        opening=opening,
        answer=answered["devices"],
    )


def test_the_work_is_done_under_a_limit_that_the_proof_states():
    """R-B3 (agent): the memory proof states its limit and the bytes it touched."""
    nonce, asked, opening = challenge.new_nonce(), parameters(), challenge.new_opening()
    run = ChallengeProcess(nonce=nonce, parameters=asked.as_document(), unit_memory_mib=64)
    try:
        committed = run.commit()
        answered = run.answer(opening)
    finally:
        run.close()
    challenge.check_commitment(asked, committed)
    assert findings(nonce, asked, committed, opening, answered) == []
    limit = answered["memory_limit"]
    assert limit["kind"] in {"cgroup_v1", "cgroup_v2", "rlimit_as"}
    assert int(limit["promised_bytes"]) == 64 << 20
    assert int(answered["bytes_touched"]) == asked.bytes_touched >= 6 * 0.95 * (64 << 20)
    assert answered["virtual_clock"] is False
    assert answered["timings"]["memory_seconds"] > 0


def test_the_agents_own_bound_does_not_reach_the_work():
    """R-B3 (agent): a unit of any size can be proved, however little the agent allows itself."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    limit_own_memory(64 << 20)
    run = ChallengeProcess(
        nonce=challenge.new_nonce(),
        parameters=parameters(mib=256).as_document(),
        unit_memory_mib=256,
    )
    try:
        committed = run.commit()
    finally:
        run.close()
        resource.setrlimit(resource.RLIMIT_AS, before)
    challenge.check_commitment(parameters(mib=256), committed)


def test_more_memory_than_promised_cannot_be_taken():
    """R-B3 (agent): a unit that promises less than it is asked to fill fails, by its own limit."""
    run = ChallengeProcess(
        nonce=challenge.new_nonce(),
        parameters=parameters(mib=256).as_document(),
        unit_memory_mib=64,
    )
    try:
        with pytest.raises(ChallengeFailed) as refusal:
            run.commit()
    finally:
        run.close()
    assert refusal.value.code in {"NOT_ENOUGH_MEMORY", "CHALLENGE_DIED"}
    assert "memory" in refusal.value.remedy.lower()


def test_a_question_beyond_the_protocol_is_refused():
    document = parameters().as_document()
    document["devices"][0]["product"]["n"] = 1 << 20
    run = ChallengeProcess(nonce=b"n" * 32, parameters=document, unit_memory_mib=64)
    try:
        with pytest.raises(ChallengeFailed) as refusal:
            run.commit()
    finally:
        run.close()
    assert refusal.value.code == "QUESTION_REFUSED"


def test_a_child_that_is_killed_is_named_and_nothing_hangs():
    run = ChallengeProcess(
        nonce=b"n" * 32, parameters=parameters().as_document(), unit_memory_mib=64
    )
    run._process.kill()
    run._process.wait(timeout=10)  # so that the question surely meets a closed pipe
    with pytest.raises(ChallengeFailed) as refusal:
        run.commit()
    assert refusal.value.code == "CHALLENGE_DIED"
    run.close()
    run.close()


def test_without_a_cgroup_addresses_are_limited(tmp_path):
    """R-B3 (agent): where no cgroup may be made, RLIMIT_AS is set and said."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    with MemoryLimit(32 << 20, root=tmp_path) as limit:
        document = limit.as_document()
        assert resource.getrlimit(resource.RLIMIT_AS)[0] == int(document["limit_bytes"])
        with pytest.raises(MemoryError):
            bytearray(4 * ((32 << 20) + RUNTIME_BYTES))
    assert document["kind"] == "rlimit_as"
    assert resource.getrlimit(resource.RLIMIT_AS) == before


@pytest.mark.parametrize("class_slug", sorted(load_profiles()))
def test_a_simulated_class_does_real_work_on_a_clock_of_its_own(class_slug):
    """R-B4 (agent): simulated nodes answer the same questions, cut down, on a virtual clock."""
    profile = find_profile(class_slug)
    driver = Simulated(profile, devices=2, seed="nod_x")
    asked = challenge.scaled_parameters(
        report=REPORT,
        units_mib={0: profile.unit_memory_mib, 1: profile.unit_memory_mib},
        expected_gops=profile.compute_gops,
        seconds=2.5,
    )
    nonce, opening = challenge.new_nonce(), challenge.new_opening()
    run = driver.start_challenge(
        nonce=nonce, parameters=asked.as_document(), unit_memory_mib=profile.unit_memory_mib
    )
    committed = run.commit()
    answered = run.answer(opening)
    run.close()
    assert findings(nonce, asked, committed, opening, answered) == []
    assert answered["virtual_clock"] is True
    timings = answered["timings"]
    total = timings["product_seconds"] + timings["memory_seconds"]
    figures = challenge.figures(
        asked, challenge.trusted_timings(timings, commit_seconds=total + 1e-9)
    )
    assert figures["compute_gops"]["value"] == pytest.approx(profile.compute_gops, rel=0.03)
    assert figures["memory_bandwidth_gb_s"]["value"] == pytest.approx(
        profile.memory_bandwidth_gb_s, rel=0.03
    )


def test_a_simulated_node_takes_no_real_challenge():
    driver = Simulated(find_profile("nvidia-l4-24gb"), seed="nod_x")
    with pytest.raises(ValueError, match="scaled"):
        driver.start_challenge(
            nonce=b"n" * 32, parameters=parameters().as_document(), unit_memory_mib=64
        )


def test_the_same_simulated_machine_is_the_same_again_and_two_differ():
    one, again, other = (
        Simulated(find_profile("nvidia-l4-24gb"), devices=2, seed=seed).inventory(
            isolation="none", runtime="simulated"
        )
        for seed in ("nod_a", "nod_a", "nod_b")
    )
    assert one == again
    identities = {device["identity"] for device in one.devices + other.devices}
    assert len(identities) == 4
    assert one.facts["interconnect"]["value"] == "pcie"


def test_an_unknown_profile_names_those_there_are():
    with pytest.raises(ConfigProblem) as refusal:
        find_profile("nvidia-h1000")
    assert "nvidia-h100-80gb-sxm" in refusal.value.fields[0]
