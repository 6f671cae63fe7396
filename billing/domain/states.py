"""States of money-bearing objects and the moves between them."""

from fabric.lib.types import Choice


class UsageState(Choice):
    """Whether a metered window's line may still change, is contested, or is booked."""

    PENDING = "pending"
    DISPUTED = "disputed"
    SETTLED = "settled"


class AgreementState(Choice):
    """Whether money may still be reserved under an agreement."""

    OPEN = "open"
    CLOSING = "closing"
    CLOSED = "closed"


class TopUpState(Choice):
    """Where a card payment into a wallet stands."""

    CREATED = "created"
    PAID = "paid"
    EXPIRED = "expired"


class Phase(Choice):
    """What a transfer does to the counters."""

    SINGLE = "single"
    PENDING = "pending"
    POST = "post"
    VOID = "void"


USAGE_MOVES: tuple[tuple[str, str], ...] = (
    (UsageState.PENDING, UsageState.DISPUTED),
    (UsageState.PENDING, UsageState.SETTLED),
    (UsageState.DISPUTED, UsageState.PENDING),
    (UsageState.DISPUTED, UsageState.SETTLED),
)
AGREEMENT_MOVES: tuple[tuple[str, str], ...] = (
    (AgreementState.OPEN, AgreementState.CLOSING),
    (AgreementState.CLOSING, AgreementState.CLOSED),
)
# A payment that arrives after we believed the session expired is still the buyer's money.
TOP_UP_MOVES: tuple[tuple[str, str], ...] = (
    (TopUpState.CREATED, TopUpState.PAID),
    (TopUpState.CREATED, TopUpState.EXPIRED),
    (TopUpState.EXPIRED, TopUpState.PAID),
)
