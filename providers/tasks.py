"""Background work on nodes. The rows are the queue; these run safely beside themselves."""

from uuid import UUID

from celery import shared_task

from fabric.lib.clock import utc_now
from providers.models import Challenge
from providers.services import challenges, judging, liveness, reports

SWEEP_LIMIT = 100
HINT_LASTS_SECONDS = 30  # The next sweep sends it again; stale ones must not pile up.


@shared_task(name="providers.judge_challenge_task")
def judge_challenge_task(challenge_id: str) -> str:
    """Judge one answered challenge now; return the verdict."""
    challenge = judging.judge_challenge(challenge_id=UUID(challenge_id), now=utc_now())
    return challenge.verdict if challenge is not None else ""


@shared_task(name="providers.sweep_challenges_task")
def sweep_challenges_task() -> int:
    """Send out answers whose hint was lost, end challenges that ran out, begin those due."""
    waiting = Challenge.objects.answered().values_list("pk", flat=True)[:SWEEP_LIMIT]
    for key in list(waiting):
        judge_challenge_task.apply_async(args=(str(key),), expires=HINT_LASTS_SECONDS)
    return challenges.sweep_expired(now=utc_now()) + reports.sweep_changed(now=utc_now())


@shared_task(name="providers.sweep_liveness_task")
def sweep_liveness_task() -> tuple[int, int]:
    """Fence nodes that fell silent, and challenge fenced ones that are back."""
    return liveness.sweep_liveness(now=utc_now())
