"""Settings of the tests: real PostgreSQL and Redis, fast password hashes, fixed secrets."""

import os

os.environ.setdefault("FABRIC_SECRET_KEY", "tests-only-secret-key-that-protects-nothing-at-all-000")
os.environ.setdefault("FABRIC_API_KEY_PEPPER", "tests-only-pepper")
os.environ.setdefault("FABRIC_SIGNING_KEY", "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=")
os.environ.setdefault("DATABASE_URL", "postgres://postgres@127.0.0.1:5432/fabric")
os.environ.setdefault("REDIS_URL", "redis://127.0.0.1:6379/0")
os.environ.setdefault("FABRIC_EMAIL_VERIFICATION", "optional")
os.environ.setdefault("FABRIC_ALLOW_SIMULATED", "true")
os.environ.setdefault("FABRIC_OPERATOR_MFA", "false")
os.environ.setdefault("FABRIC_ALLOW_UNISOLATED", "true")
os.environ.setdefault("FABRIC_ALLOW_PRIVATE_ACCESS", "true")
os.environ.setdefault("FABRIC_SWEEP_SECONDS", "1.0")
os.environ.setdefault("FABRIC_LOG_JSON", "false")
os.environ.setdefault("FABRIC_LOG_LEVEL", "WARNING")

from fabric.settings.base import *

PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
EMAIL_BACKEND = "django.core.mail.backends.locmem.EmailBackend"
# Tests sign in far more often than a person; those of the limits switch them on again.
ACCOUNT_RATE_LIMITS = False
FABRIC_RATE_LIMITS = {"default": (1_000_000, 60), "anonymous": (1_000_000, 60)}
MFA_WEBAUTHN_ALLOW_INSECURE_ORIGIN = True

# Static files come from where they lie; nothing is collected and no folder must be there.
WHITENOISE_AUTOREFRESH = True
WHITENOISE_USE_FINDERS = True
STORAGES["staticfiles"]["BACKEND"] = "django.contrib.staticfiles.storage.StaticFilesStorage"
