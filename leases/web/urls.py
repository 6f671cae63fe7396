"""Pages of the leases app."""

from django.urls import URLPattern, URLResolver, path

from leases.web import disputes, orders, pages

app_name = "leases"
urlpatterns: list[URLPattern | URLResolver] = [
    path("orders/new/", orders.create_order, name="order-new"),
    path("leases/", pages.list_leases, name="leases"),
    path("leases/<pid:lease_id>/", pages.show_lease, name="lease"),
    path("leases/<pid:lease_id>/chart/", pages.chart_data, name="lease-chart"),
    path("leases/<pid:lease_id>/chart.csv", pages.chart_csv, name="lease-csv"),
    path("leases/<pid:lease_id>/ending/", pages.end_lease, name="lease-end"),
    path("leases/<pid:lease_id>/top-ups/", pages.top_up_lease, name="lease-top-up"),
    path("leases/<pid:lease_id>/access-token/", pages.show_access_token, name="lease-token"),
    path("leases/<pid:lease_id>/disputes/", disputes.open_dispute, name="dispute-open"),
    path("disputes/", disputes.list_disputes, name="disputes"),
    path(
        "disputes/<pid:dispute_id>/withdrawal/", disputes.withdraw_dispute, name="dispute-withdraw"
    ),
]
