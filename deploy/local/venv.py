"""Makes `.venv` from the lock on a machine that has nothing but Python.

Standard library only, and readable by an older Python, so that it can say what is wrong.
A second run finds its stamp and returns at once.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parent.parent.parent
VENV = ROOT / ".venv"
LOCAL = ROOT / ".local"
PYTHON = VENV / "bin" / "python"
STAMP = VENV / "fabric-stamp.json"
OLDEST = (3, 11)
OUR_PACKAGES = ("protocol", "agent")
LOCKS = ("runtime", "dev")  # each holds all of the ones before it


class SetupFailed(Exception):
    """The environment cannot be made; the message says what to do."""


def enter(lock: str) -> None:
    """Return inside the environment of this lock; make it and re-execute the caller if needed."""
    if sys.version_info < OLDEST:
        _reexecute_newer()
    inside = Path(sys.prefix).resolve() == VENV.resolve()
    if inside and _is_current(lock):
        return
    try:
        ensure(lock)
    except SetupFailed as failure:
        sys.exit(f"{Path(sys.argv[0]).name}: {failure}")
    os.execv(PYTHON, [str(PYTHON), *sys.argv])


def ensure(lock: str) -> None:
    """Make `.venv` match the lock; does nothing when it already does."""
    with _one_at_a_time():
        if _is_current(lock):
            return
        started = time.monotonic()
        base = Path(getattr(sys, "_base_executable", "") or sys.executable)

        def say(text: str) -> None:
            sys.stderr.write(f"[{time.monotonic() - started:3.0f} s] {text}\n")
            sys.stderr.flush()

        if not _is_usable(base):
            say(f"making .venv with Python {'.'.join(map(str, sys.version_info[:3]))}")
            shutil.rmtree(VENV, ignore_errors=True)
            _run([str(base), "-m", "venv", "--without-pip", str(VENV)])
        STAMP.unlink(missing_ok=True)
        pip = _find_pip(base)
        count = sum("==" in line.split(";")[0] for line in _lock_file(lock).open())
        try:
            uv = _install_uv(pip)
            say(f"installing {count} packages from requirements/{lock}.txt, checked by hash")
            _sync_with_uv(uv, lock, _uv_environment(pip))
        except subprocess.CalledProcessError as failure:
            say(f"uv could not ({_last_line(failure)}); trying pip, which takes a minute or two")
            _sync_with_pip(pip, lock)
        STAMP.write_text(json.dumps({"lock": lock, "digest": _digest(lock)}))
        say("the environment is ready")


def _is_current(lock: str) -> bool:
    """Tell whether `.venv` was made from this lock, or from a larger one, as it stands now."""
    try:
        made = json.loads(STAMP.read_text())
        larger = LOCKS.index(made["lock"]) >= LOCKS.index(lock)
        return larger and made["digest"] == _digest(made["lock"])
    except (OSError, ValueError, KeyError):
        return False


def _digest(lock: str) -> str:
    """Return a digest of all that decides what is in the environment, its Python included."""
    digest = hashlib.sha256(f"{sys.version_info[:2]} {ROOT}".encode())
    for path in (
        _lock_file(lock),
        *(ROOT / package / "pyproject.toml" for package in OUR_PACKAGES),
    ):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _lock_file(lock: str) -> Path:
    return ROOT / "requirements" / f"{lock}.txt"


def _is_usable(base: Path) -> bool:
    """Tell whether there is a `.venv` that runs, of the version that is asking."""
    if not PYTHON.exists():
        return False
    code = "import sys; print(sys.version_info[:2])"
    asked, found = (
        subprocess.run([str(python), "-c", code], capture_output=True, text=True, check=False)
        for python in (base, PYTHON)
    )
    return found.returncode == 0 and found.stdout == asked.stdout


def _find_pip(base: Path) -> list[str]:
    """Return how to call a pip that runs: the interpreter's own, or one from its `ensurepip`."""
    own = [str(base), "-m", "pip"]
    if subprocess.run([*own, "--version"], capture_output=True, check=False).returncode == 0:
        return own
    helper = LOCAL / "pip"
    try:
        _run([str(base), "-m", "venv", "--clear", str(helper)])
    except subprocess.CalledProcessError as failure:
        raise SetupFailed(
            "this Python has neither pip nor ensurepip. On Debian and Ubuntu: "
            "apt-get install python3-venv. Then run the command again."
        ) from failure
    return [str(helper / "bin" / "python"), "-m", "pip"]


