"""An operator has a webhook worked off again."""

from datetime import datetime

import pytest
from django.urls import reverse

from billing.models import StripeEvent
from billing.services import inbox
from fabric.journal.models import AuditEntry
from fabric.lib.errors import NotAllowed
from tests.world import World

pytestmark = [pytest.mark.django_db, pytest.mark.ignore_template_errors]


@pytest.fixture
def event(now: datetime) -> StripeEvent:
    return StripeEvent.objects.create(
        id="evt_1",
        kind="checkout.session.completed",
        payload={},
        received_at=now,
        processed_at=now,
        next_attempt_at=now,
        failure="it was a bad day",
    )


def test_a_replayed_event_waits_again_and_the_audit_log_says_who(
    world: World, event: StripeEvent
) -> None:
    """R-C2 (page): an operator replays a webhook from the back office."""
    page = reverse("admin:billing_stripeevent_changelist")
    body = {"action": "replay", "_selected_action": [event.pk]}
    answer = world.client(world.olga).post(page, body)
    assert answer.status_code == 302
    event.refresh_from_db()
    assert (event.processed_at, event.failure) == (None, "")
    assert AuditEntry.objects.get(subject="evt_1").actor == world.olga.public_id


def test_only_an_operator_replays(world: World, event: StripeEvent, now: datetime) -> None:
    with pytest.raises(NotAllowed):
        inbox.replay_event(actor=world.actor(world.alice), event=event, now=now)
    event.refresh_from_db()
    assert event.processed_at is not None
