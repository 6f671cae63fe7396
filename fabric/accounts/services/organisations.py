"""Founding organisations and keeping their members and roles."""

import secrets
import uuid
from datetime import datetime
from typing import ClassVar

from django.db import transaction
from django.utils.text import slugify

from fabric.accounts.domain.actors import Actor
from fabric.accounts.domain.roles import Right, Role
from fabric.accounts.models import ApiKey, Membership, Organisation, Project, User
from fabric.journal.services.audit import record_audit
from fabric.journal.services.events import record_event
from fabric.lib.errors import DomainError, FieldError, InvalidInput, NotAllowed

FIRST_PROJECT = "First project"


class LastOwner(DomainError):
    """An organisation keeps at least one owner, or nobody could ever manage it again."""

    code: ClassVar[str] = "LAST_OWNER"


@transaction.atomic
def found_organisation(*, founder: User, name: str, now: datetime) -> Organisation:
    """Return a new organisation with its founder as owner and a first project to order under."""
    name = check_name(name)
    organisation = Organisation.objects.create(name=name, slug=_free_slug(name))
    Membership.objects.create(user=founder, organisation=organisation, role=Role.OWNER)
    Project.objects.create(organisation=organisation, name=FIRST_PROJECT)
    record_event(
        kind="organisation.founded",
        subject=organisation.public_id,
        actor=founder.public_id,
        organisations=[organisation.public_id],
        now=now,
        data={"name": name},
    )
    return organisation


@transaction.atomic
def rename_organisation(
    *, actor: Actor, organisation: Organisation, name: str, now: datetime
) -> Organisation:
    """Change the name people read; ids and the slug stay, since others hold them."""
    actor.require(Right.MANAGE_MEMBERS)
    before, organisation.name = organisation.name, check_name(name)
    organisation.save(update_fields=["name"])
    record_audit(
        actor=actor.id,
        action="organisation.rename",
        subject=organisation.public_id,
        now=now,
        before={"name": before},
        after={"name": organisation.name},
    )
    return organisation


@transaction.atomic
def change_role(*, actor: Actor, membership: Membership, role: Role, now: datetime) -> Membership:
    """Give a member another role; it counts from the member's next request."""
    actor.require(Right.MANAGE_MEMBERS)
    locked = _lock_members(membership)
    _guard_owners(actor, locked, becomes=role)
    before, locked.role = locked.role, role
    locked.save(update_fields=["role"])
    _record(
        actor, locked, "member.role_changed", now, before={"role": before}, after={"role": role}
    )
    return locked


@transaction.atomic
def remove_member(*, actor: Actor, membership: Membership, now: datetime) -> None:
    """End a membership and revoke the keys the person made here; anyone may leave by themselves."""
    locked = _lock_members(membership)
    if actor.id != locked.user.public_id:
        actor.require(Right.MANAGE_MEMBERS)
        _guard_owners(actor, locked, becomes=None)
    else:
        _guard_last_owner(locked, becomes=None)
    ApiKey.objects.filter(
        project__organisation_id=locked.organisation_id,
        created_by_id=locked.user_id,
        revoked_at__isnull=True,
    ).update(revoked_at=now)
    _record(actor, locked, "member.removed", now, before={"role": locked.role}, after=None)
    locked.delete()


def check_name(name: str) -> str:
    """Return the name trimmed, or raise InvalidInput."""
    name = " ".join(name.split())
    if not 1 <= len(name) <= 120 or not name.isprintable():
        error = FieldError("name", "An organisation needs a name.", "1 to 120 plain characters")
        raise InvalidInput("The organisation cannot be called that.", errors=(error,))
    return name


def _lock_members(membership: Membership) -> Membership:
    """Lock the organisation, so that two owners cannot demote each other at once."""
    Organisation.objects.select_for_update(no_key=True).get(pk=membership.organisation_id)
    return Membership.objects.select_related("user", "organisation").get(pk=membership.pk)


def _guard_owners(actor: Actor, membership: Membership, *, becomes: Role | None) -> None:
    touches_owner = Role.OWNER in (membership.role, becomes)
    is_owner = Membership.objects.filter(
        organisation_id=membership.organisation_id,
        user_id=_person_key(actor),
        role=Role.OWNER,
    ).exists()
    if touches_owner and not is_owner:
        raise NotAllowed("Only an owner makes or changes owners.")
    _guard_last_owner(membership, becomes=becomes)


def _person_key(actor: Actor) -> uuid.UUID:
    if actor.id.startswith(f"{User.PREFIX}_"):
        return User.key_from(actor.id)
    return ApiKey.objects.values_list("created_by_id", flat=True).get(pk=ApiKey.key_from(actor.id))


def _guard_last_owner(membership: Membership, *, becomes: Role | None) -> None:
    if membership.role != Role.OWNER or becomes == Role.OWNER:
        return
    others = Membership.objects.filter(
        organisation_id=membership.organisation_id, role=Role.OWNER
    ).exclude(pk=membership.pk)
    if not others.exists():
        raise LastOwner(
            "This is the last owner of the organisation.",
            suggestion="Make another member an owner first.",
        )


def _record(
    actor: Actor,
    membership: Membership,
    kind: str,
    now: datetime,
    *,
    before: dict[str, str] | None,
    after: dict[str, str] | None,
) -> None:
    person, organisation = membership.user.public_id, membership.organisation.public_id
    record_event(
        kind=kind, subject=person, actor=actor.id, organisations=[organisation], now=now, data=after
    )
    record_audit(
        actor=actor.id,
        action=kind,
        subject=person,
        reason=f"in {organisation}",
        now=now,
        before=before,
        after=after,
    )


def _free_slug(name: str) -> str:
    base = slugify(name)[:48] or "organisation"
    if not Organisation.objects.filter(slug=base).exists():
        return base
    return f"{base}-{secrets.token_hex(4)}"
