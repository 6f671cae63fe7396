"""Providers, their machines, what was measured on them, and who holds which unit until when."""

from typing import ClassVar

from django.contrib.postgres.constraints import ExclusionConstraint
from django.contrib.postgres.fields import (
    ArrayField,
    DateTimeRangeField,
    IntegerRangeField,
    RangeOperators,
)
from django.db import models

from fabric.accounts.models import Organisation, User
from fabric.lib.models import AppendOnlyModel, PublicModel
from providers.domain.challenges import ChallengePurpose, ChallengeState, Verdict
from providers.domain.nodes import NodeState, Pool, Tier


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

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name


class EnrolmentToken(PublicModel):
    """Lets one machine enrol once within an hour; only its hash is kept."""

    PREFIX: ClassVar[str] = "etk"

    provider = models.ForeignKey(
        Provider, on_delete=models.CASCADE, related_name="enrolment_tokens"
    )
    digest = models.BinaryField(max_length=32, unique=True)
    simulated = models.BooleanField(default=False, help_text="Set by an operator only.")
    accepts_unisolated = models.BooleanField(
        default=False, help_text="The provider consents to leases without a container."
    )
    created_by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return f"token of {self.provider}"


class Enrolment(PublicModel):
    """A machine between showing a token and proving that it holds its key."""

    PREFIX: ClassVar[str] = "enr"

    token = models.ForeignKey(EnrolmentToken, on_delete=models.CASCADE, related_name="enrolments")
    public_key = models.BinaryField(max_length=32)
    nonce = models.BinaryField(max_length=32)
    node_name = models.CharField(max_length=80)
    agent_version = models.CharField(max_length=32)
    installed_at = models.DateTimeField(null=True, help_text="As the agent says; starts the clock.")
    created_at = models.DateTimeField()
    completed_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return self.node_name


class Node(PublicModel):
    """A machine with an agent."""

    PREFIX: ClassVar[str] = "nod"

    provider = models.ForeignKey(Provider, on_delete=models.PROTECT, related_name="nodes")
    name = models.CharField(max_length=80)
    state = models.CharField(max_length=16, choices=NodeState.choices(), default=NodeState.ENROLLED)
    simulated = models.BooleanField(default=False)
    accepts_unisolated = models.BooleanField(default=False)
    hardware_class = models.ForeignKey(
        HardwareClass, on_delete=models.PROTECT, null=True, blank=True, related_name="nodes"
    )
    tier = models.CharField(max_length=16, choices=Tier.choices(), blank=True)
    held_back_reasons = models.JSONField(
        default=list, blank=True, help_text="[{code, field, promised, measured, detail, remedy}]"
    )
    isolation = models.CharField(max_length=16, default="none", help_text="none or container.")
    agent_version = models.CharField(max_length=32, blank=True)
    desired_generation = models.PositiveBigIntegerField(default=0)
    installed_at = models.DateTimeField(null=True, blank=True)
    enrolled_at = models.DateTimeField()
    admitted_at = models.DateTimeField(null=True, blank=True)
    listed_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["name"]
        constraints = [
            models.UniqueConstraint(
                fields=["provider", "name"], name="node_names_are_unique_per_provider"
            )
        ]

    def __str__(self) -> str:
        return self.name


class NodeKey(models.Model):
    """An Ed25519 key made on a node."""

    id = models.BigAutoField(primary_key=True)
    node = models.ForeignKey(Node, on_delete=models.CASCADE, related_name="keys")
    key_id = models.CharField(max_length=64, unique=True, help_text="SHA-256 of the key, hex.")
    public_key = models.BinaryField(max_length=32, unique=True)
    active_from = models.DateTimeField()
    revoked_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return self.key_id[:12]


class NodeBeat(models.Model):
    """When a node was last heard; apart from Node, so that a beat touches no index."""

    node = models.OneToOneField(
        Node, on_delete=models.CASCADE, primary_key=True, related_name="beat"
    )
    last_beat_at = models.DateTimeField()
    health = models.JSONField(default=dict)

    def __str__(self) -> str:
        return f"{self.node_id} {self.last_beat_at}"


