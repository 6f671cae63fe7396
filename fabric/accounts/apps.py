"""Django's registration of this app."""

from django.apps import AppConfig


class AccountsConfig(AppConfig):
    """The `accounts` app."""

    name = "fabric.accounts"
    label = "accounts"
    default_auto_field = "django.db.models.BigAutoField"
