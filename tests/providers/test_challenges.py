"""A challenge: nonce after the inventory, one clock, both ends of the range, a tier or reasons."""

import base64
from datetime import timedelta
from typing import Any

import pytest

from fabric.journal.models import Event
from fabric.lib.clock import utc_now
from fabric_protocol import keys
from providers.domain import questions
from providers.domain.nodes import NodeState
from providers.models import Challenge, DesiredItem, HardwareClass, Node, Observation, Unit
from providers.services import challenges
from providers.services.enrolment import create_token
from providers.services.judging import MOST_TRIES, judge_challenge
from providers.services.nodes import latest_evidence, measured_facts
from tests.providers.agents import TestAgent, host_report
from tests.providers.proving import Proof, begin, challenge_key, prove
from tests.providers.test_reports import gpu
from tests.world import World

H100_GOPS, H100_GB_S = 570_000.0, 3_000.0


@pytest.fixture
def small_host(agent: TestAgent, monkeypatch: pytest.MonkeyPatch) -> TestAgent:
    """A real CPU node asked for milliseconds of work, judged by a range that any CPU meets."""
    monkeypatch.setattr(questions, "SECONDS", 0.00001)
    wide = {"low": 0.000001, "high": 10_000.0, "unit": "", "source": "this test", "sample_size": 1}
    HardwareClass.objects.filter(slug="host-cpu").update(
        bands={"compute_gops": [wide], "memory_bandwidth_gb_s": [wide]}
    )
    agent.report(host_report(units=[{"device": 0, "slots": [0, 1], "memory_mib": 16}]))
    return agent


@pytest.fixture
def simulated(world: World) -> TestAgent:
    """A simulated H100 whose inventory has been committed to."""
    text, _ = create_token(
        provider=world.provider,
        actor=world.actor(world.olga),
        now=utc_now(),
        simulated=True,
        accepts_unisolated=True,
    )
    agent = TestAgent().enrol(text, name="sim-h100")
    reply = agent.report(
        host_report(
            driver="simulated",
            devices=[gpu()],
            units=[{"device": 0, "slots": [0, 1], "memory_mib": 81_000}],
        )
    )
    assert reply.status == 201
    return agent


def virtual_seconds(proof: Proof, *, gops: float = H100_GOPS, gb_s: float = H100_GB_S) -> Any:
    """Return what a simulated driver's clock says for work at these rates."""
    parameters = proof.prover.parameters
    return {
        "product_seconds": parameters.operations / (gops * 1e9),
        "memory_seconds": parameters.bytes_touched / (gb_s * 1e9),
        "read_back_seconds": 0.01,
    }


def prove_simulated(agent: TestAgent, **rates: float) -> Challenge:
    proof = begin(agent)
    opening = proof.commit().body["opening"]
    sent = proof.send(
        proof.answer(opening, timings=virtual_seconds(proof, **rates), virtual_clock=True)
    )
    assert sent.status == 202, sent.body
    return judged()


def judged() -> Challenge:
    challenge = Challenge.objects.answered().get()
    done = judge_challenge(challenge_id=challenge.pk, now=utc_now())
    assert done is not None
    return done


def test_a_real_machine_proves_itself_and_is_admitted(small_host: TestAgent) -> None:
    """R-B5 (agent): a passed challenge admits to the class's tier; the evidence is all there."""
    prove(small_host)
    challenge = judged()

    node = Node.objects.get()
    assert (challenge.verdict, challenge.reasons) == ("passed", [])
    assert (node.state, node.tier, node.held_back_reasons) == ("admitted", "community", [])
    assert node.admitted_at is not None
    assert Unit.objects.get().memory_mib_measured == 16
    assert challenge.figures["memory_mib"]["value"] == 16
    assert int(challenge.figures["memory_mib"]["bytes_touched"]) > 16 * 2**20
    assert challenge.figures["memory_mib"]["limit"]["kind"] == "rlimit_as"
    facts = measured_facts(node=node)
    assert facts["compute_gops"]["source"] == challenge.public_id
    assert facts["compute_gops"]["value"] > 0
    assert latest_evidence(node) == (challenge.report, challenge)
    assert {row.kind for row in Observation.objects.all()} == {
        "challenge_passed",
        "compute_gops",
        "memory_bandwidth_gb_s",
    }
    assert not DesiredItem.objects.exists()
    assert Event.objects.filter(kind="node.admitted").count() == 1


