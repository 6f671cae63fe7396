"""The control plane's own key: it signs replies, desired states and receipts."""

import base64
from functools import lru_cache

from django.conf import settings

from fabric_protocol.keys import SigningKey


def server_key() -> SigningKey:
    """Return the key whose seed is in `FABRIC_SIGNING_KEY`."""
    return _key_of(settings.FABRIC_SIGNING_KEY)


@lru_cache(maxsize=4)
def _key_of(seed: str) -> SigningKey:
    return SigningKey.from_seed(base64.b64decode(seed, validate=True))
