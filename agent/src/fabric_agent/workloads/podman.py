"""Workloads in Podman containers: no network but the one port, no rights, bounded in everything."""

import contextlib
import http.client
import json
import os
import secrets
import shutil
import subprocess
import tempfile
import threading
import time
from pathlib import Path

from fabric_agent.hostfacts import process_start_ticks
from fabric_agent.problems import AgentProblem
from fabric_agent.workloads.base import Handle, Spec, StartFailed
from fabric_agent.workloads.image import SERVICE_PATH, image_tag, interpreter, write_image

COMMAND_SECONDS = 60
START_SECONDS = 20.0
RUNTIME_MIB = 16
"""What interpreter and service take of the container's memory, on top of the promise."""
_PORT = 8080
_USER = 65534
_PIDS = 64
_TRIAL_MIB = 64
_CLEAN_UP_SECONDS = 5.0
_PREFERRED = "runc"
"""Works with every arrangement of cgroups; without it Podman chooses what it was built for."""
_SETTINGS = """[containers]
default_ulimits = ["nofile=20000:20000", "nproc=20000:20000"]
[engine]
{runtime}cgroup_manager = "cgroupfs"
events_logger = "file"
[network]
network_backend = "netavark"
"""
_MEMORY_FILES = (
    ("memory", "/sys/fs/cgroup/memory", "memory.limit_in_bytes"),
    ("", "/sys/fs/cgroup", "memory.max"),
)


class PodmanUnusable(AgentProblem):
    """Podman is installed but does not work here; leases fall back to what else there is."""


def find_podman(*, store: Path, run: Path | None = None) -> "PodmanRuntime":
    """Return Podman once it has run a container here, or raise PodmanUnusable with the cause."""
    if not shutil.which("podman"):
        raise PodmanUnusable("PODMAN_MISSING", "Podman is not installed", remedy="Install Podman.")
    if os.geteuid() != 0:
        raise PodmanUnusable(
            "PODMAN_NEEDS_ROOT", "containers are made by root only", remedy="Run this as root."
        )
    found = PodmanRuntime(store=store, run=run)
    found.prepare()
    return found


def try_podman() -> str:
    """Run a container in a store that is gone afterwards; return Podman's name and version.

    Raises PodmanUnusable with the cause.
    """
    folder = Path(tempfile.mkdtemp(prefix="fabric-podman-"))
    try:
        return find_podman(store=folder / "store", run=folder / "run").description
    finally:
        deadline = time.monotonic() + _CLEAN_UP_SECONDS
        while folder.exists() and time.monotonic() < deadline:
            shutil.rmtree(folder, ignore_errors=True)  # Podman cleans up beside us for a moment.
            time.sleep(0.05)