def test_figures_fill_the_time_the_server_measured(small_host: TestAgent) -> None:
    """R-B4 (agent): a node that understates its time gains nothing; one that overstates fails."""
    proof = begin(small_host)
    opening = proof.commit().body["opening"]
    honest = proof.prover.timings
    tiny = {name: value / 1000 for name, value in honest.items()}
    proof.send(proof.answer(opening, timings=tiny))
    challenge = judged()
    assert challenge.started_at is not None
    assert challenge.committed_at is not None
    seconds = (challenge.committed_at - challenge.started_at).total_seconds()
    least = proof.prover.parameters.operations / seconds / 1e9
    share = honest["product_seconds"] / (honest["product_seconds"] + honest["memory_seconds"])
    assert challenge.figures["compute_gops"]["value"] == pytest.approx(least / share, rel=0.01)


@pytest.mark.parametrize(
    "timings",
    [
        None,
        {},
        {"product_seconds": 0, "memory_seconds": 1},
        {"product_seconds": -1, "memory_seconds": 1},
        {"product_seconds": "quick", "memory_seconds": 1},
        {"product_seconds": 3600, "memory_seconds": 3600},
    ],
)
def test_timings_that_cannot_be_true_fail(small_host: TestAgent, timings: Any) -> None:
    """R-B4 (agent): more claimed seconds than passed, or none at all, are not believed."""
    prove(small_host, timings=timings)
    challenge = judged()
    assert (challenge.verdict, challenge.reasons[0]["code"]) == ("failed", "TIMINGS_NOT_CREDIBLE")
    assert Node.objects.get().state == NodeState.HELD_BACK


def test_wrong_work_fails_whatever_its_speed(small_host: TestAgent) -> None:
    """R-B4 (agent): an answer that skips the work is refused and says what was wrong."""
    proof = begin(small_host)
    opening = proof.commit().body["opening"]
    body = proof.answer(opening)
    body["devices"][0]["product"][0]["rows"][0]["row"] = body["devices"][0]["product"][0]["rows"][
        1
    ]["row"]
    walked = base64.b64decode(body["devices"][0]["memory"]["checkpoints"])
    body["devices"][0]["memory"]["checkpoints"] = base64.b64encode(bytes(len(walked))).decode()
    proof.send(body)

    challenge = judged()

    assert challenge.verdict == "failed"
    assert challenge.figures == {}
    assert "WALK_WRONG" in {reason["code"] for reason in challenge.reasons}
    node = Node.objects.get()
    assert (node.state, node.tier) == (NodeState.HELD_BACK, "")
    assert all(reason["remedy"] for reason in node.held_back_reasons)
    assert Observation.objects.get(kind="challenge_passed").value == 0.0


def test_a_simulated_node_is_judged_by_the_same_code(simulated: TestAgent) -> None:
    """R-B5 (agent): a simulated H100 passes on its virtual clock and carries its flag."""
    challenge = prove_simulated(simulated)

    node = Node.objects.get()
    assert challenge.verdict == "passed", challenge.reasons
    assert (node.state, node.tier, node.simulated) == ("admitted", "data_centre", True)
    figure = challenge.figures["compute_gops"]
    assert figure["value"] == pytest.approx(H100_GOPS, rel=0.01)
    assert (figure["low"], figure["high"], figure["place"]) == (484_500, 655_500, "inside")
    assert "simulated" in challenge.figures["memory_mib"]["how"]


@pytest.mark.parametrize(
    ("rates", "code"),
    [
        ({"gops": 330_000.0}, "COMPUTE_GOPS_TOO_SLOW"),
        ({"gops": 1_205_000.0}, "COMPUTE_GOPS_TOO_GOOD"),
        ({"gb_s": 1_800.0}, "MEMORY_BANDWIDTH_GB_S_TOO_SLOW"),
        ({"gb_s": 7_000.0}, "MEMORY_BANDWIDTH_GB_S_TOO_GOOD"),
    ],
)
def test_too_slow_and_too_good_are_not_believed(
    simulated: TestAgent, rates: dict[str, float], code: str
) -> None:
    """R-B4 (agent): a PCIe card sold as SXM is too slow, a newer one shown as older too good."""
    challenge = prove_simulated(simulated, **rates)

    node = Node.objects.get()
    assert (challenge.verdict, node.state) == ("failed", NodeState.HELD_BACK)
    (reason,) = node.held_back_reasons
    assert reason["code"] == code
    assert str(next(iter(rates.values())))[:2] in str(reason["measured"])
    assert " to " in reason["promised"]


def read_back_late(agent: TestAgent) -> Challenge:
    """Prove, but answer a minute after the commitment."""
    prove(agent)
    row = Challenge.objects.answered().get()
    assert row.answered_at is not None
    late = row.answered_at + timedelta(seconds=60)
    Challenge.objects.filter(pk=row.pk).update(answered_at=late)
    return judged()


