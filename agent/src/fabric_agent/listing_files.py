"""Listing files: YAML as a person writes it, sent as a sealed record, refusals shown per field."""

from pathlib import Path
from typing import Any

from fabric_agent.client import ControlPlane
from fabric_agent.state import StateFolder
from fabric_agent.yaml_files import load_yaml_file
from fabric_protocol import dsse, payloads


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
