"""REST endpoints of the billing app, below /api/v1/."""

from django.urls import URLPattern, URLResolver, path

from billing.api import views

app_name = "billing_api"
urlpatterns: list[URLPattern | URLResolver] = [
    path("wallet/", views.WalletDetail.as_view(), name="wallet"),
    path("top-ups/", views.TopUpList.as_view(), name="top-ups"),
    path("top-ups/<pid:top_up_id>/", views.TopUpDetail.as_view(), name="top-up"),
    path("ledger-entries/", views.EntryList.as_view(), name="ledger-entries"),
    path(
        "agreements/<pid:agreement_id>/ledger-lines/",
        views.AgreementLedgerLines.as_view(),
        name="agreement-ledger-lines",
    ),
    path("usage-records/", views.UsageRecordList.as_view(), name="usage-records"),
    path(
        "usage-records/<pid:usage_record_id>/",
        views.UsageRecordDetail.as_view(),
        name="usage-record",
    ),
    path("earnings/", views.EarningsDetail.as_view(), name="earnings"),
]
