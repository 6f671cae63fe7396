"""Adopting and reading protocol parameters."""

import hashlib
from collections.abc import Mapping
from datetime import datetime

import rfc8785

from fabric.journal.domain.parameters import (
    CommercialParameters,
    OperationalParameters,
    read_commercial,
    read_operational,
)
from fabric.journal.models import ProtocolParameters

Kind = ProtocolParameters.Kind


def adopt_parameters(
    *,
    kind: str,
    body: Mapping[str, int],
    proposed_by: str,
    approved_by: str,
    effective_at: datetime,
) -> ProtocolParameters:
    """Append the next version of a kind of parameters; adopting the current text again is a no-op.

    Proposer and approver are public ids of two different operators.
    """
    checked = read_commercial(body) if kind == Kind.COMMERCIAL else read_operational(body)
    canonical = rfc8785.dumps(checked.body())
    digest = hashlib.sha256(canonical).digest()
    same = ProtocolParameters.objects.filter(digest=digest).first()
    if same is not None:
        return same
    newest = ProtocolParameters.objects.filter(kind=kind).order_by("-version").first()
    return ProtocolParameters.objects.create(
        kind=kind,
        version=newest.version + 1 if newest else 1,
        body=checked.body(),
        canonical=canonical,
        digest=digest,
        effective_at=effective_at,
        proposed_by=proposed_by,
        approved_by=approved_by,
    )


def get_commercial(*, now: datetime) -> tuple[ProtocolParameters, CommercialParameters]:
    """Return the commercial parameters in force: the row (for its digest) and its values."""
    row = _in_force(Kind.COMMERCIAL, now)
    return row, read_commercial(row.body)


def get_operational(*, now: datetime) -> OperationalParameters:
    """Return the operational parameters in force."""
    return read_operational(_in_force(Kind.OPERATIONAL, now).body)


def get_pinned_commercial(*, digest: bytes) -> CommercialParameters:
    """Return the commercial parameters that terms pinned by hash."""
    return read_commercial(ProtocolParameters.objects.get(digest=digest).body)


def _in_force(kind: str, now: datetime) -> ProtocolParameters:
    return ProtocolParameters.objects.filter(kind=kind, effective_at__lte=now).latest("version")
