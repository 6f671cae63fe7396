"""The agent's folder and configuration: private, whole, and refused by field."""

import os
import stat
from concurrent.futures import ThreadPoolExecutor

import pytest

from fabric_agent.config import Config, load_config, read_config
from fabric_agent.problems import ConfigProblem, StateProblem
from fabric_agent.state import Identity, StateFolder, write_whole
from fabric_agent.yaml_files import load_yaml

IDENTITY = Identity(
    url="https://fabric.test",
    node_id="nod_x",
    provider="prv_x",
    server_public_key="00" * 32,
    simulated=False,
    accepts_unisolated=True,
    enrolled_at="2026-12-01T12:00:00Z",
)


def test_the_key_is_made_once_for_its_owner_only(tmp_path):
    """R-B2 (agent): the node's key is made on the node, and only its owner reads it."""
    state = StateFolder(tmp_path / "agent")
    key = state.make_key()
    file = state.path / "node.key"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(state.path.stat().st_mode) == 0o700
    assert state.make_key().key_id == key.key_id == state.key().key_id


def test_a_key_that_others_can_read_is_not_used(tmp_path):
    state = StateFolder(tmp_path)
    state.make_key()
    (tmp_path / "node.key").chmod(0o644)
    with pytest.raises(StateProblem) as refusal:
        state.key()
    assert refusal.value.code == "KEY_EXPOSED"
    assert "chmod 600" in refusal.value.remedy


def test_a_damaged_key_or_identity_is_named(tmp_path):
    state = StateFolder(tmp_path)
    state.make_key()
    (tmp_path / "node.key").write_bytes(b"short")
    with pytest.raises(StateProblem, match="not a key"):
        state.key()
    (tmp_path / "identity.json").write_text("{")
    with pytest.raises(StateProblem, match="cannot be read"):
        state.identity()


def test_an_empty_folder_says_how_to_enrol(tmp_path):
    state = StateFolder(tmp_path)
    for ask in (state.key, state.identity):
        with pytest.raises(StateProblem) as refusal:
            ask()
        assert refusal.value.code == "NOT_ENROLLED"
        assert "fabric-agent enroll" in refusal.value.remedy


def test_an_identity_is_kept_whole(tmp_path):
    state = StateFolder(tmp_path)
    state.save_identity(IDENTITY)
    assert state.is_enrolled
    assert state.identity() == IDENTITY


def test_two_agents_never_share_a_folder(tmp_path):
    state = StateFolder(tmp_path)
    with (
        state.only_agent(),
        pytest.raises(StateProblem, match="another agent"),
        StateFolder(tmp_path).only_agent(),
    ):
        pass
    with state.only_agent():
        pass


def test_a_written_configuration_reads_back(tmp_path):
    path = tmp_path / "config.yaml"
    config = Config(unit_memory_mib=2048, listen_host="10.0.0.1")
    config.write(path)
    assert load_config(path) == config


def test_unknown_missing_and_wrong_fields_are_all_named():
    """R-B2 (agent): every unknown, missing or wrong field of the configuration is named."""
    text = "driver: quantum\ndevices: true\nmemroy: 5\nlisten_host: 7\n"
    with pytest.raises(ConfigProblem) as refusal:
        read_config(load_yaml(text))
    named = {line.partition(":")[0] for line in refusal.value.fields}
    assert named == {"driver", "devices", "memroy", "listen_host", "unit_memory_mib"}


@pytest.mark.parametrize("memory", [0, -1, 255, 2**24 + 1, 1.5, "1024"])
def test_a_promise_outside_reason_is_refused(memory):
    with pytest.raises(ConfigProblem) as refusal:
        read_config({"driver": "host-cpu", "unit_memory_mib": memory})
    assert refusal.value.fields[0].startswith("unit_memory_mib:")


def test_a_simulated_node_names_its_class():
    with pytest.raises(ConfigProblem) as refusal:
        read_config({"driver": "simulated", "unit_memory_mib": 24_000})
    assert refusal.value.fields == ["profile: missing; a simulated node names its class"]


def test_a_file_has_the_mode_it_was_asked_for_under_any_umask(tmp_path):
    before = os.umask(0o077)
    try:
        write_whole(tmp_path / "until", "1", mode=0o644)
        write_whole(tmp_path / "secret", "1")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "until").stat().st_mode) == 0o644
    assert stat.S_IMODE((tmp_path / "secret").stat().st_mode) == 0o600


def test_two_threads_that_write_one_file_both_succeed(tmp_path):
    """R-B6 (agent): an agent that talks and tends at once is not ended by its own file."""
    path = tmp_path / "until"
    with ThreadPoolExecutor(2) as threads:
        list(threads.map(lambda number: write_whole(path, str(number)), range(2_000)))
    assert path.read_text() in {str(number) for number in range(1_990, 2_000)}
    assert [entry.name for entry in tmp_path.iterdir()] == ["until"]
