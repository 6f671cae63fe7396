"""Where Podman works, and where it only seems to."""

import functools
import os
from pathlib import Path

import pytest

from fabric_agent.workloads.podman import PodmanUnusable, try_podman

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="containers are made by root only")


@functools.cache
def why_no_podman() -> str:
    """Return why this machine cannot run a container; empty where it can."""
    try:
        try_podman()
    except PodmanUnusable as problem:
        return problem.message
    return ""


needs_podman = pytest.mark.usefixtures("_working_podman")


def podman_that_cannot_run(folder: Path) -> Path:
    """Return a folder for PATH whose Podman answers every question and runs nothing."""
    programs = folder / "programs"
    programs.mkdir()
    podman = programs / "podman"
    podman.write_text(
        "#!/bin/sh\n"
        'case " $* " in\n'
        '*" run "*) echo "crun: cgroups in hybrid mode not supported" >&2; exit 126 ;;\n'
        '*" --version "*) echo podman version 4.3.1 ;;\n'
        '*" image ls "*) echo sha256:0123456789ab ;;\n'
        "esac\n"
    )
    podman.chmod(0o755)
    return programs
