"""Django's registration of this app."""

from django.apps import AppConfig


class ListingsConfig(AppConfig):
    """The `listings` app."""

    name = "listings"
    label = "listings"
    default_auto_field = "django.db.models.BigAutoField"
