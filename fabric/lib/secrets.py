"""Secrets that are derived and never stored."""

import hashlib
import hmac

from django.conf import settings


def derive_secret(purpose: str, subject: str) -> str:
    """Return a secret for one purpose and one subject, such as a lease's access token.

    It follows from the server's own secret, so no table, backup or disk of a provider holds it,
    and both apps that need it derive the same one.
    """
    message = f"fabric-derived-v1\n{purpose}\n{subject}".encode()
    return hmac.new(settings.SECRET_KEY.encode(), message, hashlib.sha256).hexdigest()


def access_token(subject: str) -> str:
    """Return the bearer token of the workload that `subject` (a lease's public id) names."""
    return derive_secret("workload-access", subject)
