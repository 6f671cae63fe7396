"""The JSON schema of a listing's body, written from the table of its kind."""

from typing import Any

from listings.domain.kinds import KINDS
from listings.domain.kinds.accelerator import ACCELERATOR
from listings.domain.kinds.schema import FieldSpec, Kind, ValueType


def body_schema() -> dict[str, Any]:
    """Return the schema of a body."""
    kind = ACCELERATOR
    return {
        "type": "object",
        "additionalProperties": False,
        "required": [spec.name for spec in kind.statements if spec.required] + ["promise", "price"],
        "properties": {
            "kind": {"type": "string", "enum": list(KINDS), "default": kind.name},
            **{spec.name: _schema_of(spec) for spec in kind.statements},
            "promise": promise_schema(),
            "price": _price_schema(kind),
        },
    }


def promise_schema() -> dict[str, Any]:
    """Return the schema of a promise."""
    fields = ACCELERATOR.fields
    return {
        "type": "object",
        "additionalProperties": False,
        "required": [spec.name for spec in fields if spec.required],
        "properties": {spec.name: _schema_of(spec) for spec in fields},
    }


def _price_schema(kind: Kind) -> dict[str, Any]:
    fields = kind.price.fields
    properties = {spec.name: _schema_of(spec) for spec in fields}
    properties["amount_micros"] = {
        "type": "string",
        "pattern": "^[0-9]{1,11}$",
        "description": f"{fields[0].label}: {fields[0].accepted}, as text.",
    }
    return {
        "type": "object",
        "additionalProperties": False,
        "required": [spec.name for spec in fields],
        "properties": properties,
    }


def _schema_of(spec: FieldSpec) -> dict[str, Any]:
    schema: dict[str, Any] = {"description": f"{spec.label}: {spec.accepted}."}
    match spec.type:
        case ValueType.INTEGER:
            schema |= {"type": "integer", "minimum": spec.low, "maximum": spec.high}
        case ValueType.NUMBER:
            schema |= {"type": "number", "minimum": spec.low, "maximum": spec.high}
        case ValueType.CHOICE:
            schema |= {"type": "string", "enum": list(spec.choices)}
        case ValueType.FLAG:
            schema |= {"type": "boolean"}
        case ValueType.SET:
            schema |= {"type": "array", "items": {"type": "string"}, "uniqueItems": True}
        case ValueType.TEXT:
            schema |= {"type": "string", "minLength": 1, "maxLength": spec.max_length}
            if spec.pattern:
                schema["pattern"] = f"^(?:{spec.pattern})$"
    return schema