class PodmanRuntime:
    """Containers of our own store, which live on when the agent does not."""

    name = "podman"
    isolation = "container"

    def __init__(self, *, store: Path, program: str | None = None, run: Path | None = None) -> None:
        self._program = program or shutil.which("podman") or "podman"
        self._store = store
        self._run = run or _memory_folder() / f"fabric-agent-{os.getuid()}"
        self._image = ""
        self._lock = threading.Lock()
        self.description = "podman"

    def prepare(self) -> None:
        """Make the image unless it is there, and run it once; PodmanUnusable where that fails.

        A Podman that answers may still be unable to run anything: without a network helper, or
        with a runtime that does not know this kernel's cgroups. Better known now than by a tenant.
        """
        with self._lock:
            self._store.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._run.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._settings.write_text(_settings_text(), encoding="utf-8")
            version = self._call("--version").split()
            self.description = f"podman {version[-1]}" if version else "podman"
            tag = f"localhost/fabric-lease:{image_tag()}"
            image = self._find_image(tag) or self._make_image(tag)
            self._call(*self._trial_arguments(image))
            self._image = image

    def start(self, spec: Spec) -> Handle:
        """Start a container and wait until its service answers."""
        if not self._image:
            self.prepare()
        name, secret = _name(spec.lease), self._hand_over(spec)
        try:
            self._call(*self._run_arguments(spec, name, secret))
            return self._wait_for(name, spec)
        except PodmanUnusable as problem:
            raise StartFailed("CONTAINER_FAILED", problem.message) from problem
        except StartFailed:
            self._remove(name)
            raise
        finally:
            shutil.rmtree(secret, ignore_errors=True)

    def is_alive(self, handle: Handle) -> bool:
        """Return whether the container's first process is the one that was started."""
        return process_start_ticks(handle.pid) == handle.start_ticks

    def stop(self, handle: Handle) -> None:
        """Remove the container, running or not."""
        self._remove(handle.container)

    def memory_mib(self, handle: Handle) -> int | None:
        """Return the limit the kernel holds the container to, less the runtime's own share."""
        for controller, root, file in _MEMORY_FILES:
            path = _group_of(handle.pid, controller)
            if path is None:
                continue
            with contextlib.suppress(OSError, ValueError):
                text = (Path(root) / path.lstrip("/") / file).read_text(encoding="ascii")
                return (int(text) >> 20) - RUNTIME_MIB
        return None

    @property
    def _settings(self) -> Path:
        return self._store / "containers.conf"

    def _run_arguments(self, spec: Spec, name: str, secret: Path) -> list[str]:
        return [
            *("run", "--detach", "--replace", "--name", name, "--restart=no"),
            *_bounds(spec.memory_mib + RUNTIME_MIB, spec.cores, spec.listen_host),
            *("--volume", f"{spec.folder}:/lease:ro", "--volume", f"{secret}:/secret:ro"),
            *("--stop-timeout", "2", self._image),
            *(str(interpreter()), "-I", "-B", SERVICE_PATH, "/secret/settings.json"),
        ]

    def _trial_arguments(self, image: str) -> list[str]:
        bounds = _bounds(_TRIAL_MIB, 1, "127.0.0.1")
        return ["run", "--rm", *bounds, image, str(interpreter()), "-I", "-B", "-c", ""]

    def _hand_over(self, spec: Spec) -> Path:
        """Write the settings, with the token, to memory for the moment of the start only."""
        folder = self._run / f"start-{secrets.token_hex(8)}"
        folder.mkdir()
        folder.chmod(0o755)  # Whatever the umask: the container's user reads one file in it.
        path = folder / "settings.json"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
        with os.fdopen(os.open(path, flags, 0o400), "w", encoding="utf-8") as file:
            json.dump(
                {
                    "lease": spec.lease,
                    "token": spec.token,
                    "host": "0.0.0.0",  # noqa: S104 - inside the container's own network
                    "port": _PORT,
                    "folder": "/lease",
                    "writes_status": False,
                },
                file,
            )
        os.chown(path, _USER, _USER)
        return folder

    def _wait_for(self, name: str, spec: Spec) -> Handle:
        shown = json.loads(self._call("container", "inspect", name))[0]
        pid = int(shown["State"]["Pid"])
        ticks = process_start_ticks(pid) if pid else None
        ports = shown["NetworkSettings"]["Ports"].get(f"{_PORT}/tcp") or [{}]
        port = int(ports[0].get("HostPort") or 0)
        if ticks is None or not port:
            raise StartFailed("WORKLOAD_DIED", "the container ended as soon as it had started")
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            instance = _ask(spec.listen_host, port)
            if instance:
                return Handle(
                    runtime=self.name,
                    pid=pid,
                    start_ticks=ticks,
                    port=port,
                    instance=instance,
                    container=name,
                )
            if process_start_ticks(pid) != ticks:
                raise StartFailed("WORKLOAD_DIED", "the container ended before it answered")
            time.sleep(0.05)
        raise StartFailed("WORKLOAD_SILENT", f"no answer in {START_SECONDS:.0f} s")

    def _find_image(self, tag: str) -> str:
        told = self._call("image", "ls", "--quiet", "--no-trunc", "--filter", f"reference={tag}")
        return told.split()[0].removeprefix("sha256:") if told.split() else ""

    def _make_image(self, tag: str) -> str:
        process = subprocess.Popen(  # noqa: S603 - fixed arguments
            [*self._prefix, "import", "-", tag],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=self._environment,
        )
        assert process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            write_image(process.stdin)  # type: ignore[arg-type]
        _, said = process.communicate(timeout=COMMAND_SECONDS)
        if process.returncode != 0:
            raise _unusable(f"the image could not be made: {_last_line(said)}")
        return self._find_image(tag)

    def _remove(self, name: str) -> None:
        with contextlib.suppress(PodmanUnusable):
            self._call("rm", "--force", "--ignore", "--time", "2", name)

    def _call(self, *arguments: str) -> str:
        try:
            done = subprocess.run(  # noqa: S603 - fixed arguments
                [*self._prefix, *arguments],
                capture_output=True,
                timeout=COMMAND_SECONDS,
                env=self._environment,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise _unusable(f"podman {arguments[0]}: {error}") from error
        if done.returncode != 0:
            words = _last_line(done.stderr)
            raise _unusable(f"podman {arguments[0]}: {words}")
        return done.stdout.decode(errors="replace")

    @property
    def _prefix(self) -> list[str]:
        """Podman on a store of our own, freed of the agent's own bound on addresses."""
        unbound = ["/bin/sh", "-c", 'ulimit -S -v unlimited; exec "$@"', "sh"]
        roots = ["--root", str(self._store / "storage"), "--runroot", str(self._run / "podman")]
        # Without a mount of its own, the store can be removed with the agent's folder.
        no_mount = ["--storage-opt", "overlay.skip_mount_home=true"]
        return [*unbound, self._program, *roots, *no_mount]

    @property
    def _environment(self) -> dict[str, str]:
        return {**os.environ, "CONTAINERS_CONF": str(self._settings)}


def _unusable(message: str) -> PodmanUnusable:
    return PodmanUnusable(
        "PODMAN_DOES_NOT_WORK",
        message,
        remedy="Install runc, netavark, aardvark-dns and iptables, see podman run work, start again.",
    )


def _bounds(memory_mib: int, cores: int, listen_host: str) -> list[str]:
    """Return what every container is bounded by, the one that only tries it out included."""
    memory = f"{memory_mib}m"
    return [
        *("--pull=never", "--memory", memory, "--memory-swap", memory, "--cpus", str(cores)),
        *("--pids-limit", str(_PIDS), "--read-only", "--cap-drop=all"),
        *("--security-opt", "no-new-privileges", "--user", f"{_USER}:{_USER}"),
        *("--tmpfs", "/tmp:rw,size=16m,noexec,nosuid,nodev"),  # noqa: S108 - inside
        *("--publish", f"{listen_host}::{_PORT}", "--log-driver=none"),
        *("--hostname", "lease", "--no-hosts"),
    ]


def _settings_text() -> str:
    path = os.pathsep.join((os.environ.get("PATH", ""), "/usr/local/sbin", "/usr/sbin", "/sbin"))
    there = shutil.which(_PREFERRED, path=path)
    return _SETTINGS.format(runtime=f'runtime = "{_PREFERRED}"\n' if there else "")


def _memory_folder() -> Path:
    """Return a folder that is memory, not disk."""
    shared = Path("/dev/shm")  # noqa: S108 - a private folder is made in it
    return next((path for path in (Path("/run"), shared) if _is_memory(path)), shared)


def _is_memory(path: Path) -> bool:
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/mounts").read_text(encoding="utf-8").splitlines():
            columns = line.split()
            if columns[1] == str(path) and columns[2] == "tmpfs":
                return os.access(path, os.W_OK)
    return False


def _group_of(pid: int, controller: str) -> str | None:
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/cgroup").read_text(encoding="utf-8").splitlines():
            _, controllers, path = line.split(":", 2)
            if controller in controllers.split(",") and path != "/":
                return path
    return None


def _ask(host: str, port: int) -> str:
    connection = http.client.HTTPConnection(host, port, timeout=1.0)
    try:
        connection.request("GET", "/alive")
        return str(json.loads(connection.getresponse().read(4096)).get("instance") or "")
    except (OSError, http.client.HTTPException, ValueError, AttributeError):
        return ""
    finally:
        connection.close()


def _name(lease: str) -> str:
    return "fabric-" + "".join(letter if letter.isalnum() else "-" for letter in lease)


def _last_line(said: bytes) -> str:
    lines = said.decode(errors="replace").strip().splitlines()
    return lines[-1][:200] if lines else "it said nothing"
