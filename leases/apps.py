"""Django's registration of this app."""

from django.apps import AppConfig


class LeasesConfig(AppConfig):
    """The `leases` app."""

    name = "leases"
    label = "leases"
    default_auto_field = "django.db.models.BigAutoField"
