"""Django's registration of this app."""

from django.apps import AppConfig


class JournalConfig(AppConfig):
    """The `journal` app."""

    name = "fabric.journal"
    label = "journal"
    default_auto_field = "django.db.models.BigAutoField"
