"""What agents call in the leases app, below /agent/v1/."""

from django.urls import URLPattern, URLResolver

app_name = "leases_agent"
urlpatterns: list[URLPattern | URLResolver] = []
