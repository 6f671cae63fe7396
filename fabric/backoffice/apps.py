"""The back office as an app: it has pages and no tables of its own."""

from importlib import import_module

from django.apps import AppConfig


class BackofficeConfig(AppConfig):
    """Registers every object of every app once all of them are loaded."""

    name = "fabric.backoffice"
    label = "backoffice"

    def ready(self) -> None:
        """Fill the site."""
        import_module("fabric.backoffice.registry")
