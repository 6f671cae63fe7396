"""Pages of the leases app."""

from django.urls import URLPattern, URLResolver

app_name = "leases"
urlpatterns: list[URLPattern | URLResolver] = []
