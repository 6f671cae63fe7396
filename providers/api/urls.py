"""REST endpoints of the providers app, below /api/v1/."""

from django.urls import URLPattern, URLResolver

app_name = "providers_api"
urlpatterns: list[URLPattern | URLResolver] = []
