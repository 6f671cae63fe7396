"""Settings of every deployment. Everything that differs comes from the environment."""

from pathlib import Path

from csp.constants import NONE, SELF, UNSAFE_EVAL, UNSAFE_INLINE
from environs import Env

from fabric.settings.backoffice import build_unfold
from fabric.settings.logging import build_logging

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

# What only demos and tests may switch on; `production.py` refuses all three.
FABRIC_ALLOW_SIMULATED = env.bool("FABRIC_ALLOW_SIMULATED", default=False)
FABRIC_ALLOW_UNISOLATED = env.bool("FABRIC_ALLOW_UNISOLATED", default=False)
FABRIC_PAYMENT_STANDIN_URL = env.str("FABRIC_PAYMENT_STANDIN_URL", "")
# Whether workloads may be looked at on loopback and private nets: a provider names the address.
FABRIC_ALLOW_PRIVATE_ACCESS = env.bool("FABRIC_ALLOW_PRIVATE_ACCESS", default=False)

STRIPE_SECRET_KEY = env.str("STRIPE_SECRET_KEY", "")
STRIPE_WEBHOOK_SECRET = env.str("STRIPE_WEBHOOK_SECRET", "")
FABRIC_CURRENCY = env.str("FABRIC_CURRENCY", "usd")
# Shown beside the search box, so that nobody takes a demo for the real exchange; empty for none.
FABRIC_ENVIRONMENT_BADGE = env.str("FABRIC_ENVIRONMENT_BADGE", "")
FABRIC_SWEEP_SECONDS = env.float("FABRIC_SWEEP_SECONDS", 10.0)

INSTALLED_APPS = [
    "unfold.apps.BasicAppConfig",  # without taking over Django's own site; ours is OperatorSite
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.postgres",
    "django.contrib.humanize",  # the passkey pages of allauth load its tags
    "django.forms",  # its widgets' templates, which our renderer finds through TEMPLATES
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
    "fabric.backoffice.apps.BackofficeConfig",
]

MIDDLEWARE = [
    "django_prometheus.middleware.PrometheusBeforeMiddleware",
    "fabric.lib.requests.RequestIdMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.middleware.gzip.GZipMiddleware",
    "csp.middleware.CSPMiddleware",
    "fabric.web.policies.OperatorPolicyMiddleware",
    "fabric.web.caching.PersonalAnswersMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "fabric.accounts.web.step_up.StepUpMiddleware",
    "allauth.account.middleware.AccountMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "fabric.web.errors.RefusalPageMiddleware",
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
                "fabric.web.frame.frame",
            ],
            "libraries": {
                "fabric_ui": "fabric.web.templatetags.fabric_ui",
                "operator_ui": "fabric.backoffice.templatetags.operator_ui",
            },
        },
    }
]

FORM_RENDERER = "django.forms.renderers.TemplatesSetting"

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
AUTHENTICATION_BACKENDS = ["allauth.account.auth_backends.AuthenticationBackend"]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {
        "NAME": "django.contrib.auth.password_validation.MinimumLengthValidator",
        "OPTIONS": {"min_length": 10},
    },
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]
LOGIN_URL = "account_login"
LOGIN_REDIRECT_URL = "/"

# People sign in by e-mail address; there are no user names.
ACCOUNT_LOGIN_METHODS = {"email"}
ACCOUNT_SIGNUP_FORM_CLASS = "fabric.accounts.web.forms.SignUpForm"
ACCOUNT_SIGNUP_FIELDS = ["email*", "password1*"]
ACCOUNT_USER_MODEL_USERNAME_FIELD = None
ACCOUNT_EMAIL_VERIFICATION = env.str("FABRIC_EMAIL_VERIFICATION", "mandatory")
ACCOUNT_EMAIL_NOTIFICATIONS = True
ACCOUNT_EMAIL_SUBJECT_PREFIX = ""
ACCOUNT_LOGOUT_REDIRECT_URL = "/"
# Step-up wants something the person knows or has; a code by mail is neither.
ACCOUNT_REAUTHENTICATION_METHODS = {"password", "mfa"}
ACCOUNT_REAUTHENTICATION_TIMEOUT = 300
ACCOUNT_SESSION_REMEMBER = True
ALLAUTH_TRUSTED_PROXY_COUNT = env.int("FABRIC_TRUSTED_PROXIES", 0)
MFA_SUPPORTED_TYPES = ["totp", "webauthn", "recovery_codes"]
MFA_PASSKEY_LOGIN_ENABLED = True
MFA_TOTP_ISSUER = "Fabric Market"
MFA_ALLOW_UNVERIFIED_EMAIL = ACCOUNT_EMAIL_VERIFICATION != "mandatory"
DEFAULT_FROM_EMAIL = env.str("FABRIC_MAIL_FROM", "Fabric Market <no-reply@localhost>")
EMAIL_BACKEND = env.str("FABRIC_MAIL_BACKEND", "django.core.mail.backends.console.EmailBackend")
EMAIL_FILE_PATH = env.str("FABRIC_MAIL_FOLDER", "") or None
EMAIL_HOST = env.str("FABRIC_MAIL_HOST", "localhost")
EMAIL_PORT = env.int("FABRIC_MAIL_PORT", 25)
EMAIL_HOST_USER = env.str("FABRIC_MAIL_USER", "")
EMAIL_HOST_PASSWORD = env.str("FABRIC_MAIL_PASSWORD", "")
EMAIL_USE_TLS = env.bool("FABRIC_MAIL_TLS", default=False)
EMAIL_TIMEOUT = 10

