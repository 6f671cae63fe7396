"""The body of a listing that a host CPU can keep, and copies of it that differ."""

import copy
from typing import Any

BODY: dict[str, Any] = {
    "kind": "accelerator",
    "title": "Host CPU, 2 cores",
    "region": "eu-north",
    "country": "IS",
    "depth": "container",
    "max_hours": 24,
    "interruptible": False,
    "promise": {
        "device_class": "host-cpu",
        "unit_count": 1,
        "unit_kind": "whole",
        "memory_mib": 1024,
        "cpu_model": "Example CPU @ 2.10GHz",
        "cpu_cores": 2,
        "system_memory_mib": 16_000,
        "disk_kind": "ssd",
        "disk_gib": 40,
        "disk_read_mb_s": 400,
        "disk_write_mb_s": 200,
        "interconnect": "none",
        "runtime": "podman",
        "interface": "http",
        "compute_gops": 20.5,
        "memory_bandwidth_gb_s": 8,
        "isolation": "none",
    },
    "price": {
        "amount_micros": "50000",
        "per_quantity": 3600,
        "meter_unit": "accelerator_second",
    },
}


def body_with(**changes: Any) -> dict[str, Any]:
    """Return the body with some paths changed; `promise__memory_mib=None` removes a key."""
    body = copy.deepcopy(BODY)
    for path, value in changes.items():
        *parents, last = path.split("__")
        part = body
        for parent in parents:
            part = part[parent]
        if value is None:
            part.pop(last, None)
        else:
            part[last] = value
    return body
