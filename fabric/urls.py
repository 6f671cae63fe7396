"""The address space: pages, the API for programs, the API for agents, the back office."""

from django.urls import URLPattern, URLResolver, include, path, register_converter

from fabric.api.docs import list_errors, show_error, show_reference
from fabric.backoffice.site import operator_site
from fabric.lib.converters import PublicIdConverter
from fabric.web.health import metrics, show_liveness, show_readiness

register_converter(PublicIdConverter, "pid")

urlpatterns: list[URLPattern | URLResolver] = [
    path("healthz/live/", show_liveness, name="liveness"),
    path("healthz/ready/", show_readiness, name="readiness"),
    path("metrics", metrics, name="metrics"),
    path("api/docs/", show_reference, name="api-docs"),
    path("docs/errors/", list_errors, name="error-list"),
    path("docs/errors/<slug:code>/", show_error, name="error-show"),
    path("api/v1/", include("fabric.api.urls")),
    path("agent/v1/", include("fabric.agent_api.urls")),
    path("webhooks/", include("billing.webhooks.urls")),
    path("operator/", operator_site.urls),
    path("accounts/", include("allauth.urls")),
    path("", include("fabric.web.urls")),
]

handler400 = "fabric.web.errors.show_bad_request"
handler403 = "fabric.web.errors.show_forbidden"
handler404 = "fabric.web.errors.show_not_found"
handler500 = "fabric.web.errors.show_fault"
