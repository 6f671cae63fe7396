"""The doctor: offline, with stable codes, and a remedy for everything that is not right."""

import json
import os
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from fabric_agent import hostfacts
from fabric_agent.cli import app
from fabric_agent.doctor import FAIL, PASS, examine
from fabric_agent.drivers.host_cpu import HostCpu
from fabric_agent.state import StateFolder
from tests.agent.containers import as_root, needs_podman, podman_that_cannot_run
from tests.agent.test_state import IDENTITY


@pytest.fixture
def no_podman(tmp_path, monkeypatch):
    """A machine on whose path nothing is."""
    monkeypatch.setenv("PATH", str(tmp_path))


@pytest.fixture
def state(tmp_path):
    state = StateFolder(tmp_path / "agent")
    state.make_key()
    state.save_identity(IDENTITY)
    state.config_path.write_text("driver: host-cpu\nunit_memory_mib: 512\ncontainers: never\n")
    return state


def by_code(state):
    return {check.code: check for check in examine(state)}


def test_a_sound_machine_passes(state):
    """R-B1 (agent): doctor says offline what would pass."""
    checks = by_code(state)
    assert {"ENROLLED", "CONFIG", "CPU", "MEMORY", "DISK", "CLOCK"} <= set(checks)
    assert not [check for check in checks.values() if check.result == FAIL]
    assert checks["MEMORY"].what.endswith("512 MiB promised")


def test_a_promise_beyond_the_machine_fails_with_a_remedy(state, no_podman):
    """R-B3 (agent): a promise the machine cannot keep is found before it is made."""
    state.config_path.write_text("driver: host-cpu\nunit_memory_mib: 16000000\n")
    check = by_code(state)["MEMORY_SHORT"]
    assert check.result == FAIL
    assert "unit_memory_mib" in check.remedy


@needs_podman
def test_a_container_is_tried_out(state):
    """R-B2 (agent): doctor runs a container before it says that containers run, and leaves none."""
    state.config_path.write_text("driver: host-cpu\nunit_memory_mib: 512\n")
    assert by_code(state)["CONTAINERS"].result == PASS
    assert not (state.path / "containers").exists()


@as_root
def test_podman_that_cannot_run_is_found_out(state, tmp_path, monkeypatch):
    """R-B2 (agent): Podman that is installed and does not work is no reason to promise it."""
    state.config_path.write_text("driver: host-cpu\nunit_memory_mib: 512\n")
    monkeypatch.setenv("PATH", str(podman_that_cannot_run(tmp_path)), prepend=os.pathsep)
    check = by_code(state)["NO_CONTAINERS"]
    assert "cgroups in hybrid mode not supported" in check.cause
    assert "runc" in check.remedy


def test_a_wrong_configuration_names_its_fields(state, no_podman):
    state.config_path.write_text("driver: host-cpu\nmemory: 1\n")
    check = by_code(state)["CONFIG_REFUSED"]
    assert "memory: unknown field" in check.cause
    assert "unit_memory_mib: missing" in check.cause


def test_an_exposed_key_fails(state):
    (state.path / "node.key").chmod(0o640)
    assert by_code(state)["KEY_EXPOSED"].result == FAIL


def test_every_check_that_is_not_a_pass_says_cause_and_remedy(tmp_path, no_podman):
    for check in examine(StateFolder(tmp_path / "nothing")):
        assert check.result == PASS or (check.cause and check.remedy), check


def test_the_command_prints_json_and_its_exit_code_tells(state, no_podman):
    """R-B1 (agent): doctor has a form for programs."""
    good = CliRunner().invoke(app, ["doctor", "--json", "--state", str(state.path)])
    assert good.exit_code == 0
    assert {check["code"] for check in json.loads(good.stdout)["checks"]} >= {"ENROLLED", "CPU"}
    state.config_path.write_text("driver: none\n")
    bad = CliRunner().invoke(app, ["doctor", "--json", "--state", str(state.path)])
    assert bad.exit_code == 1
    assert "CONFIG_REFUSED" in {check["code"] for check in json.loads(bad.stdout)["checks"]}


def test_commands_of_a_machine_that_is_not_enrolled_say_how(tmp_path):
    for command in (["run"], ["status"]):
        result = CliRunner().invoke(app, [*command, "--state", str(tmp_path / "none")])
        assert result.exit_code == 1
        assert "NOT_ENROLLED" in result.stderr
        assert "fabric-agent enroll" in result.stderr


def test_read_prints_this_machines_inventory(tmp_path):
    """R-B2 (agent): the host CPU is discovered as an accelerator class of its own."""
    result = CliRunner().invoke(app, ["read", "--state", str(tmp_path)])
    found = json.loads(result.stdout)
    assert found["driver"] == "host-cpu"
    (device,) = found["devices"]
    assert (device["class"], device["kind"]) == ("host-cpu", "cpu")
    assert found["facts"]["cpu_cores"]["value"] == hostfacts.usable_cores()


def test_every_fact_has_value_unit_and_method(tmp_path):
    """R-A3 (agent): host facts carry value, unit and how they came about."""
    found = HostCpu(unit_memory_mib=512, work_folder=tmp_path).inventory(
        isolation="none", runtime="process"
    )
    for name, stated in found.facts.items():
        assert set(stated) == {"value", "unit", "method"}, name
        assert stated["method"], name
    for name in ("disk_read_mb_s", "disk_write_mb_s", "system_memory_mib", "disk_gib"):
        assert found.facts[name]["value"] > 0
    assert found.facts["network_up_mbit_s"]["value"] is None
    assert found.facts["network_up_mbit_s"]["method"].startswith("not measured")


def test_a_window_can_be_read_on_at_least_twelve_fields(tmp_path):
    """R-C5 (agent): at least twelve promised fields are read in every window on a host CPU."""
    driver = HostCpu(unit_memory_mib=512, work_folder=tmp_path)
    observed = driver.observe(unit_ordinals=[0])
    with_workload = {**observed, "memory_mib": 512, "interface": "http", "isolation": "none"}
    assert len(with_workload) >= 12
    assert observed["device_class"] == "host-cpu"
    assert observed["unit_count"] == 1


CPUINFO = """processor\t: 0
model name\t: Test CPU 9000
flags\t\t: fpu sse4_2 avx avx2 fma{more}

processor\t: 1
model name\t: Test CPU 9000
flags\t\t: fpu sse4_2 avx avx2 fma{more}
"""


@pytest.mark.parametrize(
    ("more", "expected"),
    [("", "avx2"), (" avx512f avx512bw avx512dq avx512vl", "avx512"), (" avx512f", "avx2")],
)
def test_the_instruction_set_is_the_widest_that_is_whole(more, expected):
    cpu = hostfacts.read_cpu(CPUINFO.format(more=more))
    assert (cpu.model, cpu.cores_present, cpu.instruction_set) == ("Test CPU 9000", 2, expected)


def test_the_device_identity_is_stable_and_tells_nothing():
    one, again = hostfacts.device_identity("host-cpu"), hostfacts.device_identity("host-cpu")
    assert one == again != hostfacts.device_identity("other")
    assert len(one) == 64


def test_a_process_is_known_by_pid_and_start():
    ticks = hostfacts.process_start_ticks(os.getpid())
    assert ticks == hostfacts.process_start_ticks(os.getpid())
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait(timeout=10)
    assert hostfacts.process_start_ticks(ended.pid) is None
