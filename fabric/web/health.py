"""What machines ask about this process: alive, ready, and its metrics."""

import ipaddress

import structlog
from django.conf import settings
from django.core.cache import cache
from django.db import DatabaseError, connection
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe
from django_prometheus.exports import ExportToDjangoView
from redis.exceptions import RedisError

log = structlog.get_logger(__name__)


@require_safe
@never_cache
def show_liveness(request: HttpRequest) -> JsonResponse:
    """Say that this process answers; touches nothing else, so a slow database never kills it."""
    return JsonResponse({"status": "alive"})


@require_safe
@never_cache
def show_readiness(request: HttpRequest) -> JsonResponse:
    """Say whether this process can serve: 200, or 503 naming what is missing."""
    parts = {"database": _database_answers(), "redis": _redis_answers()}
    ready = all(parts.values())
    body = {"status": "ready" if ready else "not_ready", "parts": parts}
    return JsonResponse(body, status=200 if ready else 503)


@require_safe
@never_cache
def metrics(request: HttpRequest) -> HttpResponse:
    """Return Prometheus metrics to an operator, or to a scraper on this machine.

    A request that came through a proxy is never taken for a local one, although its peer is.
    """
    if not (_is_operator(request) or _is_local(request)):
        raise Http404
    response: HttpResponse = ExportToDjangoView(request)
    return response


def _is_operator(request: HttpRequest) -> bool:
    return request.user.is_authenticated and request.user.is_staff


def _is_local(request: HttpRequest) -> bool:
    if any(name in request.headers for name in ("X-Forwarded-For", "Forwarded", "Via")):
        return False
    try:
        return ipaddress.ip_address(request.META.get("REMOTE_ADDR", "")).is_loopback
    except ValueError:
        # A server behind a unix socket knows no peer address; only processes of this
        # machine that may open the socket reach it, but a proxy does too.
        return False


def _database_answers() -> bool:
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except DatabaseError:
        log.exception("readiness: the database does not answer")
        return False
    return True


def _redis_answers() -> bool:
    try:
        cache.get("readiness")
    except (RedisError, OSError):
        log.exception("readiness: Redis does not answer", url=settings.REDIS_URL.split("@")[-1])
        return False
    return True
