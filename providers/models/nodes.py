"""Machines with an agent: their state, keys, beats, and what they shall do."""

from typing import ClassVar

from django.db import models

from fabric.lib.models import AppendOnlyModel, PublicModel
from providers.domain.nodes import NodeState, Tier
from providers.models.classes import HardwareClass
from providers.models.organisations import Provider
from providers.querysets import NodeQuerySet


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
