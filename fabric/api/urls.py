"""The REST API, version 1: composed from the endpoints of every app."""

from django.urls import URLPattern, URLResolver, include, path, re_path
from django.views.decorators.csrf import csrf_exempt

from fabric.api.docs import show_schema, show_unknown

urlpatterns: list[URLPattern | URLResolver] = [
    path("", include("fabric.accounts.api.urls")),
    path("", include("providers.api.urls")),
    path("", include("listings.api.urls")),
    path("", include("billing.api.urls")),
    path("", include("leases.api.urls")),
    path("openapi.yaml", show_schema, name="api-schema"),
    re_path(r"", csrf_exempt(show_unknown)),
]
