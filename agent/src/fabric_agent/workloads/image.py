"""The image that leases run in: this Python, its libraries and the lease's service, nothing else.

It is made from files of this machine and fetched from nowhere, so that a node needs no registry and
nobody's image has to be trusted. There is no shell, no package manager and no user in it.
"""

import hashlib
import io
import os
import re
import subprocess
import sys
import sysconfig
import tarfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from fabric_agent.workloads import service

_FORMAT = "1"
_LEFT_OUT = {
    *("__pycache__", "site-packages", "test", "tests", "idlelib", "tkinter", "turtledemo"),
    *("ensurepip", "lib2to3", "pydoc_data", "venv", "distutils", "lib-dynload", "unittest"),
}
_LIBRARY = re.compile(r"(?:=>\s+)?(/\S+)\s+\(0x")
_LIST_EXTENSIONS = """
import encodings.idna, importlib.util, sys
spec = importlib.util.spec_from_file_location("service", sys.argv[1])
spec.loader.exec_module(importlib.util.module_from_spec(spec))
files = (getattr(module, "__file__", None) or "" for module in list(sys.modules.values()))
print("\\n".join(path for path in files if path.endswith(".so")))
"""
SERVICE_PATH = "/fabric/service.py"


def interpreter() -> Path:
    """Return the real interpreter, outside of any virtual environment."""
    return Path(sys.executable).resolve()


def image_tag() -> str:
    """Return the tag of the image for this interpreter and this service: content, not a version."""
    what = f"{_FORMAT}\n{sys.version}\n{interpreter()}\n".encode()
    return hashlib.sha256(what + Path(service.__file__).read_bytes()).hexdigest()[:16]


def write_image(out: io.BufferedIOBase) -> None:
    """Write the root file system as a tar stream, the same bytes for the same files."""
    with tarfile.open(fileobj=out, mode="w|", format=tarfile.PAX_FORMAT) as archive:
        files = sorted(set(_files()))
        for folder in sorted({str(up) for place, _ in files for up in Path(place).parents}):
            archive.addfile(_folder(folder))
        for place, source in files:
            info = tarfile.TarInfo(place.lstrip("/"))
            data = source.read_bytes()
            info.size = len(data)
            info.mode = 0o755 if os.access(source, os.X_OK) else 0o644
            archive.addfile(info, io.BytesIO(data))
        for name in ("lease", "secret", "tmp"):
            archive.addfile(_folder(name))


def _folder(place: str) -> tarfile.TarInfo:
    """Return a folder that anybody may enter, wherever it stands here."""
    info = tarfile.TarInfo(place.lstrip("/") or ".")
    info.type, info.mode = tarfile.DIRTYPE, 0o755
    return info


def _files() -> Iterator[tuple[str, Path]]:
    """Yield (path in the image, path here) of every file."""
    python = interpreter()
    yield str(python), python
    yield SERVICE_PATH, Path(service.__file__)
    library = Path(sysconfig.get_path("stdlib", vars={"base": sys.base_prefix}))
    for path in library.rglob("*.py"):
        inside = path.relative_to(library)
        if not _LEFT_OUT & set(inside.parts) and not inside.parts[0].startswith("config-"):
            yield str(path), path
    extensions = _extensions(python)
    for extension in extensions:
        yield str(extension), extension
    for path in _libraries([python, *extensions]):
        yield str(path), path.resolve()


def _extensions(python: Path) -> list[Path]:
    """Return the compiled modules that the service has loaded when it runs."""
    told = _run(str(python), "-I", "-c", _LIST_EXTENSIONS, service.__file__)
    return sorted({Path(line) for line in told.splitlines() if line})


def _libraries(programs: Iterable[Path]) -> list[Path]:
    """Return the shared libraries, and the loader, that the programs ask for."""
    found: set[Path] = set()
    for program in programs:
        found |= {Path(path) for path in _LIBRARY.findall(_run("ldd", str(program)))}
    return sorted(found)


def _run(*command: str) -> str:
    return subprocess.run(  # noqa: S603 - fixed programs on files of our own
        command, capture_output=True, text=True, timeout=30, check=True
    ).stdout
