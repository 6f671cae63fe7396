"""What agents call in the listings app, below /agent/v1/."""

from django.urls import URLPattern, URLResolver, path

from listings.agent_api.views import DraftDetail, ListingList

app_name = "listings_agent"
urlpatterns: list[URLPattern | URLResolver] = [
    path("listings/", ListingList.as_view(), name="listings"),
    path("listings/draft/", DraftDetail.as_view(), name="listing-draft"),
]
