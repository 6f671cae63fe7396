"""Which rows of this app an actor may see."""

from typing import TYPE_CHECKING, Self, TypeVar

from django.db import models

from fabric.accounts.domain.actors import Actor
from fabric.accounts.domain.roles import Right

if TYPE_CHECKING:
    from fabric.accounts.models import (  # noqa: F401 - named in strings that ruff does not read
        ApiKey,
        Invitation,
        Membership,
        Project,
    )

Row_co = TypeVar("Row_co", bound=models.Model, covariant=True)


class OrganisationQuerySet(models.QuerySet[Row_co]):
    """Rows that name their organisation."""

    def visible_to(self, actor: Actor) -> Self:
        """Return the rows of the actor's own organisation."""
        if actor.organisation_id is None or Right.SEE not in actor.rights:
            return self.none()
        return self.filter(organisation_id=actor.organisation_id)


class MembershipQuerySet(OrganisationQuerySet["Membership"]):
    """Who belongs where."""


class InvitationQuerySet(OrganisationQuerySet["Invitation"]):
    """Who has been asked to join."""


class ProjectQuerySet(OrganisationQuerySet["Project"]):
    """Projects; a key sees the one it belongs to."""

    def visible_to(self, actor: Actor) -> Self:
        """Return the projects this actor may see."""
        projects = super().visible_to(actor)
        return projects if actor.project_id is None else projects.filter(pk=actor.project_id)


class ApiKeyQuerySet(models.QuerySet["ApiKey"]):
    """Keys, by way of their project."""

    def visible_to(self, actor: Actor) -> Self:
        """Return the keys this actor may see: never their text, which nobody has."""
        if actor.organisation_id is None or Right.SEE not in actor.rights:
            return self.none()
        keys = self.filter(project__organisation_id=actor.organisation_id)
        return keys if actor.project_id is None else keys.filter(project_id=actor.project_id)
