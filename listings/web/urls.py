"""Pages of the listings app."""

from django.urls import URLPattern, URLResolver

app_name = "listings"
urlpatterns: list[URLPattern | URLResolver] = []
