"""Every page of the product, and as whom it is looked at."""

from dataclasses import dataclass

from tests.browser.stage import Stage
from tests.world import World


@dataclass(frozen=True)
class Stop:
    """A page on the tour: its name, its path, the person who sees it and its status."""

    name: str
    path: str
    person: str = ""
    status: int = 200


def plan_tour(world: World, stage: Stage) -> list[Stop]:
    """Return every page for a visitor, a buyer, a provider and an operator."""
    lease, listing = stage.lease.public_id, stage.listing.public_id
    usage = stage.reading.usage_record
    assert usage is not None
    return [
        Stop("home", "/"),
        Stop("search", "/search/?q=nothing"),
        Stop("sign-in", "/accounts/login/"),
        Stop("sign-up", "/accounts/signup/"),
        Stop("not-found", "/no/such/page/", status=404),
        Stop("catalogue", "/catalogue/"),
        Stop("catalogue-empty", "/catalogue/?min_memory_mib=9000000"),
        Stop("listing", f"/listings/{listing}/", "alice"),
        Stop("order", f"/orders/new/?listing={listing}", "alice"),
        Stop("order-own", f"/orders/new/?listing={listing}", "carol"),
        Stop("leases", "/leases/", "alice"),
        Stop("leases-over", "/leases/?show=over", "alice"),
        Stop("leases-provided", "/leases/?side=provider", "carol"),
        Stop("lease", f"/leases/{lease}/", "alice"),
        Stop("lease-field", f"/leases/{lease}/?field=memory_bandwidth_gb_s", "alice"),
        Stop("lease-provided", f"/leases/{lease}/", "carol"),
        Stop("disputes", "/disputes/", "alice"),
        Stop("disputes-none", "/disputes/", "dave"),
        Stop("dashboard", "/", "alice"),
        Stop("dashboard-first", "/", "dave"),
        Stop("leases-none", "/leases/", "dave"),
        Stop("billing", "/billing/", "alice"),
        Stop("top-up", "/billing/top-ups/new/", "alice"),
        Stop("usage", f"/billing/usage/{usage.public_id}/", "alice"),
        Stop("earnings", "/provider/earnings/", "carol"),
        Stop("billing-first", "/billing/", "dave"),
        Stop("earnings-first", "/provider/earnings/", "dave"),
        Stop("organisation", "/settings/organisation/", "alice"),
        Stop("projects", "/settings/projects/", "alice"),
        Stop("keys", "/settings/keys/", "alice"),
        Stop("security", "/settings/security/", "alice"),
        Stop("provider", "/provider/", "carol"),
        Stop("provider-first", "/provider/", "alice"),
        Stop("provider-nodes", "/provider/nodes/", "carol"),
        Stop("provider-node", f"/provider/nodes/{stage.node.public_id}/", "carol"),
        Stop("provider-enrol", "/provider/enrol/", "carol"),
        Stop("provider-profile", "/provider/profile/", "carol"),
        Stop("provider-listings", "/provider/listings/", "carol"),
        Stop("provider-listing", f"/provider/listings/{listing}/", "carol"),
        Stop("provider-listing-new", "/provider/listings/new/", "carol"),
        Stop("operator-desk", "/operator/", "olga"),
        Stop("operator-trial-balance", "/operator/billing/account/trial-balance/", "olga"),
        Stop("operator-people", "/operator/accounts/user/", "olga"),
        Stop("operator-class", "/operator/providers/hardwareclass/host-cpu/change/", "olga"),
        Stop("operator-lease", f"/operator/leases/lease/{stage.lease.pk}/change/", "olga"),
        Stop("operator-ruling", f"/operator/leases/dispute/{stage.dispute.pk}/rule/", "olga"),
    ]
