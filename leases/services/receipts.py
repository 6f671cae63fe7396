"""What the exchange signs back for every batch it received, accepted or not."""

import base64
from dataclasses import dataclass
from typing import Any

from fabric.lib.signing import server_key
from fabric_protocol import canonical
from leases.models import Batch, Stream

DOMAIN = b"fabric-receipt-v1\n"


@dataclass(frozen=True)
class Receipt:
    """A signed answer to a batch; `created` is False for bytes that were receipted before."""

    body: dict[str, Any]
    created: bool


def make_receipt(*, batch: Batch, stream: Stream, lease: str, created: bool) -> Receipt:
    """Return the receipt of a stored batch.

    The signature covers everything but itself and `next`, which says where the stream stands now
    and so where a new epoch begins. Ed25519 is deterministic: the same facts give the same bytes.
    """
    key = server_key()
    signed: dict[str, Any] = {
        "v": 1,
        "lease": lease,
        "batch": batch.public_id,
        "digest": bytes(batch.digest).hex(),
        "state": str(batch.state),
        "reason": batch.reason,
        "in_place": batch.in_place,
        "epoch": batch.epoch,
        "seq": batch.seq,
        "received_at": batch.received_at.isoformat(),
        "key_id": key.key_id,
    }
    signature = key.sign(DOMAIN + canonical.dumps(signed))
    head = None if stream.head is None else bytes(stream.head).hex()
    return Receipt(
        body={
            **signed,
            "signature": base64.b64encode(signature).decode(),
            "next": {
                "epoch": stream.epoch,
                "seq": stream.next_seq,
                "head": head,
                "state": str(stream.state),
            },
        },
        created=created,
    )