def test_memory_that_is_read_back_too_slowly_is_not_believed(small_host: TestAgent) -> None:
    """R-B3 (agent): cells made again instead of held betray themselves by the time they take."""
    for _ in range(MOST_TRIES - 1):
        assert read_back_late(small_host).reasons[0]["code"] == "READ_BACK_TOO_SLOW"
        assert Node.objects.get().state == NodeState.PROVING
    assert read_back_late(small_host).verdict == "failed"
    assert Node.objects.get().state == NodeState.HELD_BACK


def test_each_test_that_is_asked_for_has_tries_of_its_own(
    world: World, small_host: TestAgent
) -> None:
    """R-B5 (api): after the fix a provider's test is as patient as the first one was."""
    for _ in range(MOST_TRIES):
        read_back_late(small_host)
    for _ in range(2):
        node = Node.objects.get()
        assert node.state == NodeState.HELD_BACK
        challenges.retest_node(actor=world.actor(world.carol), node=node, now=utc_now())
        for _ in range(MOST_TRIES - 1):
            read_back_late(small_host)
            assert Node.objects.get().state == NodeState.PROVING
        read_back_late(small_host)


def test_a_machine_that_was_busy_once_is_asked_again_and_admitted(small_host: TestAgent) -> None:
    """R-B4 (agent): one slow answer of an honest machine holds nobody back."""
    read_back_late(small_host)
    prove(small_host)
    assert judged().verdict == "passed"
    assert Node.objects.get().state == NodeState.ADMITTED


def test_a_virtual_clock_on_a_real_node_fails(small_host: TestAgent) -> None:
    """R-B4 (agent): only a node that an operator enrolled as simulated brings its own clock."""
    prove(small_host, virtual_clock=True)
    assert judged().reasons[0]["code"] == "VIRTUAL_CLOCK"


def test_a_machine_nobody_has_measured_cannot_be_judged(small_host: TestAgent) -> None:
    """R-B4 (agent): without a reference range the verdict is neither passed nor failed."""
    HardwareClass.objects.filter(slug="host-cpu").update(bands={"compute_gops": []})
    prove(small_host)
    challenge = judged()
    assert (challenge.verdict, challenge.reasons[0]["code"]) == ("cannot_judge", "NO_REFERENCE")
    assert Node.objects.get().state == NodeState.HELD_BACK
    assert not Observation.objects.filter(kind="challenge_passed").exists()


def test_an_answer_about_another_inventory_fails(small_host: TestAgent) -> None:
    """R-B3 (agent): the inventory is committed to before the nonce and cannot be exchanged."""
    prove(small_host, report="0" * 64)
    assert judged().reasons[0]["code"] == "OTHER_INVENTORY"


def test_each_step_may_be_repeated_and_none_taken_back(small_host: TestAgent) -> None:
    """R-B4 (agent): lost replies cost nothing; another nonce, root or answer is not to be had."""
    key = challenge_key(small_host)
    first = small_host.post(f"challenges/{key}/start/", b"")
    started_at = Challenge.objects.get().started_at
    proof = begin(small_host)
    assert proof.question == first.body
    assert Challenge.objects.get().started_at == started_at

    committed = proof.commit()
    assert proof.commit().body == committed.body
    other = {**proof.commitment["devices"][0], "memory_root": "0" * 64}
    changed = small_host.post(f"challenges/{key}/commitment/", {"v": 1, "devices": [other]})
    assert (changed.status, changed.code) == (409, "CHALLENGE_ANSWERED_OTHERWISE")
    assert small_host.post(f"challenges/{key}/start/", b"").code == "WRONG_STATE"

    body = proof.answer(committed.body["opening"])
    assert (proof.send(body).status, proof.send(body).status) == (202, 200)
    again = proof.send({**body, "timings": {"product_seconds": 1, "memory_seconds": 1}})
    assert (again.status, again.code) == (409, "CHALLENGE_ANSWERED_OTHERWISE")
    assert Challenge.objects.answered().count() == 1


def test_a_late_answer_is_refused_and_the_node_held_back(small_host: TestAgent) -> None:
    """R-B4 (agent): an answer after the deadline is nothing; the provider sees why and what to do."""
    proof = begin(small_host)
    opening = proof.commit().body["opening"]
    Challenge.objects.update(expires_at=utc_now() - timedelta(seconds=1))

    late = proof.send(proof.answer(opening))

    assert (late.status, late.code) == (409, "CHALLENGE_EXPIRED")
    assert challenges.sweep_expired(now=utc_now()) == 1
    assert challenges.sweep_expired(now=utc_now()) == 0
    node = Node.objects.get()
    assert (node.state, node.held_back_reasons[0]["code"]) == (
        NodeState.HELD_BACK,
        "CHALLENGE_NOT_ANSWERED",
    )
    assert Challenge.objects.get().state == "expired"
    assert proof.commit().code == "CHALLENGE_EXPIRED"


