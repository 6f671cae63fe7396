"""REST endpoints of the providers app, below /api/v1/."""

from django.urls import URLPattern, URLResolver, path

from providers.api import views

app_name = "providers_api"
urlpatterns: list[URLPattern | URLResolver] = [
    path("classes/", views.HardwareClassList.as_view(), name="classes"),
    path("provider/", views.ProviderDetail.as_view(), name="provider"),
    path("nodes/", views.NodeList.as_view(), name="nodes"),
    path("nodes/<pid:node_id>/", views.NodeDetail.as_view(), name="node"),
    path(
        "nodes/<pid:node_id>/challenges/",
        views.NodeChallengeList.as_view(),
        name="node-challenges",
    ),
    path("nodes/<pid:node_id>/reports/", views.NodeReportList.as_view(), name="node-reports"),
    path("nodes/<pid:node_id>/retirement/", views.NodeRetirement.as_view(), name="node-retirement"),
    path(
        "nodes/<pid:node_id>/key-revocation/",
        views.NodeKeyRevocation.as_view(),
        name="node-key-revocation",
    ),
    path("challenges/<pid:challenge_id>/", views.ChallengeDetail.as_view(), name="challenge"),
    path(
        "challenges/<pid:challenge_id>/envelope/",
        views.ChallengeEnvelope.as_view(),
        name="challenge-envelope",
    ),
    path("reports/<pid:report_id>/", views.ReportDetail.as_view(), name="report"),
    path(
        "reports/<pid:report_id>/envelope/", views.ReportEnvelope.as_view(), name="report-envelope"
    ),
    path("enrolment-tokens/", views.EnrolmentTokenList.as_view(), name="enrolment-tokens"),
    path(
        "enrolment-tokens/<pid:token_id>/revocation/",
        views.EnrolmentTokenRevocation.as_view(),
        name="enrolment-token-revocation",
    ),
]
