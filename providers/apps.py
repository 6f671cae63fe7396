"""Django's registration of this app."""

from django.apps import AppConfig


class ProvidersConfig(AppConfig):
    """The `providers` app."""

    name = "providers"
    label = "providers"
    default_auto_field = "django.db.models.BigAutoField"