def _install_uv(pip: list[str]) -> str:
    """Install the pinned uv beside the environment, so that syncing does not remove it."""
    lock = _lock_file("uv")
    place = LOCAL / f"uv-{hashlib.sha256(lock.read_bytes()).hexdigest()[:12]}"
    binary = place / "bin" / "uv"
    if not binary.exists():
        for old in LOCAL.glob("uv-*"):
            shutil.rmtree(old, ignore_errors=True)
        _run(
            [
                *pip,
                *("install", "--quiet", "--no-deps", "--no-compile", "--require-hashes"),
                *("--disable-pip-version-check", "--target", str(place), "-r", str(lock)),
            ]
        )
    return str(binary)


def _sync_with_uv(uv: str, lock: str, environment: dict[str, str]) -> None:
    target = ["--python", str(PYTHON), "--quiet"]
    _run([uv, "pip", "sync", "--require-hashes", *target, str(_lock_file(lock))], environment)
    _run(
        [uv, "pip", "install", "--no-deps", "--no-build-isolation", *target, *_editables()],
        environment,
    )


def _sync_with_pip(pip: list[str], lock: str) -> None:
    install = [*pip, "--python", str(PYTHON), "install", "--quiet", "--no-deps"]
    try:
        _run([*install, "--no-compile", "--require-hashes", "-r", str(_lock_file(lock))])
        _run([*install, "--no-build-isolation", *_editables()])
    except subprocess.CalledProcessError as failure:
        raise SetupFailed(
            f"the packages cannot be installed: {_last_line(failure)}\n"
            "Check that a package index is reachable (pip config list) and run it again."
        ) from failure


def _editables() -> list[str]:
    return [part for package in OUR_PACKAGES for part in ("-e", str(ROOT / package))]


def _uv_environment(pip: list[str]) -> dict[str, str]:
    """Translate pip's own settings for uv, which does not read them; UV_* that are set win."""
    told = subprocess.run([*pip, "config", "list"], capture_output=True, text=True, check=False)
    settings: dict[str, str] = {}
    for line in told.stdout.splitlines():
        name, _, value = line.partition("=")
        # `global.x`, `install.x` and `:env:.x`; later lines of the list are the stronger ones.
        settings[name.rpartition(".")[2]] = " ".join(value.strip("'\"").split())
    for name in ("index-url", "extra-index-url", "find-links", "cert", "trusted-host"):
        given = os.environ.get(f"PIP_{name.replace('-', '_').upper()}")
        if given:
            settings[name] = " ".join(given.split())
    translated = {
        "UV_DEFAULT_INDEX": settings.get("index-url"),
        "UV_INDEX": settings.get("extra-index-url"),
        "UV_FIND_LINKS": (settings.get("find-links") or "").replace(" ", ","),
        "UV_INSECURE_HOST": settings.get("trusted-host"),
        "SSL_CERT_FILE": settings.get("cert"),
        # pip takes a package from whichever index has it; hashes make that safe here.
        "UV_INDEX_STRATEGY": "unsafe-best-match" if settings.get("extra-index-url") else None,
        "UV_HTTP_TIMEOUT": "180",
    }
    return {name: value for name, value in translated.items() if value} | os.environ


def _run(command: list[str], environment: dict[str, str] | None = None) -> None:
    subprocess.run(command, check=True, capture_output=True, text=True, env=environment)


def _last_line(failure: subprocess.CalledProcessError) -> str:
    said = (failure.stderr or failure.stdout or "").strip().splitlines()
    return said[-1].strip() if said else str(failure)


@contextlib.contextmanager
def _one_at_a_time() -> Iterator[None]:
    """Let a second command that starts meanwhile wait for the first one's environment."""
    LOCAL.mkdir(exist_ok=True)
    with (LOCAL / "venv.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _reexecute_newer() -> None:
    """Hand over to a Python that is new enough, if one is on the path."""
    for name in ("python3.13", "python3.12", "python3.11"):
        found = shutil.which(name)
        # A version manager's stand-in may be on the path and still run nothing.
        if (
            found
            and subprocess.run([found, "-c", ""], capture_output=True, check=False).returncode == 0
        ):
            os.execv(found, [found, *sys.argv])
    wanted = ".".join(map(str, OLDEST))
    sys.exit(f"Python {wanted} or newer is needed; this is {sys.version.split()[0]}.")
