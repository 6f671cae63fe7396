"""What a node may be called."""

import re

from fabric.lib.errors import FieldError, InvalidInput

_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?")


def read_node_name(text: str) -> str:
    """Return a node's name as a host name writes it, or raise InvalidInput."""
    name = text.strip().lower()
    if not _NAME.fullmatch(name):
        raise InvalidInput(
            "The node's name is not acceptable.",
            errors=(
                FieldError(
                    "node_name",
                    "not a host name",
                    "1 to 63 letters, digits, dots and hyphens, such as is-r2-07",
                ),
            ),
        )
    return name
