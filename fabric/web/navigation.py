"""The rail: which pages a person is offered, by what their organisation does."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Item:
    """One entry of the rail; `count` says how many things wait behind it."""

    label: str
    href: str
    icon: str
    count: int = 0
    current: bool = False


@dataclass(frozen=True)
class Standing:
    """What decides the rail: who looks, and what is open in their organisation."""

    signed_in: bool = False
    buys: bool = False
    provides: bool = False
    operates: bool = False
    open_leases: int = 0
    open_disputes: int = 0
    leases_provided: int = 0
    disputes_provided: int = 0
    nodes_held_back: int = 0


def build_rail(path: str, standing: Standing) -> list[list[Item]]:
    """Return groups of entries for a path with its query.

    Below `/provider/`, and on pages asked for the provider's side, a provider's work comes first.
    """
    providing = standing.provides and (path.startswith("/provider/") or "side=provider" in path)
    groups = [_provider_work(standing)] if providing else [_buyer_work(standing)]
    groups.append(_other_doors(standing, providing=providing))
    return [_mark(group, path) for group in groups if group]


def _buyer_work(standing: Standing) -> list[Item]:
    items = [Item("Catalogue", "/catalogue/", "grid")]
    if standing.signed_in and standing.buys:
        items += [
            Item("Leases", "/leases/", "lease", standing.open_leases),
            Item("Disputes", "/disputes/", "scale", standing.open_disputes),
            Item("Billing", "/billing/", "bill"),
        ]
    return items


def _provider_work(standing: Standing) -> list[Item]:
    return [
        Item("Overview", "/provider/", "bell", standing.nodes_held_back),
        Item("Nodes", "/provider/nodes/", "chip"),
        Item("Listings", "/provider/listings/", "grid"),
        Item("Leases", "/leases/?side=provider", "lease", standing.leases_provided),
        Item("Earnings", "/provider/earnings/", "earn"),
        Item("Disputes", "/disputes/?side=provider", "scale", standing.disputes_provided),
    ]


def _other_doors(standing: Standing, *, providing: bool) -> list[Item]:
    if not standing.signed_in:
        return [
            Item("Sign in", "/accounts/login/", "key"),
            Item("Sign up", "/accounts/signup/", "out"),
        ]
    items = [Item("Buy", "/catalogue/", "grid")] if providing else []
    if not providing:
        items.append(Item("Provide", "/provider/", "chip", standing.nodes_held_back))
    items.append(Item("Settings", "/settings/organisation/", "gear"))
    if standing.operates:
        items.append(Item("Operate", "/operator/", "operator"))
    return items


def _mark(items: list[Item], path: str) -> list[Item]:
    """Mark the entry whose address is the longest start of the path."""
    fitting = [item.href for item in items if _covers(item.href, path)]
    best = max(fitting, key=len, default="")
    return [
        Item(item.label, item.href, item.icon, item.count, current=item.href == best)
        for item in items
    ]


_AREAS = {
    "/catalogue/": ("/catalogue/", "/listings/"),
    "/leases/": ("/leases/", "/orders/"),
    "/settings/organisation/": ("/settings/", "/accounts/"),
}


def _covers(href: str, path: str) -> bool:
    return any(path.startswith(area) for area in _AREAS.get(href, (href,)))
