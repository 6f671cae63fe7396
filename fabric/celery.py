"""The Celery application and the schedule of its sweeps."""

import os

from celery import Celery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "fabric.settings.local")
app = Celery("fabric")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