def test_an_answer_is_for_one_challenge_of_one_node(
    world: World, small_host: TestAgent, simulated: TestAgent
) -> None:
    """R-B3 (agent): an answer to another challenge, or by another node, is refused (404, 409)."""
    mine = begin(small_host)
    opening = mine.commit().body["opening"]
    stolen = simulated.post(f"challenges/{mine.key}/start/", b"")
    assert (stolen.status, stolen.code) == (404, "NOT_FOUND")
    assert simulated.post(f"challenges/{mine.key}/commitment/", mine.commitment).status == 404

    theirs = challenge_key(simulated)
    assert mine.send(mine.answer(opening, challenge=theirs)).status == 409
    by_other_key = mine.send(mine.answer(opening), key=keys.SigningKey.generate())
    assert (by_other_key.status, by_other_key.code) == (400, "ENVELOPE_REFUSED")
    assert not Challenge.objects.answered().exists()


@pytest.mark.parametrize(
    "commitment",
    [
        {"v": 1, "devices": []},
        {"v": 1, "devices": [{"ordinal": 7, "product_roots": [], "memory_root": "0" * 64}]},
        {"v": 1, "devices": [{"ordinal": 0, "product_roots": [], "memory_root": "0" * 64}]},
        {"v": 1, "devices": ["x"]},
    ],
)
def test_a_commitment_covers_every_device(
    small_host: TestAgent, commitment: dict[str, Any]
) -> None:
    """R-B3 (agent): nothing is opened before all the work asked for is committed to."""
    key = challenge_key(small_host)
    small_host.post(f"challenges/{key}/start/", b"")
    refused = small_host.post(f"challenges/{key}/commitment/", commitment)
    assert (refused.status, refused.body["errors"][0]["pointer"]) == (400, "/devices")
    assert Challenge.objects.get().opening is None


def test_an_answer_before_the_commitment_is_refused(small_host: TestAgent) -> None:
    """R-B4 (agent): without roots committed first an answer means nothing."""
    proof = begin(small_host)
    early = proof.send(proof.answer({"seed": "A" * 43 + "="}))
    assert (early.status, early.code) == (409, "WRONG_STATE")


def test_two_judges_of_one_answer_write_one_verdict(small_host: TestAgent) -> None:
    """R-B4 (agent): a task delivered twice admits once."""
    prove(small_host)
    challenge = Challenge.objects.get()
    assert judge_challenge(challenge_id=challenge.pk, now=utc_now()) is not None
    assert judge_challenge(challenge_id=challenge.pk, now=utc_now()) is None
    assert Observation.objects.filter(kind="challenge_passed").count() == 1


def test_a_held_back_node_is_tested_again_and_admitted(world: World, simulated: TestAgent) -> None:
    """R-B5 (api): after the fix the provider asks for the test again; new figures decide."""
    prove_simulated(simulated, gops=330_000.0)
    node = Node.objects.get()
    challenges.retest_node(actor=world.actor(world.carol), node=node, now=utc_now())
    node.refresh_from_db()
    assert (node.state, node.held_back_reasons) == (NodeState.PROVING, [])

    assert prove_simulated(simulated).verdict == "passed"
    node.refresh_from_db()
    assert (node.state, node.tier) == (NodeState.ADMITTED, "data_centre")


def test_an_admitted_node_that_got_slower_loses_its_tier(
    world: World, simulated: TestAgent
) -> None:
    """R-B5 (agent): a node is held back when new measurements say so."""
    prove_simulated(simulated)
    challenges.retest_node(actor=world.actor(world.carol), node=Node.objects.get(), now=utc_now())
    prove_simulated(simulated, gops=330_000.0)
    assert Node.objects.get().state == NodeState.HELD_BACK


def test_the_work_keeps_a_host_busy_for_two_seconds(agent: TestAgent) -> None:
    """R-B4 (agent): the product is sized by our fastest run, the memory to 95 % of the promise."""
    agent.report(host_report())
    parameters = Challenge.objects.get().parameters
    (device,) = parameters["devices"]
    operations = 2 * device["product"]["n"] ** 3 * device["product"]["rounds"]
    (band,) = [
        row
        for row in HardwareClass.objects.get(slug="host-cpu").bands["compute_gops"]
        if row["instruction_set"] == "avx512"
    ]
    expected = 2 * band["fastest"] * 1e9
    assert operations >= 2 * expected
    memory = device["memory"]
    filled = memory["rows"] * memory["columns"] * memory["cell_bytes"]
    assert filled >= 0.95 * 1024 * 2**20
    assert (parameters["product_scale"], parameters["memory_scale"]) == (1, 1)
