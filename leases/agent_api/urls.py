"""What agents call in the leases app, below /agent/v1/."""

from django.urls import URLPattern, URLResolver, path

from leases.agent_api.views import BatchList

app_name = "leases_agent"
urlpatterns: list[URLPattern | URLResolver] = [
    path("streams/<pid:lease_id>/batches/", BatchList.as_view(), name="batches"),
]
