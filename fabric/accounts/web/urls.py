"""Pages of the accounts app: organisation, projects, keys, security."""

from django.urls import URLPattern, URLResolver, path

from fabric.accounts.web import views

app_name = "accounts"
urlpatterns: list[URLPattern | URLResolver] = [
    path("settings/", views.show_settings, name="settings"),
    path("settings/organisation/", views.show_organisation, name="organisation"),
    path("settings/organisation/name/", views.rename_organisation, name="organisation-rename"),
    path("settings/organisation/new/", views.found_organisation, name="organisation-found"),
    path("settings/organisation/active/", views.switch, name="organisation-switch"),
    path("settings/members/<pid:person_id>/role/", views.change_role, name="member-role"),
    path("settings/members/<pid:person_id>/removal/", views.remove_member, name="member-remove"),
    path(
        "settings/invitations/<pid:invitation_id>/withdrawal/",
        views.withdraw_invitation,
        name="invitation-withdraw",
    ),
    path("invitations/<slug:token>/", views.answer_invitation, name="invitation"),
    path("settings/projects/", views.show_projects, name="projects"),
    path("settings/projects/<pid:project_id>/", views.edit_project, name="project"),
    path("settings/keys/", views.show_keys, name="keys"),
    path("settings/keys/<pid:key_id>/revocation/", views.revoke_key, name="key-revoke"),
    path("settings/security/", views.show_security, name="security"),
]
