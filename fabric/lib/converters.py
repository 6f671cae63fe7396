"""Path converters, registered in `fabric.urls`."""

from fabric.lib import ids


class PublicIdConverter:
    """`<pid:lease_id>`: a typed public id; anything else in its place is a 404 without a query."""

    regex = ids.PUBLIC_ID_PATTERN

    def to_python(self, value: str) -> str:
        """Return the id as text; the access function of the app reads it."""
        return value

    def to_url(self, value: str) -> str:
        """Return the id as it stands in the address."""
        return value
