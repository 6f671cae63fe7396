"""Workloads of simulated nodes: the same service, in threads of the process that simulates."""

import threading
import time

from fabric_agent.hostfacts import process_start_ticks
from fabric_agent.workloads.base import Handle, Spec, StartFailed
from fabric_agent.workloads.service import LeaseServer, watch


class ThreadRuntime:
    """Serves every lease of a simulated node from this process; ends with it."""

    name = "simulated"
    isolation = "none"
    description = "simulated"

    def __init__(self, *, own_pid: int) -> None:
        self._pid = own_pid
        self._ticks = process_start_ticks(own_pid) or 0
        self._servers: dict[str, LeaseServer] = {}
        self._memory: dict[str, int] = {}

    def start(self, spec: Spec) -> Handle:
        """Serve the lease on a free port until it is stopped or its paid time is over."""
        try:
            server = LeaseServer(spec.listen_host, 0, lease=spec.lease, token=spec.token)
        except OSError as error:
            raise StartFailed("NO_PORT", f"no port could be opened: {error.strerror}") from error
        self._servers[server.instance] = server
        self._memory[server.instance] = spec.memory_mib
        threading.Thread(target=server.serve_forever, args=(0.2,), daemon=True).start()
        threading.Thread(target=self._end_in_time, args=(spec, server), daemon=True).start()
        return Handle(
            runtime=self.name,
            pid=self._pid,
            start_ticks=self._ticks,
            port=int(server.server_address[1]),
            instance=server.instance,
        )

    def is_alive(self, handle: Handle) -> bool:
        """Return whether this process serves that instance."""
        return handle.instance in self._servers

    def stop(self, handle: Handle) -> None:
        """Close the service."""
        server = self._servers.pop(handle.instance, None)
        if server is not None:
            server.shutdown()
            server.server_close()

    def memory_mib(self, handle: Handle) -> int | None:
        """Return what the profile promised: nothing is allocated in a simulation."""
        return self._memory.get(handle.instance)

    def _end_in_time(self, spec: Spec, server: LeaseServer) -> None:
        def is_over() -> int | None:
            if server.instance not in self._servers:
                return 0
            try:
                until = float((spec.folder / "until").read_text(encoding="ascii"))
            except (OSError, ValueError):
                return 0
            return 0 if time.time() >= until else None

        watch(is_over)
        if self._servers.pop(server.instance, None) is not None:
            server.shutdown()
            server.server_close()
