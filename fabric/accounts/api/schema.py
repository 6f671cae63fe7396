"""How endpoints describe themselves in `docs/api/openapi.yaml`."""

from typing import Any

from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter
from rest_framework import serializers

_READ_REFUSALS = ("400", "401", "403", "404", "406", "429", "500", "503")
_WRITE_REFUSALS = (
    "400",
    "401",
    "402",
    "403",
    "404",
    "406",
    "409",
    "412",
    "415",
    "422",
    "428",
    "429",
    "500",
    "503",
)


class EnvelopeSignature(serializers.Serializer[Any]):
    """One signature over an envelope's type and payload."""

    keyid = serializers.CharField(help_text="SHA-256 of the public key, in hexadecimal.")
    sig = serializers.CharField(help_text="Ed25519, in base64.")


class EnvelopeOutput(serializers.Serializer[Any]):
    """A DSSE envelope: what was signed, byte for byte, and by which key."""

    payload = serializers.CharField(help_text="The signed document, in base64.")
    payloadType = serializers.CharField(help_text="The media type of the document.")  # noqa: N815 - DSSE
    signatures = EnvelopeSignature(many=True)


class ProblemEntry(serializers.Serializer[Any]):
    """One thing in the request that was refused."""

    pointer = serializers.CharField(help_text="JSON pointer into the body, or a parameter's name.")
    code = serializers.CharField()
    detail = serializers.CharField()
    accepted = serializers.CharField(help_text="What would pass; may be empty.")


class Problem(serializers.Serializer[Any]):
    """Why a request failed (RFC 9457); `code` is stable, `detail` is for people."""

    type = serializers.URLField()
    title = serializers.CharField()
    status = serializers.IntegerField()
    detail = serializers.CharField()
    instance = serializers.CharField()
    code = serializers.CharField()
    errors = ProblemEntry(many=True)  # type: ignore[assignment]
    request_id = serializers.CharField()
    retryable = serializers.BooleanField()
    suggestion = serializers.CharField()
    metadata = serializers.DictField()


class FabricSchema(AutoSchema):
    """Adds what every operation shares, so that no view repeats it."""

    def get_override_parameters(self) -> list[Any]:
        """Add headers and `validate_only` where the view takes them."""
        parameters: list[Any] = list(super().get_override_parameters())
        if self.method != "GET":
            required = getattr(self.view, "idempotency", "") == "required" and self.method == "POST"
            parameters.append(
                OpenApiParameter(
                    "Idempotency-Key",
                    {"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[!-~]+$"},
                    OpenApiParameter.HEADER,
                    required=required,
                    description="A fresh UUID; the same one when the request is repeated.",
                )
            )
            if getattr(self.view, "allows_validate_only", False):
                parameters.append(
                    OpenApiParameter(
                        "validate_only",
                        OpenApiTypes.BOOL,
                        OpenApiParameter.QUERY,
                        description="Answer as if it were done, and change nothing.",
                    )
                )
        return parameters

    def get_description(self) -> str:  # type: ignore[override]
        """Name the scope and the right below the operation's own words."""
        own = super().get_description() or ""
        scope = getattr(self.view, "scopes", {}).get(self.method.lower())
        return f"{own}\n\nScope: `{scope}`.".strip() if scope else own

    def _get_response_bodies(self, direction: Any = "response") -> Any:
        bodies = super()._get_response_bodies(direction)
        component = self.resolve_serializer(Problem(), direction)
        refusals = _READ_REFUSALS if self.method == "GET" else _WRITE_REFUSALS
        for status in refusals:
            bodies.setdefault(
                status,
                {
                    "content": {"application/problem+json": {"schema": component.ref}},
                    "description": "A problem; `code` says which.",
                },
            )
        if self.method == "GET":
            bodies.setdefault("304", {"description": "Unchanged since `If-None-Match`."})
        return bodies


class ApiKeyScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    """A bearer key."""

    target_class = "fabric.accounts.api.authentication.ApiKeyAuthentication"
    name = "apiKey"

    def get_security_definition(self, auto_schema: AutoSchema) -> dict[str, Any]:
        """Describe the header."""
        return {"type": "http", "scheme": "bearer", "bearerFormat": "fk_live_… or fk_test_…"}


class PageSessionScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    """A signed-in page; not offered to programs."""

    target_class = "fabric.accounts.api.authentication.PageSessionAuthentication"
    name = "pageSession"

    def get_security_definition(self, auto_schema: AutoSchema) -> dict[str, Any]:
        """Describe the cookie."""
        return {"type": "apiKey", "in": "cookie", "name": "sessionid"}
