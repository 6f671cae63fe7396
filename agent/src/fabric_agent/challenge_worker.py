"""The child that does a challenge's work under a memory limit; see challenge_process."""

import base64
import json
import resource
import sys
from pathlib import Path
from typing import Any

import psutil

from fabric_agent.memory_limit import MemoryLimit
from fabric_protocol import challenge


def main() -> None:
    """Read the question, commit, read the opening, answer."""
    _forget_inherited_limit()
    question = json.loads(sys.stdin.readline())
    try:
        parameters = challenge.Parameters.from_document(question["parameters"])
        _serve(question, parameters)
    except MemoryError:
        _say(
            {
                "error": "NOT_ENOUGH_MEMORY",
                "detail": "the promised memory could not be allocated",
                "remedy": "Promise less memory in the configuration, or free some.",
            }
        )
    except ValueError as error:
        _say(
            {
                "error": "QUESTION_REFUSED",
                "detail": str(error),
                "remedy": "Update the agent: it does not know this challenge.",
            }
        )


def _serve(question: dict[str, Any], parameters: challenge.Parameters) -> None:
    prover = challenge.Prover(base64.b64decode(question["nonce"]), parameters)
    product_roots = prover.commit_products()
    promised = int(question["unit_memory_mib"]) << 20
    with MemoryLimit(promised) as limit:
        memory_roots = prover.commit_memories()
        _say(challenge.commitment_document(parameters, product_roots, memory_roots))
        devices = prover.open(json.loads(sys.stdin.readline()))
        _say(
            {
                "devices": devices,
                "timings": {name: round(value, 6) for name, value in prover.timings.items()},
                "virtual_clock": False,
                "memory_limit": limit.as_document(),
                "bytes_touched": str(parameters.bytes_touched),
                "peak_resident_bytes": str(_peak_resident_bytes()),
            }
        )
        prover.close()


def _forget_inherited_limit() -> None:
    """Lift the agent's own bound, which a child inherits and which is far below a unit's memory."""
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (hard, hard))


def _peak_resident_bytes() -> int:
    status = Path("/proc/self/status")
    if status.exists():
        for line in status.read_text(encoding="utf-8").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) << 10
    return max(
        int(psutil.Process().memory_info().rss),
        resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10,
    )


def _say(document: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(document) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
