"""Listing files: drafted from what the node has shown, finished by a person, sent as a sealed record."""

from pathlib import Path
from typing import Any

import yaml

from fabric_agent.client import ControlPlane
from fabric_agent.state import StateFolder
from fabric_agent.yaml_files import load_yaml_file
from fabric_protocol import dsse, payloads

_DRAFT_HEAD = """\
# What this node has shown. Lower what you would rather not promise, leave out what you do not
# promise, and send it with: fabric-agent publish FILE
# The price is in micro-units for each hour of one accelerator: 50000 are $0.05.
"""


def fetch_draft(state: StateFolder) -> dict[str, Any]:
    """Return a listing that promises what this node has shown; its price is left to the provider."""
    identity = state.identity()
    plane = ControlPlane(identity.url, key=state.key(), server_key=identity.server_key)
    try:
        return dict(plane.get("listings/draft/").document())
    finally:
        plane.close()


def write_draft(draft: dict[str, Any], *, price_micros: int) -> str:
    """Return a draft as the text of a listing file."""
    price = {
        "amount_micros": price_micros,
        "per_quantity": 3600,
        "meter_unit": "accelerator_second",
    }
    return _DRAFT_HEAD + yaml.safe_dump({**draft, "price": price}, sort_keys=False)


def read_listing(path: Path) -> tuple[str | None, dict[str, Any]]:
    """Return the id of the listing to revise, if any, and the body to publish."""
    document = load_yaml_file(path)
    listing_id = document.pop("listing_id", None)
    return (None if listing_id is None else str(listing_id)), document


def publish_listing(state: StateFolder, path: Path) -> dict[str, Any]:
    """Send a listing file and return the listing as the control plane has it then."""
    listing_id, body = read_listing(path)
    identity, key = state.identity(), state.key()
    envelope = dsse.seal_document(payloads.LISTING, {"listing_id": listing_id, "body": body}, key)
    plane = ControlPlane(identity.url, key=key, server_key=identity.server_key)
    try:
        return plane.post_envelope("listings/", envelope).document()
    finally:
        plane.close()
