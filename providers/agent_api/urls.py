"""What agents call in the providers app, below /agent/v1/."""

from django.urls import URLPattern, URLResolver, path

from providers.agent_api.enrolments import EnrolmentProof, EnrolmentStart
from providers.agent_api.evidence import (
    ChallengeAnswer,
    ChallengeCommitment,
    ChallengeStart,
    ReportList,
)
from providers.agent_api.states import BeatList, DesiredStateDetail, NodeSelf

app_name = "providers_agent"
urlpatterns: list[URLPattern | URLResolver] = [
    path("enrolments/", EnrolmentStart.as_view(), name="enrolments"),
    path("enrolments/<pid:enrolment_id>/proof/", EnrolmentProof.as_view(), name="enrolment-proof"),
    path("reports/", ReportList.as_view(), name="reports"),
    path("challenges/<pid:challenge_id>/start/", ChallengeStart.as_view(), name="challenge-start"),
    path(
        "challenges/<pid:challenge_id>/commitment/",
        ChallengeCommitment.as_view(),
        name="challenge-commitment",
    ),
    path(
        "challenges/<pid:challenge_id>/answer/", ChallengeAnswer.as_view(), name="challenge-answer"
    ),
    path("beats/", BeatList.as_view(), name="beats"),
    path("desired-state/", DesiredStateDetail.as_view(), name="desired-state"),
    path("nodes/self/", NodeSelf.as_view(), name="node-self"),
]
