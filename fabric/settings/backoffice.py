"""How the back office looks; its theme is django-unfold."""

from typing import Any

from django.templatetags.static import static
from django.urls import reverse_lazy

# Shades around the product's own ink and measured-green, from light to dark.
_GREENS = {
    "50": "#eef8f5",
    "100": "#d9eee9",
    "200": "#b4ded4",
    "300": "#84c9ba",
    "400": "#5bd0ba",
    "500": "#1f9481",
    "600": "#006258",
    "700": "#00564d",
    "800": "#004a43",
    "900": "#003d37",
    "950": "#00231f",
}
_GREYS = {
    "50": "#f2f5f3",
    "100": "#e8edea",
    "200": "#d2dbd7",
    "300": "#b5c2bd",
    "400": "#a2b2ad",
    "500": "#5f706b",
    "600": "#4a5955",
    "700": "#293634",
    "800": "#1b2725",
    "900": "#121b19",
    "950": "#0b1211",
}


def _entry(title: str, icon: str, name: str) -> dict[str, Any]:
    return {"title": title, "icon": icon, "link": reverse_lazy(f"admin:{name}")}


def _list(title: str, icon: str, app: str, model: str) -> dict[str, Any]:
    return _entry(title, icon, f"{app}_{model}_changelist")


def build_unfold() -> dict[str, Any]:
    """Return unfold's settings: the rail of the back office and our colours."""
    return {
        "SITE_TITLE": "Fabric back office",
        "SITE_HEADER": "Fabric back office",
        "SITE_SYMBOL": "grid_view",
        "SITE_URL": "/",
        "SITE_FAVICONS": [
            {
                "rel": "icon",
                "type": "image/svg+xml",
                "href": lambda _request: static("fabric/icon.svg"),
            }
        ],
        "SHOW_HISTORY": False,
        "SHOW_VIEW_ON_SITE": False,
        "BORDER_RADIUS": "3px",
        "COLORS": {"primary": _GREENS, "base": _GREYS},
        "STYLES": [
            lambda _request: static("fabric/tokens.css"),
            lambda _request: static("fabric/operator.css"),
        ],
        "SIDEBAR": {
            "show_search": True,
            "show_all_applications": False,
            "navigation": [
                {
                    "title": "Decide",
                    "items": [
                        _entry("Desk", "inbox", "index"),
                        _list("Disputes", "balance", "leases", "dispute"),
                        _list("Nodes", "memory", "providers", "node"),
                        _list("Stripe inbox", "move_to_inbox", "billing", "stripeevent"),
                    ],
                },
                {
                    "title": "Ledger",
                    "items": [
                        _entry("Trial balance", "functions", "trial_balance"),
                        _list("Accounts", "account_balance_wallet", "billing", "account"),
                        _list("Transfers", "swap_horiz", "billing", "transfer"),
                        _list("Entries", "list", "billing", "entry"),
                        _list("Usage records", "receipt_long", "billing", "usagerecord"),
                        _list("Top-ups", "add_card", "billing", "topup"),
                    ],
                },
                {
                    "title": "Market",
                    "items": [
                        _list("Listings", "storefront", "listings", "listing"),
                        _list("Orders", "shopping_cart", "leases", "order"),
                        _list("Leases", "contract", "leases", "lease"),
                        _list("Readings", "speed", "leases", "reading"),
                        _list("Streams", "timeline", "leases", "stream"),
                        _list("Batches", "inventory_2", "leases", "batch"),
                    ],
                },
                {
                    "title": "Supply",
                    "items": [
                        _list("Providers", "factory", "providers", "provider"),
                        _list("Challenges", "quiz", "providers", "challenge"),
                        _list("Reports", "description", "providers", "hardwarereport"),
                        _list("Classes", "category", "providers", "hardwareclass"),
                    ],
                },
                {
                    "title": "People and rules",
                    "items": [
                        _list("People", "person", "accounts", "user"),
                        _list("Organisations", "groups", "accounts", "organisation"),
                        _list("Keys", "key", "accounts", "apikey"),
                        _list("Parameters", "rule", "journal", "protocolparameters"),
                        _list("Events", "event_note", "journal", "event"),
                        _list("Audit", "policy", "journal", "auditentry"),
                    ],
                },
            ],
        },
    }
