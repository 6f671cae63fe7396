"""The running agent goes on, whatever happens to one of its parts."""

import os
import threading
import time
from datetime import UTC, datetime, timedelta

import pytest

from fabric_agent.agent import Agent, Parts, now_instant
from fabric_agent.client import ControlPlane
from fabric_agent.drivers.simulated import Simulated, find_profile
from fabric_agent.metering.outbox import Outbox
from fabric_agent.state import Identity, StateFolder
from fabric_agent.workloads.manager import RUNNING, Workloads
from fabric_agent.workloads.threads import ThreadRuntime
from fabric_protocol import keys, payloads
from tests.agent.control_plane import Peer

NODE_KEY = keys.SigningKey.from_seed(b"n" * 32)
SERVER_KEY = keys.SigningKey.from_seed(b"s" * 32)


class BrokenForA(ThreadRuntime):
    """Fails for one lease in a way nobody foresaw."""

    def start(self, spec):
        if spec.lease == "lse_a":
            raise ZeroDivisionError("a bug")
        return super().start(spec)


def item(lease):
    until = datetime.now(tz=UTC) + timedelta(seconds=60)
    return {
        "key": lease,
        "agreement": "agr_test",
        "terms_digest": "ab" * 32,
        "window_seconds": 5,
        "unit_ordinals": [0],
        "memory_mib": 256,
        "access_token": "secret",
        "paid_until": payloads.write_instant(until),
        "isolation": "none",
    }


@pytest.fixture
def outbox(tmp_path):
    outbox = Outbox(tmp_path / "outbox.sqlite3")
    yield outbox
    outbox.close()


def agent_of(tmp_path, outbox, url):
    runtime = BrokenForA(own_pid=os.getpid())
    workloads = Workloads(
        outbox,
        folder=tmp_path / "leases",
        runtimes=[runtime],
        accepts_unisolated=True,
        listen_host="127.0.0.1",
        advertise_host="127.0.0.1",
    )
    workloads.take_items([item("lse_a"), item("lse_b")])
    identity = Identity(
        url=url,
        node_id="nod_test",
        provider="prv_test",
        server_public_key=SERVER_KEY.public_bytes.hex(),
        simulated=True,
        accepts_unisolated=True,
        enrolled_at="",
    )
    plane = ControlPlane(url, key=NODE_KEY, server_key=SERVER_KEY.public_bytes, tries=1)
    driver = Simulated(find_profile("nvidia-a100-80gb-sxm"), devices=1, seed="test")
    return Agent(
        Parts(
            state=StateFolder(tmp_path),
            identity=identity,
            key=NODE_KEY,
            plane=plane,
            driver=driver,
            runtimes=[runtime],
            outbox=outbox,
            workloads=workloads,
            unit_memory_mib=256,
            clock=now_instant,
        )
    ), workloads


def test_one_workload_that_fails_unforeseen_does_not_stop_the_others(tmp_path, outbox):
    """R-C4 (agent): a fault in one lease leaves the others served and metered."""
    agent, workloads = agent_of(tmp_path, outbox, "http://127.0.0.1:9")
    agent.tend()
    agent.tend()
    standing = {row.lease: row.state for row in workloads.all()}
    assert standing["lse_b"] == RUNNING
    assert standing["lse_a"] != RUNNING
    workloads.stop_all()


def test_a_reply_that_makes_no_sense_does_not_end_the_talking(tmp_path, outbox):
    """R-B2 (agent): the agent beats again after a reply nobody foresaw."""

    def nonsense(handler):
        handler.reply(200, {"beat_seconds": "soon", "generation": None}, key=SERVER_KEY)

    with Peer(nonsense) as peer:
        agent, workloads = agent_of(tmp_path, outbox, peer.url)
        running = threading.Thread(target=agent.run)
        running.start()
        deadline = time.monotonic() + 20
        while len([seen for seen in peer.seen if seen[1].endswith("beats/")]) < 2:
            assert time.monotonic() < deadline, "it never beat again"
            time.sleep(0.1)
        agent.stop()
        running.join(timeout=10)
    workloads.stop_all()
