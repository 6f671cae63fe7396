"""What stands in the way of an order: every refusal, and the rules that raise them."""

from dataclasses import asdict, dataclass

from django.conf import settings

from billing.domain.amounts import check_amount
from fabric.accounts.models import Project
from fabric.lib.errors import DomainError, FieldError, InvalidInput
from fabric.lib.money import format_amount
from fabric_protocol import canonical
from listings.domain.bodies import price_micros
from listings.domain.states import ListingState
from listings.models import Listing, Revision
from listings.selectors import promise_of
from providers.domain.nodes import NodeState, Tier

SECONDS_PER_HOUR = 3600


class ListingNotOrderable(DomainError):
    """The listing is not offered now, or its node takes nothing new."""

    code = "LISTING_NOT_ORDERABLE"


class OwnListing(DomainError):
    """An organisation does not buy from itself: no money would move, only figures."""

    code = "OWN_LISTING"


class PriceAboveCap(DomainError):
    """The price is above what the buyer accepted: it rose after the page was shown."""

    code = "PRICE_ABOVE_CAP"


class ConsentMissing(DomainError):
    """The order lacks a consent that this listing needs."""

    code = "CONSENT_MISSING"


class UnisolatedRefused(DomainError):
    """Nothing runs without a container here, by rule of the exchange or of the provider."""

    code = "UNISOLATED_REFUSED"


@dataclass(frozen=True)
class Wish:
    """What is asked for; its hash tells a repeat from another request under the same key."""

    project: str
    listing: str
    unit_count: int
    budget_micros: int
    accepts_interruption: bool
    accepts_unisolated: bool
    price_cap_micros_per_hour: int
    max_seconds: int

    def digest(self) -> bytes:
        """Return the SHA-256 of the wish in its one canonical form."""
        return canonical.digest({name: str(value) for name, value in asdict(self).items()})


def check_figures(wish: Wish, key: str) -> None:
    """Raise InvalidInput naming each figure of an order that cannot be."""
    errors: list[FieldError] = []
    for name, low, high in (
        ("unit_count", 1, 1024),
        ("max_seconds", 1, 366 * 24 * SECONDS_PER_HOUR),
    ):
        value = getattr(wish, name)
        if type(value) is not int or not low <= value <= high:
            errors.append(
                FieldError(name, "out of range", f"a whole number from {low:,} to {high:,}")
            )
    for name in ("budget_micros", "price_cap_micros_per_hour"):
        try:
            check_amount(getattr(wish, name), field=name)
        except InvalidInput as refused:
            errors.extend(refused.errors)
    errors.extend(
        FieldError(name, "not a consent", "true or false")
        for name in ("accepts_interruption", "accepts_unisolated")
        if type(getattr(wish, name)) is not bool
    )
    if not key or len(key) > 255 or not key.isprintable():
        errors.append(FieldError("key", "missing or too long", "1 to 255 printable characters"))
    if errors:
        raise InvalidInput("The order cannot be read.", errors=tuple(errors))


def require_orderable(*, project: Project, listing: Listing, wish: Wish) -> Revision:
    """Return the revision that is ordered, or raise the refusal that stands in the way."""
    revision, node = listing.current_revision, listing.node
    if listing.state != ListingState.PUBLISHED or revision is None:
        raise ListingNotOrderable("This listing is not offered now.")
    if node.state != NodeState.ADMITTED:
        raise ListingNotOrderable("The node behind this listing takes no new leases now.")
    if listing.provider.organisation_id == project.organisation_id:
        raise OwnListing("Your organisation offers this listing; it cannot buy from itself.")
    if node.simulated and not settings.FABRIC_ALLOW_SIMULATED:
        raise ListingNotOrderable("Simulated nodes take no orders in this deployment.")
    _require_consents(listing=listing, wish=wish)
    price = price_micros(revision.body)
    if price > wish.price_cap_micros_per_hour:
        raise PriceAboveCap(
            f"The price is {format_amount(price)} per accelerator-hour now, above the "
            f"{format_amount(wish.price_cap_micros_per_hour)} you accepted.",
            suggestion="Look at the listing again and accept the new price, or choose another.",
            metadata={"price_micros_per_hour": str(price)},
        )
    longest = int(revision.body["max_hours"]) * SECONDS_PER_HOUR
    if wish.max_seconds > longest:
        raise InvalidInput(
            "The term is longer than the listing allows.",
            errors=(FieldError("max_seconds", "too long", f"at most {longest:,}"),),
        )
    offered = int(promise_of(revision)["unit_count"])
    if wish.unit_count > offered:
        raise InvalidInput(
            "The listing has fewer units.",
            errors=(FieldError("unit_count", "too many", f"at most {offered}"),),
        )
    return revision


def _require_consents(*, listing: Listing, wish: Wish) -> None:
    node = listing.node
    if node.tier == Tier.COMMUNITY and not wish.accepts_interruption:
        raise ConsentMissing(
            "Community nodes may be interrupted; an on-demand order needs your acceptance.",
            errors=(FieldError("accepts_interruption", "not accepted", "true"),),
        )
    if node.isolation != "none":
        return
    if not settings.FABRIC_ALLOW_UNISOLATED or not node.accepts_unisolated:
        raise UnisolatedRefused("This node has no container runtime, and nothing runs there.")
    if not wish.accepts_unisolated:
        raise ConsentMissing(
            "This node runs workloads without a container; that needs your acceptance.",
            errors=(FieldError("accepts_unisolated", "not accepted", "true"),),
        )
