"""REST endpoints of the accounts app, below /api/v1/."""

from django.urls import URLPattern, URLResolver, path

from fabric.accounts.api import views

app_name = "accounts_api"
urlpatterns: list[URLPattern | URLResolver] = [
    path("organisation/", views.OrganisationDetail.as_view(), name="organisation"),
    path("members/", views.MemberList.as_view(), name="members"),
    path("members/<pid:person_id>/", views.MemberDetail.as_view(), name="member"),
    path("members/<pid:person_id>/removal/", views.MemberRemoval.as_view(), name="member-removal"),
    path("invitations/", views.InvitationList.as_view(), name="invitations"),
    path("invitations/<pid:invitation_id>/", views.InvitationDetail.as_view(), name="invitation"),
    path(
        "invitations/<pid:invitation_id>/withdrawal/",
        views.InvitationWithdrawal.as_view(),
        name="invitation-withdrawal",
    ),
    path("projects/", views.ProjectList.as_view(), name="projects"),
    path("projects/<pid:project_id>/", views.ProjectDetail.as_view(), name="project"),
    path("api-keys/", views.ApiKeyList.as_view(), name="api-keys"),
    path(
        "api-keys/<pid:key_id>/revocation/",
        views.ApiKeyRevocation.as_view(),
        name="api-key-revocation",
    ),
]