SESSION_ENGINE = "django.contrib.sessions.backends.db"
SESSION_COOKIE_AGE = 14 * 24 * 3600
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"
CSRF_COOKIE_HTTPONLY = True
CSRF_FAILURE_VIEW = "fabric.web.errors.show_csrf_failure"
CSRF_COOKIE_SAMESITE = "Lax"
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
SECURE_REDIRECT_EXEMPT = [r"^healthz/", r"^metrics$"]
X_FRAME_OPTIONS = "DENY"
DATA_UPLOAD_MAX_MEMORY_SIZE = 2 * 1024 * 1024

# A form may lead to the payment page, nowhere else; browsers hold redirects of a form to this.
_PAYMENT_PAGES = [FABRIC_PAYMENT_STANDIN_URL or "https://checkout.stripe.com"]
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [NONE],
        "script-src": [SELF],
        "style-src": [SELF],
        "img-src": [SELF, "data:"],
        "font-src": [SELF],
        "connect-src": [SELF],
        "manifest-src": [SELF],
        "form-action": [SELF, *_PAYMENT_PAGES],
        "frame-ancestors": [NONE],
        "base-uri": [NONE],
    }
}
# Whether operators must have a second factor to enter the back office.
FABRIC_OPERATOR_MFA = env.bool("FABRIC_OPERATOR_MFA", default=True)
UNFOLD = build_unfold()
FABRIC_OPERATOR_POLICY = {
    "script-src": [SELF, UNSAFE_EVAL, UNSAFE_INLINE],
    "style-src": [SELF, UNSAFE_INLINE],
}

REST_FRAMEWORK = {
    # Nobody by default: `ApiView` and `AgentView` each say how a caller is known.
    "DEFAULT_AUTHENTICATION_CLASSES": [],
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.IsAuthenticated"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["rest_framework.parsers.JSONParser"],
    "DEFAULT_SCHEMA_CLASS": "fabric.accounts.api.schema.FabricSchema",
    "EXCEPTION_HANDLER": "fabric.accounts.api.problems.handle_exception",
    "NUM_PROXIES": env.int("FABRIC_TRUSTED_PROXIES", 0),
    "STRICT_JSON": True,
}
# Policy name → (requests, seconds).
FABRIC_RATE_LIMITS = {"default": (600, 60), "anonymous": (120, 60)}
SPECTACULAR_SETTINGS = {
    "TITLE": "Fabric Market API",
    "VERSION": "2026-11-30",
    "DESCRIPTION": "Buy, provide and settle accelerator time.",
    "OAS_VERSION": "3.1.1",
    "SCHEMA_PATH_PREFIX": r"/api/v1",
    "SERVE_INCLUDE_SCHEMA": False,
    "COMPONENT_SPLIT_REQUEST": True,
    "SWAGGER_UI_DIST": "SIDECAR",
    "SORT_OPERATIONS": True,
    # Choices stand where they are used; shared names for them would clash between apps.
    "POSTPROCESSING_HOOKS": [],
}

LANGUAGE_CODE = "en"
TIME_ZONE = "UTC"
USE_I18N = False
USE_TZ = True
STATIC_URL = "/static/"
STATIC_ROOT = env.path("FABRIC_STATIC_ROOT", BASE_DIR / "staticfiles")
WHITENOISE_KEEP_ONLY_HASHED_FILES = True
WHITENOISE_SKIP_COMPRESS_EXTENSIONS = ("map", "woff2", "png", "jpg", "gif", "ico")
STATICFILES_DIRS = [BASE_DIR / "static"]
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "fabric.web.staticfiles.StaticStorage"},
}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
LOGGING = build_logging(
    level=env.str("FABRIC_LOG_LEVEL", "INFO"), json=env.bool("FABRIC_LOG_JSON", default=True)
)
