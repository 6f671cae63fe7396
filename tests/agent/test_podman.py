"""Containers: made of this machine's files only, bounded by the kernel, and outliving the agent."""

import io
import os
import tarfile
import time
from pathlib import Path

import pytest

from fabric_agent.assemble import find_runtimes
from fabric_agent.config import Config
from fabric_agent.hostfacts import process_start_ticks
from fabric_agent.state import write_whole
from fabric_agent.workloads import image, podman
from fabric_agent.workloads.base import Spec, StartFailed
from fabric_agent.workloads.podman import PodmanRuntime, PodmanUnusable
from tests.agent.containers import as_root, needs_podman, podman_that_cannot_run
from tests.agent.test_workloads import TOKEN, get, wait_until


def test_the_image_holds_an_interpreter_and_the_service_and_no_shell():
    """R-E1 (agent): the image is made of known files, without shell, users or package manager."""
    out = io.BytesIO()
    image.write_image(out)
    with tarfile.open(fileobj=io.BytesIO(out.getvalue())) as archive:
        names = set(archive.getnames())
    assert str(image.interpreter()).lstrip("/") in names
    assert image.SERVICE_PATH.lstrip("/") in names
    assert any("ld-linux" in name or "ld-musl" in name for name in names)
    assert not {Path(name).name for name in names} & {
        "sh",
        "bash",
        "busybox",
        "apt",
        "pip",
        "passwd",
    }
    assert not [name for name in names if "site-packages" in name]


def test_the_same_files_make_the_same_image():
    first, second = io.BytesIO(), io.BytesIO()
    image.write_image(first)
    image.write_image(second)
    assert first.getvalue() == second.getvalue()


def test_podman_that_does_not_work_says_why(tmp_path):
    broken = tmp_path / "podman"
    broken.write_text("#!/bin/sh\necho no such luck >&2\nexit 125\n")
    broken.chmod(0o755)
    with pytest.raises(PodmanUnusable, match="no such luck"):
        PodmanRuntime(store=tmp_path / "store", program=str(broken)).prepare()
    with pytest.raises(PodmanUnusable):
        PodmanRuntime(store=tmp_path / "store", program=str(tmp_path / "none")).prepare()


@as_root
def test_podman_that_cannot_run_a_container_is_not_chosen(tmp_path, monkeypatch, caplog):
    """R-B2 (agent): a node whose Podman fails falls back before a tenant finds out, and says why."""
    monkeypatch.setenv("PATH", str(podman_that_cannot_run(tmp_path)), prepend=os.pathsep)
    found = find_runtimes(Config(), accepts_unisolated=True, store=tmp_path / "store")
    assert [runtime.name for runtime in found] == ["process"]
    assert "podman run: crun: cgroups in hybrid mode not supported" in caplog.text
    assert find_runtimes(Config(), accepts_unisolated=False, store=tmp_path / "store") == []


def test_without_podman_the_agent_says_so(tmp_path, monkeypatch, caplog):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_runtimes(Config(), accepts_unisolated=False, store=tmp_path / "store") == []
    assert "PODMAN_MISSING" in caplog.text


def test_podman_chooses_where_the_preferred_runtime_is_not_installed(monkeypatch):
    """R-B2 (agent): a machine with crun only runs containers with crun."""
    monkeypatch.setattr(podman, "_PREFERRED", "sh")
    assert 'runtime = "sh"\n' in podman._settings_text()
    monkeypatch.setattr(podman, "_PREFERRED", "no-such-runtime")
    assert "runtime" not in podman._settings_text()


@pytest.fixture(autouse=True)
def _private_umask():
    """The agent runs with a umask that keeps its own files from everybody else."""
    before = os.umask(0o077)
    yield
    os.umask(before)


@pytest.fixture(scope="module")
def runtime(tmp_path_factory):
    runtime = PodmanRuntime(store=tmp_path_factory.mktemp("containers"))
    runtime.prepare()
    yield runtime
    runtime._call("rm", "--all", "--force", "--time", "0")


def spec(tmp_path, *, seconds=60.0, lease="lse_pod"):
    folder = tmp_path / lease
    folder.mkdir(exist_ok=True)
    folder.chmod(0o755)
    write_whole(folder / "until", str(time.time() + seconds), mode=0o644)
    return Spec(lease, TOKEN, 256, folder, "127.0.0.1", 2)


@pytest.fixture
def running(runtime, tmp_path):
    handle = runtime.start(spec(tmp_path))
    yield handle
    runtime.stop(handle)


@needs_podman
def test_a_container_proves_itself_and_is_bounded_by_the_kernel(runtime, running):
    """R-E1 (agent): a tenant's work runs without rights, bounded in memory and processes."""
    answer = get(running.port, "/ready?nonce=n", token=TOKEN)
    assert answer["instance"] == running.instance
    assert runtime.memory_mib(running) == 256
    lines = Path(f"/proc/{running.pid}/status").read_text().splitlines()
    status = dict(line.split(":", 1) for line in lines)
    assert {status[name].strip() for name in ("CapEff", "CapPrm", "CapBnd")} == {"0" * 16}
    assert status["NoNewPrivs"].strip() == "1"
    assert set(status["Uid"].split()) == {"65534"}
    assert status["Seccomp"].strip() == "2"
    root = Path(f"/proc/{running.pid}/mounts").read_text().splitlines()[0].split()
    assert root[1] == "/"
    assert "ro" in root[3].split(",")


@needs_podman
def test_a_container_outlives_the_agent_that_started_it(runtime, running):
    """R-B2 (agent): another agent finds the container again by process and start time."""
    other = PodmanRuntime(store=runtime._store)
    other.prepare()
    assert other.is_alive(running)
    other.stop(running)
    assert not runtime.is_alive(running)
    assert process_start_ticks(running.pid) is None


@needs_podman
def test_the_token_of_a_container_is_on_no_disk(runtime, running):
    """R-E1 (agent): the container's secret is never stored on the provider's disk."""
    for folder in (runtime._store, runtime._run):
        for path in folder.rglob("*"):
            if path.is_file() and not path.is_symlink() and path.stat().st_size < 1 << 20:
                assert TOKEN.encode() not in path.read_bytes(), path
    assert running.container


@needs_podman
def test_a_container_ends_by_itself_when_its_paid_time_is_over(runtime, tmp_path):
    """R-C11 (agent): a container stops where the money stops."""
    handle = runtime.start(spec(tmp_path, seconds=2.0))
    wait_until(lambda: not runtime.is_alive(handle))
    runtime.stop(handle)


@needs_podman
def test_a_container_that_cannot_serve_fails_with_the_reason(runtime, tmp_path):
    with pytest.raises(StartFailed) as refusal:
        runtime.start(spec(tmp_path, seconds=-1))
    assert refusal.value.code in {"WORKLOAD_DIED", "WORKLOAD_SILENT"}
