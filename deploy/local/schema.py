"""Brings a database to the current schema as its owner, and grants the runtime role its part.

`python -m deploy.local.schema [--fresh]` with `fabric.settings.owner`. One process for both
commands, because starting Django costs more than either.
"""

import argparse
import os
import sys

import django
from django.core.management import call_command
from django.db import connection
from environs import Env


def main() -> int:
    """Empty the database if asked, migrate it, and grant."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fresh", action="store_true", help="drop everything first")
    asked = parser.parse_args()
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "fabric.settings.owner")
    django.setup()
    role: str = Env().dj_db_url("DATABASE_URL")["USER"]
    if asked.fresh:
        with connection.cursor() as cursor:
            cursor.execute("DROP SCHEMA IF EXISTS public CASCADE")
            cursor.execute("CREATE SCHEMA public")
    call_command("migrate", verbosity=0)
    call_command("grant_runtime_role", role)
    return 0


if __name__ == "__main__":
    sys.exit(main())
