"""REST endpoints of the billing app, below /api/v1/."""

from django.urls import URLPattern, URLResolver

app_name = "billing_api"
urlpatterns: list[URLPattern | URLResolver] = []
