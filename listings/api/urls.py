"""REST endpoints of the listings app, below /api/v1/."""

from django.urls import URLPattern, URLResolver, path

from listings.api import views

app_name = "listings_api"
urlpatterns: list[URLPattern | URLResolver] = [
    path("listings/", views.ListingList.as_view(), name="listings"),
    path("listings/<pid:listing_id>/", views.ListingDetail.as_view(), name="listing"),
    path(
        "listings/<pid:listing_id>/withdrawal/",
        views.ListingWithdrawal.as_view(),
        name="listing-withdrawal",
    ),
    path(
        "listings/<pid:listing_id>/revisions/<int:number>/",
        views.RevisionDetail.as_view(),
        name="revision",
    ),
    path("provider/listings/", views.OwnListingList.as_view(), name="own-listings"),
]
