"""Settings of production: everything secure, nothing simulated."""

from django.core.exceptions import ImproperlyConfigured

from fabric.settings.base import *

for _name in ("FABRIC_ALLOW_SIMULATED", "FABRIC_ALLOW_UNISOLATED", "FABRIC_PAYMENT_STANDIN_URL"):
    if globals()[_name]:
        raise ImproperlyConfigured(f"{_name} is for demos and tests; production refuses it.")
if not (STRIPE_SECRET_KEY and STRIPE_WEBHOOK_SECRET):
    raise ImproperlyConfigured("Production needs STRIPE_SECRET_KEY and STRIPE_WEBHOOK_SECRET.")
if not FABRIC_PUBLIC_URL.startswith("https://"):
    raise ImproperlyConfigured("Production needs a FABRIC_PUBLIC_URL that begins with https://.")

SECURE_SSL_REDIRECT = True
SECURE_HSTS_SECONDS = 31_536_000
SECURE_HSTS_INCLUDE_SUBDOMAINS = True
SECURE_HSTS_PRELOAD = True
SESSION_COOKIE_SECURE = True
SESSION_COOKIE_NAME = "__Host-sessionid"
CSRF_COOKIE_SECURE = True
CSRF_COOKIE_NAME = "__Host-csrftoken"
EMAIL_BACKEND = env.str("FABRIC_MAIL_BACKEND", "django.core.mail.backends.smtp.EmailBackend")
if env.bool("FABRIC_BEHIND_TLS_PROXY", default=False):
    # Only where a proxy of ours sets the header on every request; else anyone could claim TLS.
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
