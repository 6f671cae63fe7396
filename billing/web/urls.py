"""Pages of the billing app."""

from django.urls import URLPattern, URLResolver, path

from billing.web import earnings, topups, wallet

app_name = "billing"
urlpatterns: list[URLPattern | URLResolver] = [
    path("billing/", wallet.show_wallet, name="wallet"),
    path("billing/lines/<int:transfer_id>/", wallet.show_line, name="line"),
    path("billing/usage/<pid:usage_record_id>/", wallet.show_usage, name="usage"),
    path("billing/top-ups/new/", topups.create_top_up, name="top-up-new"),
    path("billing/top-ups/<pid:top_up_id>/", topups.show_top_up, name="top-up"),
    path("provider/earnings/", earnings.show_earnings, name="earnings"),
]
