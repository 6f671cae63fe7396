"""Inputs and outputs of the provider endpoints."""

from typing import Any

from rest_framework import serializers

from fabric.accounts.api.pages import PageQuery
from providers.domain.challenges import ChallengePurpose, ChallengeState, Verdict
from providers.domain.liveness import Liveness
from providers.domain.nodes import NodeState, Pool, Tier
from providers.models import (
    Challenge,
    EnrolmentToken,
    HardwareClass,
    HardwareReport,
    Node,
    Provider,
    Unit,
)


class NewProviderInput(serializers.Serializer[Any]):
    """Where an organisation's capacity stands, as it declares; it keeps its name."""

    country = serializers.RegexField(r"^[A-Za-z]{2}$", help_text="ISO 3166-1 alpha-2.")
    region = serializers.RegexField(r"^[a-z][a-z0-9]*(-[a-z0-9]+)*$", max_length=40)
    pool = serializers.ChoiceField(choices=Pool.choices(), default=Pool.ENTERPRISE.value)
    facility = serializers.CharField(max_length=80, allow_blank=True, default="")


class ProviderInput(NewProviderInput):
    """What a provider declares about itself."""

    name = serializers.CharField(max_length=80)


class ProviderOutput(serializers.Serializer[Any]):
    """A provider, as declared."""

    id = serializers.CharField()
    name = serializers.CharField()
    country = serializers.CharField()
    region = serializers.CharField()
    pool = serializers.ChoiceField(choices=Pool.choices())
    facility = serializers.CharField()
    created_at = serializers.DateTimeField()


class HeldBackReasonOutput(serializers.Serializer[Any]):
    """Why a node is held back."""

    code = serializers.CharField()
    field = serializers.CharField()
    promised = serializers.JSONField()
    measured = serializers.JSONField()
    detail = serializers.CharField()
    remedy = serializers.CharField()


class NodeQuery(PageQuery):
    """Filters of the list of nodes."""

    state = serializers.ChoiceField(choices=NodeState.choices(), required=False)
    tier = serializers.ChoiceField(choices=Tier.choices(), required=False)
    hardware_class = serializers.SlugField(required=False)


class NodeOutput(serializers.Serializer[Any]):
    """A node and how it stands."""

    id = serializers.CharField()
    name = serializers.CharField()
    state = serializers.ChoiceField(choices=NodeState.choices())
    health = serializers.ChoiceField(choices=Liveness.choices())
    last_beat_at = serializers.DateTimeField(allow_null=True)
    tier = serializers.ChoiceField(choices=[("", "none yet"), *Tier.choices()])
    hardware_class = serializers.CharField(allow_blank=True)
    held_back_reasons = HeldBackReasonOutput(many=True)
    simulated = serializers.BooleanField()
    isolation = serializers.ChoiceField(choices=["none", "container"])
    accepts_unisolated = serializers.BooleanField()
    agent_version = serializers.CharField()
    installed_at = serializers.DateTimeField(allow_null=True)
    enrolled_at = serializers.DateTimeField()
    admitted_at = serializers.DateTimeField(allow_null=True)
    listed_at = serializers.DateTimeField(allow_null=True)


class FactOutput(serializers.Serializer[Any]):
    """One thing shown about a node, with the record behind it."""

    field = serializers.CharField()
    value = serializers.JSONField(allow_null=True)
    unit = serializers.CharField(allow_blank=True)
    method = serializers.CharField(allow_blank=True)
    at = serializers.CharField()
    source = serializers.CharField()  # type: ignore[assignment]  # the name of the field


class NodeUnitOutput(serializers.Serializer[Any]):
    """A unit and whether it is free."""

    id = serializers.CharField()
    device = serializers.IntegerField()
    device_id = serializers.CharField()
    kind = serializers.ChoiceField(choices=["whole", "slice"])
    slots = serializers.ListField(child=serializers.IntegerField(), min_length=2, max_length=2)
    memory_mib = serializers.IntegerField()
    memory_mib_measured = serializers.IntegerField(allow_null=True)
    free = serializers.BooleanField()


class StepOutput(serializers.Serializer[Any]):
    """One step of the path to metered capacity."""

    name = serializers.CharField()
    state = serializers.ChoiceField(choices=["done", "now", "next"])
    at = serializers.DateTimeField(allow_null=True)
    elapsed_seconds = serializers.FloatField(allow_null=True)


class NodeDetailOutput(NodeOutput):
    """A node with what has been shown about it."""

    path = StepOutput(many=True)
    facts = FactOutput(many=True)
    units = NodeUnitOutput(many=True)


class KeyRevocationInput(serializers.Serializer[Any]):
    """Why a node's keys end."""

    reason = serializers.CharField(max_length=200)


class KeyRevocationOutput(serializers.Serializer[Any]):
    """How many keys ended."""

    revoked = serializers.IntegerField()


class EnrolmentTokenInput(serializers.Serializer[Any]):
    """A token to be made."""

    accepts_unisolated = serializers.BooleanField(default=False)


class EnrolmentTokenOutput(serializers.Serializer[Any]):
    """A token without its text."""

    id = serializers.CharField()
    state = serializers.ChoiceField(choices=["usable", "used", "revoked", "expired"])
    accepts_unisolated = serializers.BooleanField()
    simulated = serializers.BooleanField()
    created_by = serializers.CharField()
    created_at = serializers.DateTimeField()
    expires_at = serializers.DateTimeField()
    used_at = serializers.DateTimeField(allow_null=True)
    revoked_at = serializers.DateTimeField(allow_null=True)


class NewEnrolmentTokenOutput(EnrolmentTokenOutput):
    """A token just made, with its text, which is shown this once."""

    token = serializers.CharField()


