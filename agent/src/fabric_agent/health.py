"""What the agent says of itself and its host with every beat, and the limit on its own memory."""

import os
import resource
from typing import Any

import psutil

from fabric_agent import VERSION, hostfacts

OWN_MEMORY_BYTES = 1 << 30
"""Addresses the agent may add to what it has mapped at its start."""


def read_health(*, queued_batches: int, clock_offset_ms: float) -> dict[str, Any]:
    """Return the state of host and agent, in units that end the names."""
    process = psutil.Process()
    with process.oneshot():
        times, memory = process.cpu_times(), process.memory_info()
    return {
        "agent_version": VERSION,
        "agent_rss_mib": int(memory.rss) >> 20,
        "agent_cpu_seconds": round(times.user + times.system, 2),
        "available_memory_mib": hostfacts.available_memory_mib(),
        "load_1m": round(os.getloadavg()[0], 2),
        "queued_batches": queued_batches,
        "clock_offset_ms": round(clock_offset_ms, 1),
    }


def limit_own_memory(extra_bytes: int = OWN_MEMORY_BYTES) -> None:
    """Bound this process's memory; only softly, so that children can be given their own bounds."""
    mapped = int(psutil.Process().memory_info().vms)
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    limit = mapped + extra_bytes
    if hard != resource.RLIM_INFINITY:
        limit = min(limit, hard)
    resource.setrlimit(resource.RLIMIT_AS, (limit, hard))
