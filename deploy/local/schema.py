"""Brings a database to the current schema as its owner, and grants the runtime role its part.

`python -m deploy.local.schema` with `fabric.settings.owner`. One process for both commands, because
starting Django costs more than either.
"""

import os
import sys

import django
from django.core.management import call_command
from environs import Env


def main() -> int:
    """Migrate, and grant."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "fabric.settings.owner")
    django.setup()
    role: str = Env().dj_db_url("DATABASE_URL")["USER"]
    call_command("migrate", verbosity=0)
    call_command("grant_runtime_role", role)
    return 0


if __name__ == "__main__":
    sys.exit(main())