class ChallengeOutput(serializers.Serializer[Any]):
    """A challenge, what it measured, and the verdict."""

    id = serializers.CharField()
    node = serializers.CharField()
    report = serializers.CharField()
    purpose = serializers.ChoiceField(choices=ChallengePurpose.choices())
    state = serializers.ChoiceField(choices=ChallengeState.choices())
    verdict = serializers.ChoiceField(choices=[("", "not judged"), *Verdict.choices()])
    figures = serializers.DictField(child=serializers.DictField())
    reasons = HeldBackReasonOutput(many=True)
    parameters = serializers.DictField()
    issued_at = serializers.DateTimeField()
    started_at = serializers.DateTimeField(allow_null=True)
    committed_at = serializers.DateTimeField(allow_null=True)
    answered_at = serializers.DateTimeField(allow_null=True)
    judged_at = serializers.DateTimeField(allow_null=True)
    expires_at = serializers.DateTimeField()


class ReportOutput(serializers.Serializer[Any]):
    """A hardware report as the node signed it."""

    id = serializers.CharField()
    node = serializers.CharField()
    digest = serializers.CharField()
    received_at = serializers.DateTimeField()


class ReportDetailOutput(ReportOutput):
    """A hardware report with its body."""

    body = serializers.DictField()


class HardwareClassOutput(serializers.Serializer[Any]):
    """A reference class, its tier, and the ranges its figures are held against."""

    slug = serializers.CharField()
    name = serializers.CharField()
    vendor = serializers.CharField()
    kind = serializers.ChoiceField(choices=["gpu", "cpu"])
    architecture = serializers.CharField(allow_blank=True)
    form_factor = serializers.CharField(allow_blank=True)
    memory_mib = serializers.IntegerField(allow_null=True)
    tier = serializers.ChoiceField(choices=Tier.choices())
    bands = serializers.DictField(child=serializers.ListField(child=serializers.DictField()))
    synthetic = serializers.BooleanField()
    source = serializers.CharField()  # type: ignore[assignment]  # the name of the field


def show_provider(provider: Provider) -> dict[str, Any]:
    """Return a provider as `ProviderOutput`."""
    return {
        "id": provider.public_id,
        "name": provider.name,
        "country": provider.country,
        "region": provider.region,
        "pool": provider.pool,
        "facility": provider.facility,
        "created_at": provider.created_at,
    }


def show_node(node: Node, *, health: Liveness) -> dict[str, Any]:
    """Return a node as `NodeOutput`; costs a query unless its beat is loaded."""
    beat = getattr(node, "beat", None)
    return {
        "id": node.public_id,
        "name": node.name,
        "state": node.state,
        "health": health.value,
        "last_beat_at": beat.last_beat_at if beat else None,
        "tier": node.tier,
        "hardware_class": node.hardware_class_id or "",
        "held_back_reasons": node.held_back_reasons,
        "simulated": node.simulated,
        "isolation": node.isolation,
        "accepts_unisolated": node.accepts_unisolated,
        "agent_version": node.agent_version,
        "installed_at": node.installed_at,
        "enrolled_at": node.enrolled_at,
        "admitted_at": node.admitted_at,
        "listed_at": node.listed_at,
    }


def show_unit(unit: Unit, *, free: bool) -> dict[str, Any]:
    """Return a unit as `NodeUnitOutput`."""
    return {
        "id": unit.public_id,
        "device": unit.device.ordinal,
        "device_id": unit.device.public_id,
        "kind": unit.kind,
        "slots": [unit.slots.lower, unit.slots.upper],
        "memory_mib": unit.memory_mib,
        "memory_mib_measured": unit.memory_mib_measured,
        "free": free,
    }


def show_token(token: EnrolmentToken, *, state: str) -> dict[str, Any]:
    """Return a token as `EnrolmentTokenOutput`; its text is not there to be shown."""
    return {
        "id": token.public_id,
        "state": state,
        "accepts_unisolated": token.accepts_unisolated,
        "simulated": token.simulated,
        "created_by": token.created_by,
        "created_at": token.created_at,
        "expires_at": token.expires_at,
        "used_at": token.used_at,
        "revoked_at": token.revoked_at,
    }


def show_challenge(challenge: Challenge) -> dict[str, Any]:
    """Return a challenge as `ChallengeOutput`; its nonce stays between server and agent."""
    return {
        "id": challenge.public_id,
        "node": challenge.node.public_id,
        "report": challenge.report.public_id,
        "purpose": challenge.purpose,
        "state": challenge.state,
        "verdict": challenge.verdict,
        "figures": challenge.figures,
        "reasons": challenge.reasons,
        "parameters": challenge.parameters,
        "issued_at": challenge.issued_at,
        "started_at": challenge.started_at,
        "committed_at": challenge.committed_at,
        "answered_at": challenge.answered_at,
        "judged_at": challenge.judged_at,
        "expires_at": challenge.expires_at,
    }


def show_report(report: HardwareReport) -> dict[str, Any]:
    """Return a report as `ReportOutput`."""
    return {
        "id": report.public_id,
        "node": report.node.public_id,
        "digest": bytes(report.digest).hex(),
        "received_at": report.received_at,
    }


def show_class(row: HardwareClass) -> dict[str, Any]:
    """Return a class as `HardwareClassOutput`."""
    return {
        "slug": row.slug,
        "name": row.name,
        "vendor": row.vendor,
        "kind": row.kind,
        "architecture": row.architecture,
        "form_factor": row.form_factor,
        "memory_mib": row.memory_mib,
        "tier": row.tier,
        "bands": row.bands,
        "synthetic": row.synthetic,
        "source": row.source,
    }
