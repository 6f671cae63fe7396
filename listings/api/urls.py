"""REST endpoints of the listings app, below /api/v1/."""

from django.urls import URLPattern, URLResolver

app_name = "listings_api"
urlpatterns: list[URLPattern | URLResolver] = []
