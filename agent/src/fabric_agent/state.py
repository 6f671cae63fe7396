"""The agent's folder: its key, who it is to the control plane, its configuration and its outbox."""

import fcntl
import json
import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from fabric_agent.config import Config, load_config
from fabric_agent.problems import StateProblem
from fabric_protocol import keys

DEFAULT_FOLDER = Path("/var/lib/fabric-agent")


@dataclass(frozen=True)
class Identity:
    """What enrolment settled: who this node is, and whose signatures it believes."""

    url: str
    node_id: str
    provider: str
    server_public_key: str
    simulated: bool
    accepts_unisolated: bool
    enrolled_at: str

    @property
    def server_key(self) -> bytes:
        """The control plane's public key."""
        return bytes.fromhex(self.server_public_key)


class StateFolder:
    """Paths and files below one folder that only its owner can read."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def config_path(self) -> Path:
        """Where the configuration lies."""
        return self.path / "config.yaml"

    @property
    def outbox_path(self) -> Path:
        """Where signed batches wait for their receipts."""
        return self.path / "outbox.sqlite3"

    @property
    def leases_path(self) -> Path:
        """Where each running workload has a folder."""
        return self.path / "leases"

    @property
    def _key_path(self) -> Path:
        return self.path / "node.key"

    @property
    def _identity_path(self) -> Path:
        return self.path / "identity.json"

    def prepare(self) -> None:
        """Make the folder, for its owner only."""
        try:
            self.path.mkdir(parents=True, exist_ok=True, mode=0o700)
            self.path.chmod(0o700)
        except OSError as error:
            raise StateProblem(
                "STATE_FOLDER",
                f"cannot use {self.path}: {error.strerror}",
                remedy="Run as root, or name another folder with --state.",
            ) from error

    def make_key(self) -> keys.SigningKey:
        """Make the node's key, or return the one that is there; it never leaves this file."""
        self.prepare()
        if self._key_path.exists():
            return self.key()
        key = keys.SigningKey.generate()
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
        with os.fdopen(os.open(self._key_path, flags, 0o600), "wb") as file:
            file.write(key.seed_bytes)
            file.flush()
            os.fsync(file.fileno())
        return key

    def key(self) -> keys.SigningKey:
        """Return the node's key; StateProblem when it is missing, or readable by others."""
        try:
            mode = self._key_path.stat().st_mode
            if stat.S_IMODE(mode) & 0o077:
                raise StateProblem(
                    "KEY_EXPOSED",
                    f"{self._key_path} can be read by others",
                    remedy=f"Run: chmod 600 {self._key_path}, and enrol anew if in doubt.",
                )
            return keys.SigningKey.from_file(self._key_path)
        except FileNotFoundError as error:
            raise _not_enrolled() from error
        except ValueError as error:
            raise StateProblem(
                "KEY_DAMAGED", f"{self._key_path} is not a key", remedy="Enrol this node anew."
            ) from error

    def identity(self) -> Identity:
        """Return who this node is; StateProblem when it never enrolled."""
        try:
            return Identity(**json.loads(self._identity_path.read_text(encoding="utf-8")))
        except FileNotFoundError as error:
            raise _not_enrolled() from error
        except (ValueError, TypeError) as error:
            raise StateProblem(
                "IDENTITY_DAMAGED",
                f"{self._identity_path} cannot be read",
                remedy="Enrol this node anew.",
            ) from error

    @property
    def is_enrolled(self) -> bool:
        """Whether enrolment was completed here."""
        return self._identity_path.exists()

    def save_identity(self, identity: Identity) -> None:
        """Keep who this node is, whole or not at all."""
        write_whole(self._identity_path, json.dumps(asdict(identity), indent=1))

    def config(self) -> Config:
        """Return the configuration, refused field by field when it is wrong."""
        return load_config(self.config_path)

    @contextmanager
    def only_agent(self) -> Iterator[None]:
        """Hold the folder for one running agent; a second one is refused."""
        self.prepare()
        with (self.path / "agent.lock").open("a", encoding="utf-8") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                raise StateProblem(
                    "ALREADY_RUNNING",
                    f"another agent runs on {self.path}",
                    remedy="Stop it first, or name another folder with --state.",
                ) from error
            yield


def write_whole(path: Path, text: str, *, mode: int = 0o600) -> None:
    """Replace a file so that a reader sees the old text or the new one, never a part.

    Two writers at once each write a part of their own; the later one's text stays.
    """
    descriptor, part = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            os.fchmod(file.fileno(), mode)  # Whatever the umask: a container reads some of these.
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        Path(part).replace(path)
    except BaseException:
        Path(part).unlink(missing_ok=True)
        raise


def _not_enrolled() -> StateProblem:
    return StateProblem(
        "NOT_ENROLLED",
        "this machine is not enrolled",
        remedy="Make a token on the provider page, then run: fabric-agent enroll --url … --token …",
    )
