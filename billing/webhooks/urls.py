"""What the payment provider calls, below /webhooks/."""

from django.urls import URLPattern, URLResolver

app_name = "billing_webhooks"
urlpatterns: list[URLPattern | URLResolver] = []
