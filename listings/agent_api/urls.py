"""What agents call in the listings app, below /agent/v1/."""

from django.urls import URLPattern, URLResolver, path

from listings.agent_api.views import ListingList

app_name = "listings_agent"
urlpatterns: list[URLPattern | URLResolver] = [
    path("listings/", ListingList.as_view(), name="listings"),
]
