"""Pages of the providers app."""

from django.urls import URLPattern, URLResolver

app_name = "providers"
urlpatterns: list[URLPattern | URLResolver] = []
