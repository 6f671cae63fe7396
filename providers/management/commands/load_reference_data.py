"""Load hardware classes, and put protocol parameters into force where there are none."""

from argparse import ArgumentParser
from datetime import UTC, datetime
from typing import Any

from django.core.management.base import BaseCommand

from fabric.journal.models import ProtocolParameters
from fabric.journal.services.parameters import adopt_parameters
from providers.services.reference import load_classes

COMMERCIAL = {
    "window_seconds": 3600,
    "dispute_window_seconds": 86_400,
    "reserve_ahead_windows": 2,
    "provision_timeout_seconds": 900,
    "provider_bps": 8_500,
    "verification_bps": 300,
    "network_bps": 300,
    "infrastructure_bps": 400,
    "margin_bps": 500,
    "hold_bps": 2_000,
}
OPERATIONAL = {
    "beat_seconds": 10,
    "suspect_after_seconds": 30,
    "dead_after_seconds": 60,
    "challenge_seconds": 600,
}
GENESIS = datetime(2026, 1, 1, tzinfo=UTC)


class Command(BaseCommand):
    """`manage.py load_reference_data`: safe to run at every start."""

    help = "Load hardware classes; adopt the first protocol parameters where none are in force."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Let a deployment start with other parameters than the defaults, one flag for each."""
        for name, value in (COMMERCIAL | OPERATIONAL).items():
            parser.add_argument(f"--{name.replace('_', '-')}", type=int, default=value)

    def handle(self, *args: Any, **options: Any) -> None:
        """Load, adopt, and say what there is."""
        count = load_classes()
        self.stdout.write(f"{count} hardware classes")
        for kind, defaults in (
            (ProtocolParameters.Kind.COMMERCIAL, COMMERCIAL),
            (ProtocolParameters.Kind.OPERATIONAL, OPERATIONAL),
        ):
            row = ProtocolParameters.objects.filter(kind=kind).order_by("-version").first()
            if row is None:
                row = adopt_parameters(
                    kind=kind,
                    body={name: options[name] for name in defaults},
                    proposed_by="exchange",
                    approved_by="first-deployment",
                    effective_at=GENESIS,
                )
            digest = bytes(row.digest).hex()
            self.stdout.write(f"{kind} parameters version {row.version}, {digest}")
