"""The API for agents, version 1: composed from the endpoints of every app."""

from django.urls import URLPattern, URLResolver, include, path

urlpatterns: list[URLPattern | URLResolver] = [
    path("", include("providers.agent_api.urls")),
    path("", include("listings.agent_api.urls")),
    path("", include("leases.agent_api.urls")),
]
