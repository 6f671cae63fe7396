"""The Django project; it names its Celery application so that every process sends to one broker."""

from fabric.celery import app as celery_app

__all__ = ["celery_app"]
