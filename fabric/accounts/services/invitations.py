"""Asking people to join, by a link that works once."""

import hashlib
import secrets
from datetime import datetime, timedelta
from typing import ClassVar

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.mail import send_mail
from django.core.validators import validate_email
from django.db import IntegrityError, transaction
from django.template.loader import render_to_string

from fabric.accounts.domain.actors import Actor
from fabric.accounts.domain.roles import Right, Role
from fabric.accounts.models import Invitation, Membership, Organisation, User
from fabric.journal.services.events import record_event
from fabric.lib.errors import (
    DomainError,
    FieldError,
    InvalidInput,
    NotAllowed,
    NotVisible,
    WrongState,
)

LIVES = timedelta(days=7)


class AlreadyInvited(DomainError):
    """The address has an open invitation, or its owner is a member already."""

    code: ClassVar[str] = "ALREADY_INVITED"


@transaction.atomic
def invite_member(
    *,
    actor: Actor,
    organisation: Organisation,
    invited_by: User,
    email: str,
    role: Role,
    now: datetime,
) -> Invitation:
    """Mail a link to the address; an owner's role is given by owners only, after joining."""
    actor.require(Right.MANAGE_MEMBERS)
    email = _check_address(email)
    if role == Role.OWNER:
        raise NotAllowed("Invite with another role; an owner can make them an owner afterwards.")
    if Membership.objects.filter(organisation=organisation, user__email__iexact=email).exists():
        raise AlreadyInvited("This person is a member already.")
    Invitation.objects.filter(
        organisation=organisation,
        email__iexact=email,
        accepted_at__isnull=True,
        withdrawn_at__isnull=True,
        expires_at__lte=now,
    ).update(withdrawn_at=now)
    token = secrets.token_urlsafe(32)
    try:
        with transaction.atomic():
            invitation = Invitation.objects.create(
                organisation=organisation,
                email=email,
                role=role,
                token_digest=_digest(token),
                invited_by=invited_by,
                created_at=now,
                expires_at=now + LIVES,
            )
    except IntegrityError as exc:
        raise AlreadyInvited("This address has an open invitation already.") from exc
    record_event(
        kind="member.invited",
        subject=invitation.public_id,
        actor=actor.id,
        organisations=[organisation.public_id],
        now=now,
        data={"role": role},
    )
    # A mail server that is down must not undo an invitation; it can be withdrawn and sent again.
    transaction.on_commit(lambda: _mail(invitation, token), robust=True)
    return invitation


@transaction.atomic
def withdraw_invitation(*, actor: Actor, invitation: Invitation, now: datetime) -> Invitation:
    """Make an open link useless."""
    actor.require(Right.MANAGE_MEMBERS)
    moved = Invitation.objects.filter(
        pk=invitation.pk, accepted_at__isnull=True, withdrawn_at__isnull=True
    ).update(withdrawn_at=now)
    if not moved:
        raise WrongState("This invitation is not open any more.")
    invitation.withdrawn_at = now
    record_event(
        kind="member.invitation_withdrawn",
        subject=invitation.public_id,
        actor=actor.id,
        organisations=[invitation.organisation.public_id],
        now=now,
    )
    return invitation


def find_invitation(*, token: str, now: datetime) -> Invitation:
    """Return the open invitation behind a link, or raise NotVisible."""
    invitation = (
        Invitation.objects.select_related("organisation", "invited_by")
        .filter(
            token_digest=_digest(token),
            accepted_at__isnull=True,
            withdrawn_at__isnull=True,
            expires_at__gt=now,
        )
        .first()
    )
    if invitation is None:
        raise NotVisible("This invitation is not open any more.")
    return invitation


@transaction.atomic
def accept_invitation(*, person: User, token: str, now: datetime) -> Membership:
    """Join the organisation; only the person the link was mailed to may, and only once."""
    invitation = find_invitation(token=token, now=now)
    if invitation.email.lower() != person.email.lower():
        raise NotAllowed(
            "This invitation was sent to another address.",
            suggestion="Sign in with the address it was sent to.",
        )
    moved = Invitation.objects.filter(
        pk=invitation.pk, accepted_at__isnull=True, withdrawn_at__isnull=True
    ).update(accepted_at=now)
    if not moved:
        raise NotVisible("This invitation is not open any more.")
    membership, created = Membership.objects.get_or_create(
        user=person, organisation=invitation.organisation, defaults={"role": invitation.role}
    )
    if created:
        record_event(
            kind="member.joined",
            subject=person.public_id,
            actor=person.public_id,
            organisations=[invitation.organisation.public_id],
            now=now,
            data={"role": membership.role},
        )
    return membership


def _check_address(email: str) -> str:
    email = email.strip().lower()
    try:
        validate_email(email)
    except ValidationError as exc:
        error = FieldError("email", "Not an e-mail address.", "someone@example.org")
        raise InvalidInput("The address cannot be invited.", errors=(error,)) from exc
    return email


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()


def _mail(invitation: Invitation, token: str) -> None:
    context = {
        "organisation": invitation.organisation.name,
        "inviter": str(invitation.invited_by),
        "role": invitation.role,
        "link": f"{settings.FABRIC_PUBLIC_URL}/invitations/{token}/",
        "days": LIVES.days,
    }
    send_mail(
        subject=f"Join {invitation.organisation.name} on Fabric Market",
        message=render_to_string("accounts/mail/invitation.txt", context),
        from_email=None,
        recipient_list=[invitation.email],
    )
