"""Settings of every deployment. Everything that differs comes from the environment."""

from pathlib import Path

from environs import Env

env = Env()
BASE_DIR = Path(__file__).resolve().parent.parent.parent

# Secrets and addresses: no default here, so that a missing one stops the start.
SECRET_KEY = env.str("FABRIC_SECRET_KEY")
FABRIC_API_KEY_PEPPER = env.str("FABRIC_API_KEY_PEPPER")
FABRIC_SIGNING_KEY = env.str("FABRIC_SIGNING_KEY")  # base64 of a 32-byte Ed25519 seed
DEBUG = False
ALLOWED_HOSTS = env.list("FABRIC_ALLOWED_HOSTS", ["localhost", "127.0.0.1"])
FABRIC_PUBLIC_URL = env.str("FABRIC_PUBLIC_URL", "http://127.0.0.1:8000")
CSRF_TRUSTED_ORIGINS = [FABRIC_PUBLIC_URL]

INSTALLED_APPS = [
    "unfold",
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.postgres",
    "django.contrib.humanize",
    "allauth",
    "allauth.account",
    "allauth.mfa",
    "rest_framework",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "django_filters",
    "django_htmx",
    "template_partials",
    "csp",
    "django_prometheus",
    "pgtrigger",
    "fabric.journal",
    "fabric.accounts",
    "providers",
    "listings",
    "billing",
    "leases",
    "workloads",
]

MIDDLEWARE = [
    "django_prometheus.middleware.PrometheusBeforeMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "csp.middleware.CSPMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "allauth.account.middleware.AccountMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "django_prometheus.middleware.PrometheusAfterMiddleware",
]

ROOT_URLCONF = "fabric.urls"
WSGI_APPLICATION = "fabric.wsgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]

# The runtime role; `DATABASE_OWNER_URL` (see `fabric/settings/owner.py`) migrates and owns.
DATABASES = {
    "default": {**env.dj_db_url("DATABASE_URL"), "CONN_MAX_AGE": 60, "CONN_HEALTH_CHECKS": True}
}
REDIS_URL = env.str("REDIS_URL")
CACHES = {
    "default": {"BACKEND": "django.core.cache.backends.redis.RedisCache", "LOCATION": REDIS_URL}
}
CELERY_BROKER_URL = REDIS_URL

AUTH_USER_MODEL = "accounts.User"
LANGUAGE_CODE = "en"
TIME_ZONE = "UTC"
USE_I18N = False
USE_TZ = True
STATIC_URL = "/static/"
STATIC_ROOT = BASE_DIR / "staticfiles"
STATICFILES_DIRS = [BASE_DIR / "static"]
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
