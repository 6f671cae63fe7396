"""What `bin/demo` does: a whole exchange on this machine, with real agents on it.

Without options it runs until Ctrl-C and keeps its data in `.local/demo`. `--once` plays the whole
story in a fresh exchange under `.local/once`, prints a receipt, and ends.
"""

import argparse
import contextlib
import fcntl
import shutil
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from deploy.local.agents import publish_all, start_fleet, start_host
from deploy.local.deployment import Deployment, Progress
from deploy.local.processes import StartFailed, Supervisor
from deploy.local.servers import data_folder
from simulator import story

_WATCH_SECONDS = 0.5
_INTERRUPTED = 130


def main() -> int:
    """Run the demo or play the story; return the exit status."""
    asked = _parse()
    folder = (asked.data or data_folder("once" if asked.once else "demo")).resolve()
    try:
        with _alone(folder):
            if asked.reset:
                shutil.rmtree(folder, ignore_errors=True)
                folder.mkdir(parents=True)
            with Supervisor(folder / "logs") as supervisor:
                deployment = Deployment(folder, supervisor, Progress())
                return _play(deployment) if asked.once else _run(deployment)
    except KeyboardInterrupt:
        print("\nbin/demo: stopped all it had started.")
        return _INTERRUPTED if asked.once else 0  # a story that was not told to its end failed
    except StartFailed as failure:
        print(f"bin/demo: {failure}\nLogs: {folder / 'logs'}", file=sys.stderr)
        return 1


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bin/demo", description=__doc__)
    parser.add_argument("--once", action="store_true", help="play the story, check it, and end")
    parser.add_argument("--reset", action="store_true", help="throw the kept data away first")
    parser.add_argument("--data", type=Path, metavar="FOLDER", help="keep the data elsewhere")
    return parser.parse_args()


def _run(deployment: Deployment) -> int:
    """Start everything, say where it is, and keep it running."""
    deployment.start(fresh=False)
    start_host(deployment)
    start_fleet(deployment)
    deployment.progress.say("nine nodes prove what they are; this takes most of a minute")
    publish_all(deployment)
    print(_screen(deployment), flush=True)
    while True:
        time.sleep(_WATCH_SECONDS)
        deployment.supervisor.check()


def _play(deployment: Deployment) -> int:
    """Play the story in a fresh exchange."""
    for state in ("agent", "fleet"):
        shutil.rmtree(deployment.folder / state, ignore_errors=True)
    deployment.start(fresh=True)
    return story.play(deployment)


def _screen(deployment: Deployment) -> str:
    """Return the one screen that a person needs."""
    cast: dict[str, Any] = deployment.cast
    logins = "\n".join(
        f"    {role:<9} {email:<24} {cast['password']}" for role, email in cast["logins"].items()
    )
    return f"""
  Fabric Market runs at  {deployment.url}

  Sign in as
{logins}

  What to try
    Browse      {deployment.url}/catalogue/
    Buy         as the buyer: top up the balance, order this machine's own processor, watch its
                windows settle, dispute a reading, end the lease
    Provide     as the provider: {deployment.url}/provider/
    Operate     as the operator: {deployment.url}/operator/ rules disputes and shows the ledger
    Program     {deployment.url}/api/docs/
    Break       kill -9 the agent mid-window; it comes back and nothing is counted twice

  Simulated nodes are marked as such everywhere. Logs: {deployment.supervisor.logs}
  Ctrl-C stops everything; the next start continues from here; --reset starts afresh.
"""


@contextlib.contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Hold the folder for this process; say so when another one has it."""
    folder.mkdir(parents=True, exist_ok=True)
    with folder.with_suffix(".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise StartFailed(
                f"another bin/demo of this clone is running with {folder}; stop it first"
            ) from None
        yield
