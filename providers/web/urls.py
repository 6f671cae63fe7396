"""Pages of the providers app."""

from django.urls import URLPattern, URLResolver, path

from providers.web import views

app_name = "providers"
urlpatterns: list[URLPattern | URLResolver] = [
    path("provider/nodes/", views.list_nodes, name="nodes"),
    path("provider/nodes/<pid:node_id>/", views.show_node, name="node"),
    path("provider/nodes/<pid:node_id>/challenges/", views.retest, name="retest"),
    path("provider/nodes/<pid:node_id>/retirement/", views.retire, name="retire"),
    path("provider/nodes/<pid:node_id>/key-revocation/", views.revoke, name="revoke-keys"),
    path("provider/enrol/", views.enrol, name="enrol"),
    path(
        "provider/enrolment-tokens/<pid:token_id>/revocation/",
        views.withdraw_token,
        name="withdraw-token",
    ),
    path("provider/profile/", views.edit_profile, name="profile"),
]
