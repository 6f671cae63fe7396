"""Pages of the accounts app: organisation, projects, keys, security."""

from django.urls import URLPattern, URLResolver

app_name = "accounts"
urlpatterns: list[URLPattern | URLResolver] = []
