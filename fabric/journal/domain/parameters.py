"""The shape of protocol parameters and what makes a set of them acceptable."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass

from fabric.lib.errors import FieldError, InvalidInput

WHOLE_BPS = 10_000


@dataclass(frozen=True)
class CommercialParameters:
    """What a lease's terms pin by hash. Shares are basis points of each line and sum to 10,000."""

    window_seconds: int
    dispute_window_seconds: int
    reserve_ahead_windows: int
    provision_timeout_seconds: int
    provider_bps: int
    verification_bps: int
    network_bps: int
    infrastructure_bps: int
    margin_bps: int
    hold_bps: int

    def body(self) -> dict[str, int]:
        """Return the JSON object whose canonical bytes are hashed."""
        return asdict(self)

    @property
    def fee_shares_bps(self) -> dict[str, int]:
        """Return the floored shares by fee account; the provider takes the rest of a line."""
        return {
            "verification": self.verification_bps,
            "network": self.network_bps,
            "infrastructure": self.infrastructure_bps,
            "margin": self.margin_bps,
        }


@dataclass(frozen=True)
class OperationalParameters:
    """What is always current: how often agents beat and when silence counts."""

    beat_seconds: int
    suspect_after_seconds: int
    dead_after_seconds: int
    challenge_seconds: int

    def body(self) -> dict[str, int]:
        """Return the JSON object whose canonical bytes are hashed."""
        return asdict(self)


def read_commercial(body: Mapping[str, object]) -> CommercialParameters:
    """Return the parameters in `body`, or raise InvalidInput naming each wrong field."""
    errors = _whole_number_errors(body, CommercialParameters.__dataclass_fields__)
    if not errors:
        split = sum(
            int(str(body[name]))
            for name in CommercialParameters.__dataclass_fields__
            if name.endswith("_bps") and name != "hold_bps"
        )
        if split != WHOLE_BPS:
            errors = (
                FieldError(
                    "provider_bps", f"the shares add up to {split}", "shares that sum to 10000"
                ),
            )
    if errors:
        raise InvalidInput("The commercial parameters are not acceptable.", errors=errors)
    return CommercialParameters(**{name: int(str(value)) for name, value in body.items()})


def read_operational(body: Mapping[str, object]) -> OperationalParameters:
    """Return the parameters in `body`, or raise InvalidInput naming each wrong field."""
    errors = _whole_number_errors(body, OperationalParameters.__dataclass_fields__)
    if errors:
        raise InvalidInput("The operational parameters are not acceptable.", errors=errors)
    return OperationalParameters(**{name: int(str(value)) for name, value in body.items()})


def _whole_number_errors(
    body: Mapping[str, object], names: Mapping[str, object]
) -> tuple[FieldError, ...]:
    errors = [
        FieldError(name, "unknown parameter", f"one of {', '.join(names)}")
        for name in body
        if name not in names
    ]
    for name in names:
        value = body.get(name)
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            errors.append(
                FieldError(name, "missing or not a whole number", "a whole number from 0")
            )
    return tuple(errors)
