"""The hardware report: what this node commits to before anything is asked of it."""

import platform
from typing import Any

from fabric_agent import VERSION
from fabric_agent.drivers.base import Driver
from fabric_agent.workloads.base import Runtime


def build_report(driver: Driver, runtime: Runtime | None) -> dict[str, Any]:
    """Return the body of a report; measuring the disk takes about a second."""
    isolation = runtime.isolation if runtime else "none"
    found = driver.inventory(isolation=isolation, runtime=runtime.name if runtime else "none")
    return {
        "v": 1,
        "driver": found.driver,
        "agent_version": VERSION,
        "host": {
            "hostname": platform.node(),
            "os": _os_name(),
            "kernel": platform.release(),
            "container_runtime": runtime.description
            if runtime and isolation == "container"
            else None,
        },
        "facts": found.facts,
        "devices": found.devices,
        "units": found.units,
        "isolation": isolation,
    }


def _os_name() -> str:
    try:
        return platform.freedesktop_os_release().get("PRETTY_NAME", platform.system())
    except OSError:
        return platform.system()
