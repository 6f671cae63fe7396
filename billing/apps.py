"""Django's registration of this app."""

from django.apps import AppConfig


class BillingConfig(AppConfig):
    """The `billing` app."""

    name = "billing"
    label = "billing"
    default_auto_field = "django.db.models.BigAutoField"
