"""Settings of the one command that changes tables: `migrate`, as the role that owns them."""

from fabric.settings.base import *

DATABASES = {"default": {**env.dj_db_url("DATABASE_OWNER_URL")}}
