"""Every object of every app, in the back office: named ones as written, the rest as they are."""

from importlib import import_module

from django.apps import apps

from fabric.backoffice.records import RecordAdmin
from fabric.backoffice.site import operator_site

APPS = ("accounts", "journal", "providers", "listings", "billing", "leases", "workloads")

for module in ("people", "supply", "offers", "use", "money", "journal"):
    import_module(f"fabric.backoffice.{module}")

for label in APPS:
    for model in apps.get_app_config(label).get_models():
        if not operator_site.is_registered(model):
            operator_site.register(model, RecordAdmin)
