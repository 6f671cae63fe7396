"""How often one caller may ask, counted in Redis over fixed windows."""

import time
from dataclasses import dataclass

import structlog
from django.conf import settings
from django.core.cache import cache
from redis.exceptions import RedisError
from rest_framework.request import Request

from fabric.accounts.models import ApiKey

log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class Standing:
    """Where a caller stands in a window: the policy, what remains, and when it begins anew."""

    policy: str
    quota: int
    window_seconds: int
    remaining: int
    reset_seconds: int

    def headers(self) -> dict[str, str]:
        """Return the advisory headers of every reply."""
        return {
            "RateLimit-Policy": f'"{self.policy}";q={self.quota};w={self.window_seconds}',
            "RateLimit": f'"{self.policy}";r={max(0, self.remaining)};t={self.reset_seconds}',
        }


def count_request(request: Request, *, policy: str) -> Standing | None:
    """Count one request and return the standing, which may be below zero.

    Without Redis nobody is refused: a limit protects the service, it does not guard money.
    """
    quota, window = settings.FABRIC_RATE_LIMITS[policy]
    elapsed = time.time()
    slot, into = int(elapsed // window), int(elapsed % window)
    name = f"limit:{policy}:{_caller(request)}:{slot}"
    try:
        cache.add(name, 0, timeout=window * 2)
        used = cache.incr(name)
    except (RedisError, OSError, ValueError):
        log.warning("rate limits cannot be counted", policy=policy)
        return None
    return Standing(policy, quota, window, quota - used, window - into)


def _caller(request: Request) -> str:
    if isinstance(request.auth, ApiKey):
        return request.auth.public_id
    if request.user.is_authenticated:
        return str(request.user.pk)
    return request.META.get("REMOTE_ADDR") or "unknown"
