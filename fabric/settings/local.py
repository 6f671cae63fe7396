"""Settings of a control plane on one machine, as `bin/demo` starts it."""

import os

os.environ.setdefault("FABRIC_EMAIL_VERIFICATION", "optional")
os.environ.setdefault("FABRIC_ALLOW_SIMULATED", "true")
os.environ.setdefault("FABRIC_OPERATOR_MFA", "false")
os.environ.setdefault("FABRIC_ALLOW_UNISOLATED", "true")
os.environ.setdefault("FABRIC_ALLOW_PRIVATE_ACCESS", "true")
os.environ.setdefault("FABRIC_SWEEP_SECONDS", "1.0")
os.environ.setdefault("FABRIC_LOG_JSON", "false")
os.environ.setdefault("FABRIC_ENVIRONMENT_BADGE", "Demo")

from fabric.settings.base import *

# Passkeys want a secure origin; a browser takes http://localhost for one, the library does not.
MFA_WEBAUTHN_ALLOW_INSECURE_ORIGIN = True

if not env.bool("FABRIC_COLLECTED_STATIC", False):
    # Static files come from where they lie; nothing is collected. WhiteNoise wants the folder there.
    WHITENOISE_USE_FINDERS = True
    STATIC_ROOT.mkdir(exist_ok=True)
    STORAGES["staticfiles"]["BACKEND"] = "django.contrib.staticfiles.storage.StaticFilesStorage"
