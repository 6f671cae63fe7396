"""What a node shall do: items any app writes, served signed to the agent as one document."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.db import models, transaction

from fabric.lib.secrets import access_token
from fabric_protocol import payloads
from providers.models import DesiredItem, Node


@transaction.atomic
def put_item(
    *, node: Node, key: str, kind: str, body: Mapping[str, Any], now: datetime
) -> DesiredItem:
    """Tell `node` to do `key`, replacing what it was told about it before.

    Raises the node's generation by one, so that its next beat makes it fetch.
    """
    generation = _next_generation(node, now)
    item, created = DesiredItem.objects.get_or_create(
        node=node,
        key=key,
        defaults={
            "kind": kind,
            "body": dict(body),
            "generation": generation,
            "updated_at": now,
        },
    )
    if not created:
        item.kind, item.body = kind, dict(body)
        item.generation, item.updated_at = generation, now
        item.save(update_fields=["kind", "body", "generation", "updated_at"])
    return item


@transaction.atomic
def remove_item(*, node: Node, key: str, now: datetime) -> bool:
    """Stop telling `node` about `key`; return whether it had been told."""
    removed, _ = DesiredItem.objects.filter(node=node, key=key).delete()
    if removed:
        _next_generation(node, now)
    return bool(removed)


def read_document(*, node: Node, now: datetime) -> dict[str, Any]:
    """Return the whole desired state of `node` as the agent reads it, before signing.

    Generation and items come from one statement's view each, the generation first: an item written
    in between is then served early and again with its own generation, never lost.
    """
    generation = Node.objects.values_list("desired_generation", flat=True).get(pk=node.pk)
    items = DesiredItem.objects.filter(node=node).order_by("key")
    return {
        "v": 1,
        "node": node.public_id,
        "generation": generation,
        "issued_at": payloads.write_instant(now),
        "items": [_shown(item) for item in items],
    }


def _shown(item: DesiredItem) -> dict[str, Any]:
    """Return an item as it is served; a workload's token is derived here and stored nowhere."""
    shown = {**item.body, "key": item.key, "kind": item.kind}
    if item.kind == "workload":
        shown["access_token"] = access_token(item.key)
    return shown


def _next_generation(node: Node, now: datetime) -> int:
    """Raise and return the node's generation; the update holds the row until commit."""
    rows = Node.objects.filter(pk=node.pk)
    rows.update(desired_generation=models.F("desired_generation") + 1, desired_changed_at=now)
    node.desired_generation = rows.values_list("desired_generation", flat=True).get()
    return node.desired_generation
