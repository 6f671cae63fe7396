"""Settings of the two commands that need to own the tables: `migrate`, `grant_runtime_role`.

Everything else runs as the role in `DATABASE_URL`, which owns nothing.
"""

from fabric.settings.base import *

DATABASES = {"default": env.dj_db_url("DATABASE_OWNER_URL")}
