"""Every page of the product, and as whom it is looked at."""

from dataclasses import dataclass

from tests.world import World


@dataclass(frozen=True)
class Stop:
    """A page on the tour: its name, its path, the person who sees it and its status."""

    name: str
    path: str
    person: str = ""
    status: int = 200


def plan_tour(world: World) -> list[Stop]:
    """Return every page for a visitor, a buyer, a provider and an operator."""
    return [
        Stop("home", "/"),
        Stop("search", "/search/?q=nothing"),
        Stop("sign-in", "/accounts/login/"),
        Stop("sign-up", "/accounts/signup/"),
        Stop("not-found", "/no/such/page/", status=404),
        Stop("dashboard", "/", "alice"),
        Stop("operator-desk", "/operator/", "olga"),
        Stop("operator-trial-balance", "/operator/billing/account/trial-balance/", "olga"),
        Stop("operator-people", "/operator/accounts/user/", "olga"),
        Stop("operator-node", "/operator/providers/hardwareclass/host-cpu/change/", "olga"),
    ]
