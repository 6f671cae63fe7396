"""Workloads: started, proved, taken up again after a kill, and over when the money is."""

import hashlib
import hmac
import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from datetime import UTC, datetime, timedelta

import pytest

from fabric_agent.hostfacts import process_start_ticks
from fabric_agent.metering.outbox import Outbox
from fabric_agent.workloads.base import StartFailed
from fabric_agent.workloads.manager import FAILED, RUNNING, STARTING, STOPPED, Workloads
from fabric_agent.workloads.process import ProcessRuntime
from fabric_agent.workloads.threads import ThreadRuntime
from fabric_protocol import payloads

LEASE, TOKEN = "lse_test", "secret-token"


def item(*, seconds=60.0, **changes):
    until = datetime.now(tz=UTC) + timedelta(seconds=seconds)
    return {
        "key": LEASE,
        "kind": "workload",
        "agreement": "agr_test",
        "terms_digest": "ab" * 32,
        "window_seconds": 5,
        "unit_ordinals": [0],
        "memory_mib": 256,
        "interface": "http",
        "access_token": TOKEN,
        "paid_until": payloads.write_instant(until),
        "stop": False,
        "isolation": "none",
    } | changes


def manager(tmp_path, outbox, *, runtime=None, consent=True):
    return Workloads(
        outbox,
        folder=tmp_path / "leases",
        runtimes=[runtime or ProcessRuntime()],
        accepts_unisolated=consent,
        listen_host="127.0.0.1",
        advertise_host="127.0.0.1",
    )


@pytest.fixture
def outbox(tmp_path):
    outbox = Outbox(tmp_path / "outbox.sqlite3")
    yield outbox
    outbox.close()


@pytest.fixture
def workloads(tmp_path, outbox):
    found = manager(tmp_path, outbox)
    yield found
    found.stop_all()


def reconcile(workloads):
    (standing,) = workloads.all()
    return workloads.reconcile(standing)


def get(port, path, *, token=None):
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}")
    if token:
        request.add_header("Authorization", f"Bearer {token}")
    with urllib.request.urlopen(request, timeout=5) as reply:
        return json.loads(reply.read())


def wait_until(condition, seconds=8.0):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.05)


def test_a_workload_proves_to_the_holder_of_its_token_that_it_is_this_leases(workloads):
    """R-C6 (agent): readiness can be confirmed from outside the agent's word."""
    workloads.take_items([item()])
    standing = reconcile(workloads)
    assert standing.state == RUNNING
    access = workloads.status(standing)["access"]
    assert access == {"interface": "http", "host": "127.0.0.1", "port": standing.handle.port}
    answer = get(access["port"], "/ready?nonce=n1", token=TOKEN)
    proof = hmac.new(TOKEN.encode(), b"n1", hashlib.sha256).hexdigest()
    assert (answer["nonce"], answer["lease"], answer["proof"]) == ("n1", LEASE, proof)


@pytest.mark.parametrize(
    ("path", "token", "status"),
    [
        ("/ready?nonce=n1", None, 401),
        ("/ready?nonce=n1", "guess", 401),
        ("/", "guess", 401),
        ("/ready", TOKEN, 400),
        ("/ready?nonce=" + "n" * 200, TOKEN, 400),
        ("/elsewhere", TOKEN, 404),
    ],
)
def test_a_workload_answers_nobody_else(workloads, path, token, status):
    workloads.take_items([item()])
    standing = reconcile(workloads)
    with pytest.raises(urllib.error.HTTPError) as refusal:
        get(standing.handle.port, path, token=token)
    assert refusal.value.code == status
    refusal.value.close()


def test_the_token_is_never_written_to_the_disk(workloads, tmp_path):
    """R-E1 (agent): secrets are issued at run time and never stored on a provider's disk."""
    workloads.take_items([item()])
    reconcile(workloads)
    for path in tmp_path.rglob("*"):
        if path.is_file():
            assert TOKEN.encode() not in path.read_bytes(), path


def test_the_promised_memory_is_read_back_from_the_kernel(workloads):
    """R-A2 (agent): the memory a tenant can allocate is read back, not repeated."""
    workloads.take_items([item()])
    instance, observed = workloads.look(reconcile(workloads))
    assert instance
    assert observed["memory_mib"] == 256
    assert observed["isolation"] == "none"


