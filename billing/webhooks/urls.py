"""Webhook endpoints, below /webhooks/."""

from django.urls import URLPattern, URLResolver, path

from billing.webhooks.views import receive_stripe_event

app_name = "billing_webhooks"
urlpatterns: list[URLPattern | URLResolver] = [path("stripe/", receive_stripe_event, name="stripe")]
