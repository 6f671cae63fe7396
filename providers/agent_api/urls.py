"""What agents call in the providers app, below /agent/v1/."""

from django.urls import URLPattern, URLResolver

app_name = "providers_agent"
urlpatterns: list[URLPattern | URLResolver] = []
