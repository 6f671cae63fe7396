"""The REST API, version 1: composed from the endpoints of every app."""

from django.urls import URLPattern, URLResolver, include, path

urlpatterns: list[URLPattern | URLResolver] = [
    path("", include("fabric.accounts.api.urls")),
    path("", include("providers.api.urls")),
    path("", include("listings.api.urls")),
    path("", include("billing.api.urls")),
    path("", include("leases.api.urls")),
]
