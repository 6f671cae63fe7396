"""REST endpoints of the leases app, below /api/v1/."""

from django.urls import URLPattern, URLResolver

app_name = "leases_api"
urlpatterns: list[URLPattern | URLResolver] = []