class HardwareReport(PublicModel, AppendOnlyModel):
    """What a node says it is, signed; the exact bytes are kept."""

    PREFIX: ClassVar[str] = "rpt"

    node = models.ForeignKey(Node, on_delete=models.PROTECT, related_name="reports")
    envelope = models.BinaryField(help_text="The DSSE envelope as received.")
    digest = models.BinaryField(max_length=32, unique=True, help_text="SHA-256 of the payload.")
    body = models.JSONField()
    received_at = models.DateTimeField()

    class Meta(AppendOnlyModel.Meta):
        ordering = ["-received_at"]

    def __str__(self) -> str:
        return self.public_id


class Challenge(PublicModel):
    """A question only the real machine can answer in time, and what came of it."""

    PREFIX: ClassVar[str] = "chl"

    node = models.ForeignKey(Node, on_delete=models.PROTECT, related_name="challenges")
    report = models.ForeignKey(HardwareReport, on_delete=models.PROTECT, related_name="+")
    purpose = models.CharField(max_length=16, choices=ChallengePurpose.choices())
    state = models.CharField(max_length=16, choices=ChallengeState.choices())
    nonce = models.BinaryField(max_length=32)
    parameters = models.JSONField(help_text="Sizes and precision of the work asked for.")
    commitment = models.JSONField(null=True, help_text="Merkle roots, before the opening is known.")
    opening = models.JSONField(null=True, help_text="The vector and rows the server then revealed.")
    envelope = models.BinaryField(null=True, help_text="The signed answer as received.")
    figures = models.JSONField(
        default=dict, help_text="Measured figures with units, by the server."
    )
    verdict = models.CharField(max_length=16, choices=Verdict.choices(), blank=True)
    reasons = models.JSONField(default=list)
    issued_at = models.DateTimeField()
    committed_at = models.DateTimeField(null=True)
    answered_at = models.DateTimeField(null=True)
    judged_at = models.DateTimeField(null=True)
    expires_at = models.DateTimeField()

    class Meta:
        ordering = ["-issued_at"]

    def __str__(self) -> str:
        return self.public_id


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

    class Meta:
        ordering = ["node", "ordinal"]
        constraints = [
            models.UniqueConstraint(
                fields=["node", "ordinal"], name="a_device_has_one_place_in_its_node"
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

    class Meta:
        ordering = ["device", "slots"]

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

    class Meta:
        constraints = [
            ExclusionConstraint(
                name="no_unit_is_held_twice_at_once",
                expressions=[
                    ("device", RangeOperators.EQUAL),
                    ("slots", RangeOperators.OVERLAPS),
                    ("period", RangeOperators.OVERLAPS),
                ],
                condition=models.Q(live=True),
            )
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.holder}"


class DesiredItem(models.Model):
    """One thing a node shall do, written by any upper app and served signed to the agent."""

    id = models.BigAutoField(primary_key=True)
    node = models.ForeignKey(Node, on_delete=models.CASCADE, related_name="desired_items")
    key = models.CharField(max_length=40, help_text="Public id of the lease or challenge.")
    kind = models.CharField(max_length=16, help_text="workload or challenge.")
    generation = models.PositiveBigIntegerField()
    body = models.JSONField()
    updated_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["node", "key"], name="a_node_is_told_each_thing_once")
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.key}"


class Observation(AppendOnlyModel):
    """A fact about a node's conduct; reputation is computed from these and nothing else."""

    id = models.BigAutoField(primary_key=True)
    node = models.ForeignKey(Node, on_delete=models.PROTECT, related_name="observations")
    kind = models.CharField(max_length=40)
    value = models.FloatField()
    weight = models.FloatField(default=1.0)
    counterparty = models.CharField(max_length=40, blank=True, help_text="Control group's id.")
    evidence = models.CharField(max_length=40, help_text="Public id of the record behind it.")
    at = models.DateTimeField()

    class Meta(AppendOnlyModel.Meta):
        ordering = ["-at"]

    def __str__(self) -> str:
        return f"{self.kind} {self.value}"
