"""The challenge's work in a child process, so that its memory is bounded and given back.

The child speaks lines of JSON: the question in, the commitment out, the opening in, the answer out.
"""

import base64
import contextlib
import json
import os
import select
import subprocess
import sys
import time
from typing import Any

from fabric_agent.problems import AgentProblem

WORK_SECONDS = 240.0
OPEN_SECONDS = 60.0
MAX_LINE = 16 << 20


class ChallengeFailed(AgentProblem):
    """The work could not be done on this machine."""


class ChallengeProcess:
    """One challenge in one child."""

    def __init__(self, *, nonce: bytes, parameters: dict[str, Any], unit_memory_mib: int) -> None:
        self._question = {
            "nonce": base64.b64encode(nonce).decode(),
            "parameters": parameters,
            "unit_memory_mib": unit_memory_mib,
        }
        self._process = subprocess.Popen(
            [sys.executable, "-m", "fabric_agent.challenge_worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
        )
        self._buffer = bytearray()

    def commit(self) -> dict[str, Any]:
        """Return the commitment; ChallengeFailed when the child could not do the work."""
        self._send(self._question)
        return self._receive(WORK_SECONDS)

    def answer(self, opening: dict[str, Any]) -> dict[str, Any]:
        """Return the opened work with its timings and the limit it was held under."""
        self._send(opening)
        return self._receive(OPEN_SECONDS)

    def close(self) -> None:
        """End the child, whatever it is doing."""
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait(timeout=10)
        for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
            if stream is not None:
                # What a dead child never read cannot be flushed, and need not be.
                with contextlib.suppress(BrokenPipeError):
                    stream.close()

    def _send(self, document: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(document).encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError as error:
            raise self._died() from error

    def _receive(self, seconds: float) -> dict[str, Any]:
        assert self._process.stdout is not None
        descriptor, deadline = self._process.stdout.fileno(), time.monotonic() + seconds
        while b"\n" not in self._buffer:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([descriptor], [], [], left)[0]:
                raise ChallengeFailed(
                    "CHALLENGE_TOO_SLOW",
                    f"the work took more than {seconds:.0f} s",
                    remedy="Stop other work on this machine and ask for the test again.",
                )
            part = os.read(descriptor, 1 << 16)
            if not part or len(self._buffer) > MAX_LINE:
                raise self._died()
            self._buffer += part
        line, _, rest = bytes(self._buffer).partition(b"\n")
        self._buffer = bytearray(rest)
        document = json.loads(line)
        if "error" in document:
            raise ChallengeFailed(
                str(document["error"]), str(document["detail"]), remedy=str(document["remedy"])
            )
        return dict(document)

    def _died(self) -> ChallengeFailed:
        self._process.wait(timeout=10)
        stderr = self._process.stderr
        said = (stderr.read() if stderr else b"").decode(errors="replace").strip().splitlines()
        return ChallengeFailed(
            "CHALLENGE_DIED",
            f"the work ended with {self._process.returncode}: {said[-1] if said else 'no word'}",
            remedy="Free memory on this machine and ask for the test again.",
        )
