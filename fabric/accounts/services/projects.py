"""Making and changing projects: the names and budgets that orders belong to."""

from datetime import datetime
from typing import ClassVar

from django.db import IntegrityError, transaction

from fabric.accounts.domain.actors import Actor
from fabric.accounts.domain.roles import Right
from fabric.accounts.models import Organisation, Project
from fabric.journal.services.audit import record_audit
from fabric.journal.services.events import record_event
from fabric.lib.errors import DomainError, FieldError, InvalidInput
from fabric.lib.money import MAX_MICROS


class ProjectNameTaken(DomainError):
    """Another project of the organisation has this name."""

    code: ClassVar[str] = "PROJECT_NAME_TAKEN"


@transaction.atomic
def create_project(
    *,
    actor: Actor,
    organisation: Organisation,
    name: str,
    budget_micros: int | None,
    now: datetime,
) -> Project:
    """Return a new project of the organisation; `budget_micros` None is no limit."""
    actor.require(Right.MANAGE_PROJECTS)
    name = _check(name, budget_micros)
    try:
        with transaction.atomic():
            project = Project.objects.create(
                organisation=organisation, name=name, budget_micros=budget_micros
            )
    except IntegrityError as exc:
        raise _name_taken(name) from exc
    record_event(
        kind="project.created",
        subject=project.public_id,
        actor=actor.id,
        organisations=[organisation.public_id],
        now=now,
        data={"name": name, "budget_micros": _text(budget_micros)},
    )
    return project


@transaction.atomic
def change_project(
    *, actor: Actor, project: Project, name: str, budget_micros: int | None, now: datetime
) -> Project:
    """Rename a project or move its budget; running leases keep what they hold already."""
    actor.require(Right.MANAGE_PROJECTS)
    name = _check(name, budget_micros)
    locked = Project.objects.select_for_update(no_key=True).get(pk=project.pk)
    before = {"name": locked.name, "budget_micros": _text(locked.budget_micros)}
    locked.name, locked.budget_micros = name, budget_micros
    try:
        with transaction.atomic():
            locked.save(update_fields=["name", "budget_micros"])
    except IntegrityError as exc:
        raise _name_taken(name) from exc
    after = {"name": name, "budget_micros": _text(budget_micros)}
    record_audit(
        actor=actor.id,
        action="project.change",
        subject=locked.public_id,
        now=now,
        before=before,
        after=after,
    )
    record_event(
        kind="project.changed",
        subject=locked.public_id,
        actor=actor.id,
        organisations=[locked.organisation.public_id],
        now=now,
        data=after,
    )
    return locked


def _check(name: str, budget_micros: int | None) -> str:
    errors = []
    if not 1 <= len(name.strip()) <= 120:
        errors.append(FieldError("name", "A project needs a name.", "1 to 120 characters"))
    if budget_micros is not None and not 0 <= budget_micros <= MAX_MICROS:
        errors.append(
            FieldError("budget_micros", "Not a budget.", "0 or more micro-units, or no limit")
        )
    if errors:
        raise InvalidInput("The project cannot be like this.", errors=tuple(errors))
    return name.strip()


def _name_taken(name: str) -> ProjectNameTaken:
    return ProjectNameTaken(f"There is a project called {name} already.")


def _text(micros: int | None) -> str | None:
    return None if micros is None else str(micros)
