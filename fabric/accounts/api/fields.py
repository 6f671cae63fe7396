"""Fields that inputs and outputs of every app share."""

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from fabric.lib.money import MAX_MICROS


@extend_schema_field({"type": "string", "pattern": "^[0-9]{1,19}$", "examples": ["2400000"]})
class MicrosField(serializers.Field[int, str, str, Any]):
    """An amount in micro-units as a string of digits, since JSON numbers lose large integers."""

    default_error_messages = {
        "micros": "Not a whole number of micro-units written as a string of digits.",
        "too_large": "Larger than any amount can be.",
    }

    def to_internal_value(self, data: Any) -> int:
        """Read digits only: no sign, no exponent, no NaN; at most a bigint."""
        if not isinstance(data, str) or not (data.isascii() and data.isdigit() and len(data) < 20):
            self.fail("micros")
        value = int(data)
        if value > MAX_MICROS:
            self.fail("too_large")
        return value

    def to_representation(self, value: int) -> str:
        """Write the integer as text."""
        return str(value)
