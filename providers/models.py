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

from fabric.accounts.models import Organisation
from fabric.lib.models import AppendOnlyModel, PublicModel
from providers.domain.challenges import (
    OPEN_CHALLENGE_STATES,
    ChallengePurpose,
    ChallengeState,
    Verdict,
)
from providers.domain.nodes import NodeState, Pool, Tier
from providers.querysets import (
    ChallengeQuerySet,
    DeviceQuerySet,
    EnrolmentTokenQuerySet,
    HoldQuerySet,
    NodeQuerySet,
    ProviderQuerySet,
    ReportQuerySet,
    UnitQuerySet,
)


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

    objects = ProviderQuerySet.as_manager()

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
    created_by = models.CharField(max_length=80, help_text="Public id of a person or key.")
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)

    objects = EnrolmentTokenQuerySet.as_manager()

    class Meta:
        ordering = ["-created_at"]

    def __str__(self) -> str:
        return f"token of {self.provider}"


class Enrolment(PublicModel):
    """A machine between showing a token and proving that it holds its key."""

    PREFIX: ClassVar[str] = "enr"

    token = models.OneToOneField(EnrolmentToken, on_delete=models.CASCADE, related_name="enrolment")
    public_key = models.BinaryField(max_length=32)
    nonce = models.BinaryField(max_length=32)
    node_name = models.CharField(max_length=80)
    agent_version = models.CharField(max_length=32)
    installed_at = models.DateTimeField(null=True, help_text="As the agent says; starts the clock.")
    created_at = models.DateTimeField()
    completed_at = models.DateTimeField(null=True, blank=True)
    node = models.OneToOneField(
        "Node", on_delete=models.PROTECT, null=True, blank=True, related_name="enrolment"
    )

    class Meta:
        ordering = ["-created_at"]

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
    desired_changed_at = models.DateTimeField(null=True, blank=True)
    installed_at = models.DateTimeField(null=True, blank=True)
    enrolled_at = models.DateTimeField()
    admitted_at = models.DateTimeField(null=True, blank=True)
    listed_at = models.DateTimeField(null=True, blank=True)

    objects = NodeQuerySet.as_manager()

    class Meta:
        ordering = ["name", "id"]
        constraints = [
            models.UniqueConstraint(
                fields=["provider", "name"],
                condition=~models.Q(state=NodeState.RETIRED),
                name="node_names_are_unique_per_provider",
            ),
            models.CheckConstraint(
                condition=models.Q(state__in=[state.value for state in NodeState]),
                name="a_node_is_in_a_known_state",
            ),
            models.CheckConstraint(
                condition=~models.Q(state=NodeState.ADMITTED)
                | ~models.Q(tier="") & models.Q(hardware_class__isnull=False),
                name="an_admitted_node_has_a_tier_and_a_class",
            ),
            models.CheckConstraint(
                condition=~models.Q(state=NodeState.HELD_BACK) | ~models.Q(held_back_reasons=[]),
                name="a_node_is_held_back_for_a_reason",
            ),
        ]

    def __str__(self) -> str:
        return self.name


class NodeTransition(AppendOnlyModel):
    """A move of a node from one state to the next: when, by whom and why."""

    id = models.BigAutoField(primary_key=True)
    node = models.ForeignKey(Node, on_delete=models.PROTECT, related_name="transitions")
    from_state = models.CharField(max_length=16, blank=True)
    to_state = models.CharField(max_length=16, choices=NodeState.choices())
    actor = models.CharField(max_length=80)
    reason = models.CharField(max_length=200, blank=True)
    evidence = models.CharField(max_length=40, blank=True, help_text="Public id of the record.")
    at = models.DateTimeField()

    class Meta(AppendOnlyModel.Meta):
        ordering = ["id"]

    def __str__(self) -> str:
        return f"{self.from_state} → {self.to_state}"


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
    """When a node was last heard.

    Apart from Node and without an index on anything but the key, so that a beat rewrites one row
    in place on its page (the table's fillfactor leaves the room) and touches no index.
    """

    node = models.OneToOneField(
        Node, on_delete=models.CASCADE, primary_key=True, related_name="beat"
    )
    last_beat_at = models.DateTimeField()
    seq = models.PositiveBigIntegerField(default=0, help_text="The agent's own count of beats.")
    health = models.JSONField(default=dict)
    workloads = models.JSONField(
        default=list, help_text="As the agent says: [{lease, state, access, detail}]."
    )

    def __str__(self) -> str:
        return f"{self.node_id} {self.last_beat_at}"


class HardwareReport(PublicModel, AppendOnlyModel):
    """What a node says it is, signed; the exact bytes are kept."""

    PREFIX: ClassVar[str] = "rpt"

    node = models.ForeignKey(Node, on_delete=models.PROTECT, related_name="reports")
    envelope = models.BinaryField(help_text="The DSSE envelope as received.")
    digest = models.BinaryField(max_length=32, help_text="SHA-256 of the payload.")
    body = models.JSONField()
    received_at = models.DateTimeField()

    objects = ReportQuerySet.as_manager()

    class Meta(AppendOnlyModel.Meta):
        ordering = ["-received_at", "-id"]
        constraints = [
            models.UniqueConstraint(fields=["node", "digest"], name="a_report_is_stored_once")
        ]

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
    answer_key_id = models.CharField(max_length=64, blank=True, help_text="Key of the answer.")
    figures = models.JSONField(
        default=dict, help_text="Measured figures with units, by the server."
    )
    verdict = models.CharField(max_length=16, choices=Verdict.choices(), blank=True)
    reasons = models.JSONField(default=list)
    issued_at = models.DateTimeField()
    started_at = models.DateTimeField(null=True, help_text="When the nonce was told.")
    committed_at = models.DateTimeField(null=True)
    answered_at = models.DateTimeField(null=True)
    judged_at = models.DateTimeField(null=True)
    expires_at = models.DateTimeField()

    objects = ChallengeQuerySet.as_manager()

    class Meta:
        ordering = ["-issued_at", "-id"]
        constraints = [
            models.UniqueConstraint(
                fields=["node"],
                condition=models.Q(state__in=[state.value for state in OPEN_CHALLENGE_STATES]),
                name="a_node_answers_one_challenge_at_a_time",
            ),
            models.CheckConstraint(
                condition=models.Q(state=ChallengeState.JUDGED, judged_at__isnull=False)
                & ~models.Q(verdict="")
                | ~models.Q(state=ChallengeState.JUDGED) & models.Q(verdict=""),
                name="a_challenge_has_a_verdict_exactly_when_judged",
            ),
        ]

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
