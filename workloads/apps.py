"""Django's registration of this app."""

from django.apps import AppConfig


class WorkloadsConfig(AppConfig):
    """The `workloads` app."""

    name = "workloads"
    label = "workloads"
    default_auto_field = "django.db.models.BigAutoField"
