"""The agent's configuration: a short YAML file in the state folder."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from fabric_agent.problems import ConfigProblem
from fabric_agent.yaml_files import load_yaml_file

DRIVERS = ("host-cpu", "simulated")
CONTAINERS = ("auto", "never")
_REQUIRED = ("driver", "unit_memory_mib")
_OPTIONAL = ("profile", "devices", "listen_host", "advertise_host", "containers", "work_folder")


@dataclass(frozen=True)
class Config:
    """What a provider decides about this machine."""

    driver: str = "host-cpu"
    unit_memory_mib: int = 1024
    profile: str = ""
    devices: int = 1
    listen_host: str = "127.0.0.1"
    advertise_host: str = "127.0.0.1"
    containers: str = "auto"
    work_folder: str = ""

    def write(self, path: Path) -> None:
        """Write the file a person will edit; fields that are not set are left out."""
        document = {
            name: value
            for name, value in self.__dict__.items()
            if name in _REQUIRED or value not in {"", _DEFAULTS[name]}
        }
        path.write_text(yaml.safe_dump(document, sort_keys=False), encoding="utf-8")


_DEFAULTS: dict[str, Any] = dict(Config().__dict__)


def load_config(path: Path) -> Config:
    """Read the configuration; ConfigProblem names every unknown, missing or wrong field."""
    return read_config(load_yaml_file(path))


def read_config(document: dict[str, Any]) -> Config:
    """Check a configuration field by field and return it."""
    known = (*_REQUIRED, *_OPTIONAL)
    wrong = [
        f"{name}: unknown field; accepted are {', '.join(known)}"
        for name in document
        if name not in known
    ]
    wrong += [f"{name}: missing" for name in _REQUIRED if name not in document]
    values = {name: value for name, value in document.items() if name in known}
    wrong += [
        problem for name, value in values.items() if (problem := _check(name, value)) is not None
    ]
    if values.get("driver") == "simulated" and not values.get("profile"):
        wrong.append("profile: missing; a simulated node names its class")
    if wrong:
        raise ConfigProblem("CONFIG_REFUSED", "the configuration is refused", fields=wrong)
    return Config(**values)


def _check(name: str, value: Any) -> str | None:
    if name in {"unit_memory_mib", "devices"}:
        low, high = (256, 1 << 24) if name == "unit_memory_mib" else (1, 64)
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            return f"{name}: {value!r} is not a whole number from {low} to {high}"
        return None
    if not isinstance(value, str):
        return f"{name}: {value!r} is not text"
    accepted = {"driver": DRIVERS, "containers": CONTAINERS}.get(name)
    if accepted and value not in accepted:
        return f"{name}: {value!r} is not one of {', '.join(accepted)}"
    return None
