"""From a bare machine to an admitted node, with the real command, server and worker."""

import json

import pytest

from providers.models import Challenge, HardwareReport, Node
from tests.agent.machines import Machine, new_token, node_in, wait_for

pytestmark = pytest.mark.usefixtures("committed_db")


@pytest.mark.usefixtures("celery_worker_process")
def test_a_machine_enrols_proves_itself_and_is_admitted(machine, world):
    """R-B1 (agent): from enrolment to admission nobody does anything by hand.

    R-B3 (agent): memory is filled and read back under the server's nonce.
    R-B4 (agent): the server judges the answer by its own clock.
    """
    said = machine.enrol(new_token(world))
    machine.start()
    node = wait_for(node_in("admitted"), what="admission", machine=machine)
    assert node.public_id in said
    assert node.tier == "community"
    assert node.simulated is False
    report = HardwareReport.objects.get(node=node)
    assert len([fact for fact in report.body["facts"].values() if fact["value"] is not None]) >= 12
    challenge = Challenge.objects.get(node=node)
    assert (challenge.verdict, challenge.reasons) == ("passed", [])
    assert challenge.figures["compute_gops"]["value"] > 0
    assert challenge.parameters["report"] == bytes(report.digest).hex()
    answer = challenge.figures["memory_mib"]
    assert int(answer["bytes_touched"]) > 6 * 0.95 * (256 << 20)
    assert answer["limit"]["kind"] in {"cgroup_v1", "cgroup_v2", "rlimit_as"}
    seen = json.loads(machine.command("status", "--json").stdout)
    assert seen["exchange"]["state"] == "admitted"


@pytest.mark.usefixtures("celery_worker_process")
def test_simulated_nodes_of_eight_classes_prove_themselves(machine: Machine, world):
    """R-B5 (agent): each simulated class is admitted to its tier by the same proof and judge."""
    tokens = "\n".join(new_token(world, simulated=True) for _ in range(8))
    path = machine.folder / "tokens"
    path.write_text(tokens)
    machine.start("simulate", "--url", machine.url, "--token-file", str(path), "--devices", "2")
    wait_for(
        lambda: Node.objects.filter(simulated=True, state="admitted").count() == 8,
        what="admission of eight simulated nodes",
        machine=machine,
    )
    tiers = dict(Node.objects.values_list("hardware_class_id", "tier"))
    assert len(tiers) == 8
    assert tiers["nvidia-h100-80gb-sxm"] == "data_centre"
    assert tiers["nvidia-l40s-48gb"] == "professional"
    assert tiers["nvidia-rtx-4090-24gb"] == "community"


def test_a_token_that_is_wrong_or_used_is_refused_plainly(machine: Machine, world):
    """R-B2 (agent): a token is good once; the command says so and changes nothing."""
    token = new_token(world)
    machine.enrol(token)
    other = Machine(folder=machine.folder / "other", url=machine.url)
    other.folder.mkdir()
    for wrong in (token, "fabric-enrol-guess"):
        refused = other.command("enroll", "--url", machine.url, "--token", wrong)
        assert refused.returncode == 1
        assert refused.stderr.startswith("ENROLMENT_TOKEN_REFUSED: ")
    assert Node.objects.count() == 1


def test_a_machine_cannot_call_itself_simulated(machine: Machine, world):
    """R-B3 (agent): the simulated driver runs only on nodes an operator enrolled for it."""
    machine.enrol(new_token(world))
    (machine.state / "config.yaml").write_text(
        "driver: simulated\nprofile: nvidia-h100-80gb-sxm\nunit_memory_mib: 80000\n"
    )
    refused = machine.command("run")
    assert refused.returncode == 1
    assert refused.stderr.startswith("NOT_SIMULATED: ")
    assert HardwareReport.objects.count() == 0


def test_a_second_agent_on_the_same_folder_is_refused(machine: Machine, world):
    machine.enrol(new_token(world))
    machine.start()
    wait_for(lambda: "hardware report" in machine.log, what="the report", machine=machine)
    refused = machine.command("run")
    assert refused.returncode == 1
    assert refused.stderr.startswith("ALREADY_RUNNING: ")
