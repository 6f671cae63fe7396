"""What agents call in the listings app, below /agent/v1/."""

from django.urls import URLPattern, URLResolver

app_name = "listings_agent"
urlpatterns: list[URLPattern | URLResolver] = []
