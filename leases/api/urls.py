"""REST endpoints of the leases app, below /api/v1/."""

from django.urls import URLPattern, URLResolver, path

from leases.api import disputes, views

app_name = "leases_api"
urlpatterns: list[URLPattern | URLResolver] = [
    path("orders/", views.OrderList.as_view(), name="orders"),
    path("orders/<pid:order_id>/", views.OrderDetail.as_view(), name="order"),
    path("leases/", views.LeaseList.as_view(), name="leases"),
    path("leases/<pid:lease_id>/", views.LeaseDetail.as_view(), name="lease"),
    path("leases/<pid:lease_id>/ending/", views.LeaseEnding.as_view(), name="lease-ending"),
    path("leases/<pid:lease_id>/top-ups/", views.LeaseTopUpList.as_view(), name="lease-top-ups"),
    path(
        "leases/<pid:lease_id>/access-token/",
        views.LeaseAccessToken.as_view(),
        name="lease-access-token",
    ),
    path(
        "leases/<pid:lease_id>/readings/", views.LeaseReadingList.as_view(), name="lease-readings"
    ),
    path("leases/<pid:lease_id>/batches/", views.LeaseBatchList.as_view(), name="lease-batches"),
    path(
        "leases/<pid:lease_id>/witness-readings/",
        views.LeaseWitnessList.as_view(),
        name="lease-witness-readings",
    ),
    path("leases/<pid:lease_id>/lines/", views.LeaseLineList.as_view(), name="lease-lines"),
    path("leases/<pid:lease_id>/events/", views.LeaseEventList.as_view(), name="lease-events"),
    path("readings/<pid:reading_id>/", views.ReadingDetail.as_view(), name="reading"),
    path("batches/<pid:batch_id>/envelope/", views.BatchEnvelope.as_view(), name="batch-envelope"),
    path("disputes/", disputes.DisputeList.as_view(), name="disputes"),
    path("disputes/<pid:dispute_id>/", disputes.DisputeDetail.as_view(), name="dispute"),
    path(
        "disputes/<pid:dispute_id>/withdrawal/",
        disputes.DisputeWithdrawal.as_view(),
        name="dispute-withdrawal",
    ),
    path(
        "disputes/<pid:dispute_id>/ruling/",
        disputes.DisputeRuling.as_view(),
        name="dispute-ruling",
    ),
]