def test_a_restarted_agent_takes_up_what_runs(workloads, tmp_path, outbox):
    """R-B2 (agent): a restart of the agent is safe and never ends a lease."""
    workloads.take_items([item()])
    before = reconcile(workloads)
    again = manager(tmp_path, outbox)
    after = reconcile(again)
    assert after.handle == before.handle
    assert again.look(after)[0] == before.handle.instance


AGENT_SCRIPT = """
import json, sys, time
from pathlib import Path
from fabric_agent.metering.outbox import Outbox
from fabric_agent.workloads.base import StartFailed
from fabric_agent.workloads.manager import Workloads
from fabric_agent.workloads.process import ProcessRuntime
folder = Path(sys.argv[1])
workloads = Workloads(
    Outbox(folder / "outbox.sqlite3"), folder=folder / "leases", runtimes=[ProcessRuntime()],
    accepts_unisolated=True, listen_host="127.0.0.1", advertise_host="127.0.0.1",
)
workloads.take_items([json.loads(sys.stdin.readline())])
(standing,) = workloads.all()
print(workloads.reconcile(standing).state, flush=True)
time.sleep(60)
"""


def test_a_lease_outlives_an_agent_that_was_killed(tmp_path):
    """R-B2 (agent): kill -9 of the agent does not end a lease; the next agent takes it up."""
    process = subprocess.Popen(
        [sys.executable, "-c", AGENT_SCRIPT, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    process.stdin.write(json.dumps(item()).encode() + b"\n")
    process.stdin.flush()
    assert process.stdout.readline().strip() == b"running"
    process.send_signal(signal.SIGKILL)
    process.wait(timeout=10)
    process.stdin.close()
    process.stdout.close()
    outbox = Outbox(tmp_path / "outbox.sqlite3")
    again = manager(tmp_path, outbox)
    standing = reconcile(again)
    assert standing.state == RUNNING
    assert again.look(standing)[0] == standing.handle.instance
    assert get(standing.handle.port, "/ready?nonce=n", token=TOKEN)["lease"] == LEASE
    again.stop_all()
    assert process_start_ticks(standing.handle.pid) is None
    outbox.close()


def test_a_workload_ends_by_itself_when_its_paid_time_is_over(workloads):
    """R-C11 (agent): the workload stops at `paid_until` by itself, agent or no agent."""
    workloads.take_items([item(seconds=1.5)])
    standing = reconcile(workloads)
    pid = standing.handle.pid
    wait_until(lambda: _ended(workloads, standing))
    assert time.time() >= standing.paid_until().timestamp()
    after = reconcile(workloads)
    assert (after.state, after.handle) == (STOPPED, None)
    assert process_start_ticks(pid) is None


def _ended(workloads, standing):
    return workloads._living(standing.handle) is None


def test_more_money_lets_it_run_on(workloads):
    workloads.take_items([item(seconds=1.0)])
    first = reconcile(workloads)
    workloads.take_items([item(seconds=30)])
    reconcile(workloads)
    time.sleep(1.5)
    standing = reconcile(workloads)
    assert (standing.state, standing.handle) == (RUNNING, first.handle)


def test_a_workload_that_died_is_started_anew_as_another_life(workloads):
    workloads.take_items([item()])
    first = reconcile(workloads)
    os.kill(first.handle.pid, signal.SIGKILL)
    wait_until(lambda: _ended(workloads, first))
    assert workloads.look(first) == ("", {})
    second = reconcile(workloads)
    assert second.state == RUNNING
    assert second.handle.instance != first.handle.instance


def test_a_workload_whose_runtime_is_gone_is_no_reason_to_fall_over(tmp_path, outbox, workloads):
    """R-B2 (agent): a node that lost its containers tells it of the lease, and tends the others."""
    workloads.take_items([item()])
    running = reconcile(workloads)
    without = manager(tmp_path, outbox)
    without._runtimes.clear()
    without._by_name.clear()

    without.take_items([item()])

    assert without.look(running) == ("", {})
    after = without.reconcile(running)
    assert (after.state, after.handle) == (STARTING, None)
    assert after.detail == "this node cannot run workloads as none"
    assert without.reconcile(after).state == STARTING
    workloads._by_name["process"].stop(running.handle)


def test_stop_ends_it_and_a_forgotten_lease_leaves_nothing(workloads, tmp_path):
    workloads.take_items([item()])
    pid = reconcile(workloads).handle.pid
    workloads.take_items([item(stop=True)])
    assert reconcile(workloads).state == STOPPED
    assert process_start_ticks(pid) is None
    workloads.take_items([])
    (standing,) = workloads.all()
    assert standing.item["forgotten"] is True
    workloads.forget(LEASE)
    assert workloads.all() == []
    assert not (tmp_path / "leases" / LEASE).exists()


@pytest.mark.parametrize(
    ("changes", "consent", "words"),
    [({}, False, "consent"), ({"isolation": "container"}, True, "cannot run workloads as")],
)
def test_what_the_node_may_not_run_fails_with_the_reason(tmp_path, outbox, changes, consent, words):
    """R-E1 (agent): no workload runs without isolation unless the provider consented."""
    workloads = manager(tmp_path, outbox, consent=consent)
    workloads.take_items([item(**changes)])
    for _ in range(3):
        (standing,) = workloads.all()
        workloads._save(LEASE, retry_at=0)
        standing = reconcile(workloads)
    assert standing.state == FAILED
    assert words in workloads.status(standing)["detail"]
    assert workloads.status(standing)["access"] is None


class SlowToFail(ProcessRuntime):
    """A runtime on a host so busy that the paid time is over before a start is through."""

    def start(self, spec):
        time.sleep(1.2)
        raise StartFailed("WORKLOAD_DIED", "too late")


def test_a_start_that_outlasts_the_paid_time_is_not_the_nodes_failure(tmp_path, outbox):
    workloads = manager(tmp_path, outbox, runtime=SlowToFail())
    for _ in range(4):
        workloads.take_items([item(seconds=1.0)])
        workloads._save(LEASE, retry_at=0)
        assert reconcile(workloads).state == STARTING
    workloads.take_items([item(seconds=60)])
    workloads._save(LEASE, retry_at=0)
    assert reconcile(workloads).failures == 1


def test_new_money_reaches_a_running_workload_without_a_reconcile(workloads, tmp_path):
    workloads.take_items([item(seconds=5)])
    standing = reconcile(workloads)
    workloads.take_items([item(seconds=90)])
    told = float((tmp_path / "leases" / LEASE / "until").read_text())
    assert told > standing.paid_until().timestamp() + 60


def test_without_token_or_money_it_waits_and_does_not_fail(tmp_path, outbox):
    workloads = manager(tmp_path, outbox)
    workloads.take_items([item(access_token=None)])
    for _ in range(5):
        assert reconcile(workloads).state == STARTING
    workloads.take_items([item(paid_until=None)])
    for _ in range(5):
        assert reconcile(workloads).state == STARTING


def test_a_workload_ends_with_its_supervisor(tmp_path, outbox):
    """What starts everything may name itself: nothing then outlives it, also after kill -9."""
    supervisor = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    runtime = ProcessRuntime(supervisor_pid=supervisor.pid)
    workloads = manager(tmp_path, outbox, runtime=runtime)
    workloads.take_items([item()])
    standing = reconcile(workloads)
    assert standing.state == RUNNING
    supervisor.kill()
    supervisor.wait(timeout=5)
    wait_until(lambda: not runtime.is_alive(standing.handle))


def test_a_simulated_nodes_workload_is_the_same_service_in_a_thread(tmp_path, outbox):
    runtime = ThreadRuntime(own_pid=os.getpid())
    workloads = manager(tmp_path, outbox, runtime=runtime)
    workloads.take_items([item(seconds=2.0)])
    standing = reconcile(workloads)
    answer = get(standing.handle.port, "/ready?nonce=n", token=TOKEN)
    assert answer["instance"] == standing.handle.instance
    assert workloads.look(standing)[1]["memory_mib"] == 256
    wait_until(lambda: not runtime.is_alive(standing.handle))
    assert reconcile(workloads).state == STOPPED
