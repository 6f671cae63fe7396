"""Who calls an endpoint: a bearer key, or a signed-in page of ours with its CSRF token."""

from rest_framework.authentication import BaseAuthentication, SessionAuthentication
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.request import Request

from fabric.accounts.models import ApiKey, User
from fabric.accounts.services.api_keys import looks_like_key, recognise_key
from fabric.lib.clock import utc_now
from fabric.lib.errors import DomainError

_CREDENTIAL_NAMES = frozenset({"api_key", "apikey", "key", "token", "access_token"})


class CredentialsInUrl(DomainError):
    """A key came in the address, where logs, histories and proxies keep it."""

    code = "CREDENTIALS_IN_URL"
    status = 400


def refuse_key_in_url(request: Request) -> None:
    """Raise CredentialsInUrl when the query carries a key, by name or by shape."""
    for name, values in request.query_params.lists():
        if name.lower() in _CREDENTIAL_NAMES or any(looks_like_key(value) for value in values):
            raise CredentialsInUrl(
                "Send the key in the Authorization header, never in the address.",
                suggestion="Revoke this key and make a new one: addresses end up in logs.",
            )


class ApiKeyAuthentication(BaseAuthentication):
    """`Authorization: Bearer fk_…`; `request.auth` becomes the key, `request.user` its maker."""

    def authenticate(self, request: Request) -> tuple[User, ApiKey] | None:
        """Return maker and key; None when no bearer is named, so that a page session may serve."""
        scheme, _, text = request.headers.get("Authorization", "").partition(" ")
        if not scheme:
            return None
        if scheme.lower() != "bearer" or not text.isascii():
            raise AuthenticationFailed("Use the scheme Bearer with an API key.")
        key = recognise_key(text=text.strip(), now=utc_now())
        if key is None or not key.created_by.is_active:
            raise AuthenticationFailed("This API key is unknown, expired or revoked.")
        return key.created_by, key

    def authenticate_header(self, request: Request) -> str:
        """Name the scheme, so that a refusal is 401 and not 403."""
        return 'Bearer realm="fabric"'


class PageSessionAuthentication(SessionAuthentication):
    """The session of a page of ours (charts, parts of pages); writing wants its CSRF token."""
