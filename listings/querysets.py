"""Questions that listings answer; `on_sale` is the public's door and `visible_to` a tenant's."""

from typing import TYPE_CHECKING, Self

from django.db.models import Q

from fabric.accounts.domain.actors import Actor
from listings.domain.states import ListingState
from providers.domain.nodes import NodeState
from providers.querysets import TenantQuerySet

if TYPE_CHECKING:
    from listings.models import Listing  # noqa: F401 - named as text below


class ListingQuerySet(TenantQuerySet["Listing"]):
    """Listings; `visible_to` returns those that an actor manages."""

    def on_sale(self) -> Self:
        """Return the listings anyone may see and order: published, on a machine that is in."""
        return self.filter(
            state=ListingState.PUBLISHED,
            current_revision__isnull=False,
            node__state=NodeState.ADMITTED,
        )

    def readable_by(self, actor: Actor | None) -> Self:
        """Return what is on sale, and whatever else this actor manages."""
        shown = Q(
            state=ListingState.PUBLISHED,
            current_revision__isnull=False,
            node__state=NodeState.ADMITTED,
        )
        if actor is None:
            return self.filter(shown)
        return self.filter(shown | Q(pk__in=self.visible_to(actor).values("pk")))

    def waiting_for_check(self) -> Self:
        """Return the listings whose newest revision has not been compared yet, oldest first."""
        return self.filter(state=ListingState.CHECKING).order_by("created_at", "id")
