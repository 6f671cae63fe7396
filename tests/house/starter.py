"""Starts what a test of process life is about, says so, and waits to be killed.

Run as `python -m tests.house.starter FOLDER`; prints the URLs of both servers and the process id
of a plain child, one a line.
"""

import sys
import time
from pathlib import Path

from deploy.local.processes import Supervisor
from deploy.local.servers import start_servers

folder = Path(sys.argv[1])
with Supervisor(folder / "logs") as supervisor:
    addresses = start_servers(supervisor, folder, forgetful=True)
    child = supervisor.start("sleeper", ["sleep", "300"])
    pids = [str(known.process.pid) for known in supervisor.children]
    sys.stdout.write(f"{addresses.owner_url}\n{addresses.redis_url}\n{' '.join(pids)}\n")
    sys.stdout.flush()
    time.sleep(300)
