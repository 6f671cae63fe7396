"""Keeps docs/api/ equal to what the code says: schema and table of access; `--write` renews."""

import os
import sys
from importlib import import_module

import django
from django.conf import settings
from django.core.management import call_command

from deploy.local.checks import generated_is_current
from deploy.local.venv import LOCAL, ROOT

COMMITTED = ROOT / "docs" / "api" / "openapi.yaml"
ACCESS = ROOT / "docs" / "api" / "access.md"
RENEW = "python -m deploy.local.openapi --write"


def main() -> int:
    """Generate the schema, without a warning, and the table of access; write or compare them."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "fabric.settings.test")
    django.setup()
    import_module(settings.ROOT_URLCONF)  # as a server does, before anything asks for a schema
    LOCAL.mkdir(exist_ok=True)
    fresh = LOCAL / "openapi.yaml"
    call_command("spectacular", "--validate", "--fail-on-warn", "--file", str(fresh))
    # Django must be set up before anything of it is imported.
    from fabric.api.matrix import write_matrix  # noqa: PLC0415

    generated = {COMMITTED: fresh.read_text(), ACCESS: write_matrix()}
    if "--write" in sys.argv:
        COMMITTED.parent.mkdir(parents=True, exist_ok=True)
        for path, text in generated.items():
            path.write_text(text)
        return 0
    return max(generated_is_current(path, text, RENEW) for path, text in generated.items())


if __name__ == "__main__":
    sys.exit(main())
