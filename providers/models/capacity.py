"""What can be rented of a node, and who holds it until when."""

from typing import ClassVar

from django.contrib.postgres.constraints import ExclusionConstraint
from django.contrib.postgres.fields import DateTimeRangeField, IntegerRangeField, RangeOperators
from django.db import models

from fabric.lib.models import PublicModel
from providers.models.classes import HardwareClass
from providers.models.nodes import Node
from providers.querysets import DeviceQuerySet, HoldQuerySet, UnitQuerySet


class Device(PublicModel):
    """A physical accelerator."""

    PREFIX: ClassVar[str] = "dev"

    node = models.ForeignKey(Node, on_delete=models.PROTECT, related_name="devices")
    ordinal = models.PositiveSmallIntegerField()
    identity = models.CharField(
        max_length=128, unique=True, help_text="UUID or serial, fleet-wide."
    )
    hardware_class = models.ForeignKey(
        HardwareClass, on_delete=models.PROTECT, related_name="devices"
    )
    slots = models.PositiveSmallIntegerField(default=1)
    memory_mib = models.PositiveIntegerField()
    present = models.BooleanField(default=True)

    objects = DeviceQuerySet.as_manager()

    class Meta:
        ordering = ["node", "ordinal"]
        constraints = [
            models.UniqueConstraint(
                fields=["node", "ordinal"],
                condition=models.Q(present=True),
                name="a_device_has_one_place_in_its_node",
            )
        ]

    def __str__(self) -> str:
        return f"{self.node_id} #{self.ordinal}"


class Unit(PublicModel):
    """What is rented: all slots of a device, or some."""

    PREFIX: ClassVar[str] = "unt"

    device = models.ForeignKey(Device, on_delete=models.PROTECT, related_name="units")
    kind = models.CharField(max_length=8, choices=[("whole", "whole"), ("slice", "slice")])
    slots = IntegerRangeField(help_text="Half-open range of the device's slots.")
    memory_mib = models.PositiveIntegerField(help_text="As the tenant can allocate it, promised.")
    memory_mib_measured = models.PositiveIntegerField(null=True, blank=True)
    active = models.BooleanField(default=True)

    objects = UnitQuerySet.as_manager()

    class Meta:
        ordering = ["device", "slots"]
        constraints = [
            models.UniqueConstraint(fields=["device", "slots"], name="a_unit_is_described_once"),
            models.CheckConstraint(
                condition=models.Q(slots__isempty=False, slots__startswith__gte=0),
                name="a_unit_has_at_least_one_slot",
            ),
        ]

    def __str__(self) -> str:
        return self.public_id


class Hold(PublicModel):
    """Slots of a device taken for a time; two live holds never overlap."""

    PREFIX: ClassVar[str] = "hld"

    class Kind(models.TextChoices):
        LEASE = "lease"
        RESERVATION = "reservation"
        MAINTENANCE = "maintenance"
        FENCE = "fence"
        POOL = "pool"

    device = models.ForeignKey(Device, on_delete=models.PROTECT, related_name="holds")
    slots = IntegerRangeField()
    period = DateTimeRangeField()
    kind = models.CharField(max_length=16, choices=Kind)
    holder = models.CharField(max_length=40, db_index=True, help_text="Public id of who holds it.")
    live = models.BooleanField(default=True)

    objects = HoldQuerySet.as_manager()

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=models.Q(period__upper_inf=False, period__lower_inf=False),
                name="every_hold_begins_and_ends",
            ),
            ExclusionConstraint(
                name="no_unit_is_held_twice_at_once",
                expressions=[
                    ("device", RangeOperators.EQUAL),
                    ("slots", RangeOperators.OVERLAPS),
                    ("period", RangeOperators.OVERLAPS),
                ],
                condition=models.Q(live=True),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.holder}"
