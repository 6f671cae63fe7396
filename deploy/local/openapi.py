"""Keeps docs/api/openapi.yaml equal to what the code says; `--write` renews it."""

import os
import sys
from importlib import import_module

import django
from django.conf import settings
from django.core.management import call_command

from deploy.local.checks import generated_is_current
from deploy.local.venv import LOCAL, ROOT

COMMITTED = ROOT / "docs" / "api" / "openapi.yaml"


def main() -> int:
    """Generate the schema, without a warning, and write or compare it."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "fabric.settings.test")
    django.setup()
    import_module(settings.ROOT_URLCONF)  # as a server does, before anything asks for a schema
    LOCAL.mkdir(exist_ok=True)
    fresh = LOCAL / "openapi.yaml"
    call_command("spectacular", "--validate", "--fail-on-warn", "--file", str(fresh))
    if "--write" in sys.argv:
        COMMITTED.parent.mkdir(parents=True, exist_ok=True)
        COMMITTED.write_text(fresh.read_text())
        return 0
    return generated_is_current(
        COMMITTED, fresh.read_text(), "python -m deploy.local.openapi --write"
    )


if __name__ == "__main__":
    sys.exit(main())
