"""Opening what a node sealed, with refusals that name what is wrong."""

from typing import Any

from fabric.lib.errors import FieldError, InvalidInput
from fabric_protocol import canonical, dsse

MAX_BYTES = 128 * 1024
MAX_DEPTH = 8
MAX_ANSWER_BYTES = 8 * 1024 * 1024  # Opened rows of the largest product, twice in base64.
ANSWER_DEPTH = 12


class EnvelopeRefused(InvalidInput):
    """The envelope is not one this node signed over strict JSON; `errors` says how."""

    code = "ENVELOPE_REFUSED"


def open_envelope(
    envelope: bytes,
    *,
    payload_type: str,
    public_key: bytes,
    max_bytes: int = MAX_BYTES,
    max_depth: int = MAX_DEPTH,
) -> tuple[dict[str, Any], bytes]:
    """Return the JSON object a node sealed and its exact bytes, or raise EnvelopeRefused."""
    try:
        payload = dsse.open(envelope, payload_type, public_key, max_bytes)
        return canonical.loads_object(payload, max_bytes, max_depth), payload
    except (dsse.BadEnvelope, canonical.BadDocument) as error:
        raise EnvelopeRefused(
            f"The envelope is refused: {error}.",
            errors=(FieldError("envelope", str(error), f"a sealed {payload_type}", error.code),),
        ) from error
