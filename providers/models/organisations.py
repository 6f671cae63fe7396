"""Organisations that offer capacity."""

from typing import ClassVar

from django.db import models

from fabric.accounts.models import Organisation
from fabric.lib.models import PublicModel
from providers.domain.nodes import Pool
from providers.querysets import ProviderQuerySet


class Provider(PublicModel):
    """An organisation that offers capacity."""

    PREFIX: ClassVar[str] = "prv"

    organisation = models.OneToOneField(
        Organisation, on_delete=models.PROTECT, related_name="provider"
    )
    name = models.CharField(max_length=80)
    slug = models.SlugField(max_length=60, unique=True)
    country = models.CharField(max_length=2, help_text="ISO 3166-1 alpha-2, as declared.")
    region = models.SlugField(max_length=40, help_text="Such as eu-central, as declared.")
    pool = models.CharField(max_length=16, choices=Pool.choices(), default=Pool.ENTERPRISE)
    facility = models.CharField(
        max_length=80, blank=True, help_text="As declared; decides nothing."
    )
    created_at = models.DateTimeField(auto_now_add=True)

    objects = ProviderQuerySet.as_manager()

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name
