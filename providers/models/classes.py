"""Reference models of accelerators and what their measurements must look like."""

from django.contrib.postgres.fields import ArrayField
from django.db import models

from providers.domain.nodes import Tier


class HardwareClass(models.Model):
    """A reference model of accelerator and the ranges its measurements must fall into."""

    slug = models.SlugField(primary_key=True, max_length=60)
    name = models.CharField(max_length=80)
    vendor = models.CharField(max_length=40)
    kind = models.CharField(max_length=8, choices=[("gpu", "gpu"), ("cpu", "cpu")])
    architecture = models.CharField(max_length=40, blank=True)
    form_factor = models.CharField(max_length=16, blank=True)
    memory_mib = models.PositiveIntegerField(null=True, help_text="Nominal; null for a host CPU.")
    pci_device_ids = ArrayField(models.CharField(max_length=9), default=list)
    tier = models.CharField(max_length=16, choices=Tier.choices())
    bands = models.JSONField(
        default=dict,
        help_text="figure → {low, high, unit, source, sample_size}; both sides are judged.",
    )
    synthetic = models.BooleanField(default=False, help_text="Bands were declared, not measured.")
    source = models.TextField(blank=True)

    class Meta:
        ordering = ["slug"]
        verbose_name_plural = "hardware classes"

    def __str__(self) -> str:
        return self.slug
