"""What an API key may be used for; a key holds some of these, a page session all of them."""

from typing import Final

SCOPES: Final[dict[str, str]] = {
    "catalogue:read": "Search listings and read their promises.",
    "provider:read": "Read your nodes, units, challenges and earnings.",
    "provider:write": "Enrol nodes and publish listings.",
    "orders:read": "Read your orders.",
    "orders:write": "Place orders, which moves money from the balance to escrow.",
    "leases:read": "Read your leases, readings and conformity.",
    "leases:write": "Access, extend, top up and end leases.",
    "billing:read": "Read the balance, escrows and ledger lines.",
    "billing:write": "Start top-ups.",
    "disputes:write": "Open and withdraw disputes.",
    "account:read": "Read the organisation, its members, invitations, projects and keys.",
    "account:write": "Change the organisation, its members, invitations, projects and keys.",
}
