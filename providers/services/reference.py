"""Loading the reference classes that the repository ships."""

import json
from pathlib import Path
from typing import Any

from django.db import transaction

from providers.domain.bands import read_bands
from providers.domain.nodes import Tier
from providers.models import HardwareClass

CLASSES = Path(__file__).resolve().parent.parent / "data" / "classes.json"
_FIELDS = (
    "name",
    "vendor",
    "kind",
    "architecture",
    "form_factor",
    "memory_mib",
    "pci_device_ids",
    "tier",
    "bands",
    "synthetic",
    "source",
)


@transaction.atomic
def load_classes(*, path: Path = CLASSES) -> int:
    """Make the classes in the database what the file says; return how many there are.

    Running it again changes nothing. A class that the file no longer names stays: nodes and
    verdicts may point at it. Every class names a tier, so no class is left without one.
    """
    rows: list[dict[str, Any]] = json.loads(path.read_text())
    for row in rows:
        read_bands(row["bands"])
        Tier(row["tier"])
        HardwareClass.objects.update_or_create(
            slug=row["slug"], defaults={field: row[field] for field in _FIELDS}
        )
    return len(rows)
