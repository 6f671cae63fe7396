"""Pages of the listings app."""

from django.urls import URLPattern, URLResolver, path

from listings.web.catalogue import show_catalogue
from listings.web.listing import download_revision, show_listing
from listings.web.manage import create_listing, list_own, manage_listing, withdraw_listing

app_name = "listings"
urlpatterns: list[URLPattern | URLResolver] = [
    path("catalogue/", show_catalogue, name="catalogue"),
    path("listings/<pid:listing_id>/", show_listing, name="listing"),
    path("listings/<pid:listing_id>/revisions/<int:number>/", download_revision, name="revision"),
    path("provider/listings/", list_own, name="own"),
    path("provider/listings/new/", create_listing, name="new"),
    path("provider/listings/<pid:listing_id>/", manage_listing, name="manage"),
    path("provider/listings/<pid:listing_id>/withdrawal/", withdraw_listing, name="withdraw"),
]
