"""Inputs and outputs of this app's endpoints."""

from typing import Any

from rest_framework import serializers

from fabric.accounts.api.fields import MicrosField
from fabric.accounts.domain.roles import Role
from fabric.accounts.domain.scopes import SCOPES
from fabric.accounts.models import ApiKey, Invitation, Membership, Organisation, Project


class OrganisationInput(serializers.Serializer[Any]):
    """An organisation as it shall be."""

    name = serializers.CharField(max_length=120)


class OrganisationOutput(serializers.Serializer[Any]):
    """The organisation a key or page acts for."""

    id = serializers.CharField()
    name = serializers.CharField()
    created_at = serializers.DateTimeField()


class MemberOutput(serializers.Serializer[Any]):
    """A person in the organisation."""

    id = serializers.CharField()
    name = serializers.CharField()
    email = serializers.EmailField()
    role = serializers.ChoiceField(choices=Role.choices())
    joined_at = serializers.DateTimeField()


class MemberInput(serializers.Serializer[Any]):
    """A member as they shall be."""

    role = serializers.ChoiceField(choices=Role.choices())


class InvitationInput(serializers.Serializer[Any]):
    """Whom to ask to join, and as what; owners are made of members."""

    email = serializers.EmailField(max_length=254)
    role = serializers.ChoiceField(
        choices=[choice for choice in Role.choices() if choice[0] != Role.OWNER]
    )


class InvitationOutput(serializers.Serializer[Any]):
    """An invitation; open until it is accepted, withdrawn or expired."""

    id = serializers.CharField()
    email = serializers.EmailField()
    role = serializers.ChoiceField(choices=Role.choices())
    created_at = serializers.DateTimeField()
    expires_at = serializers.DateTimeField()
    accepted_at = serializers.DateTimeField(allow_null=True)
    withdrawn_at = serializers.DateTimeField(allow_null=True)


class ProjectInput(serializers.Serializer[Any]):
    """A project as it shall be."""

    name = serializers.CharField(max_length=120)
    budget_micros = MicrosField(allow_null=True, required=False, default=None)


class ProjectOutput(serializers.Serializer[Any]):
    """A project: what orders, leases, jobs and keys belong to."""

    id = serializers.CharField()
    name = serializers.CharField()
    budget_micros = serializers.CharField(allow_null=True)
    created_at = serializers.DateTimeField()


class ApiKeyInput(serializers.Serializer[Any]):
    """A key to be made."""

    project = serializers.CharField(max_length=40)
    name = serializers.CharField(max_length=80)
    scopes = serializers.ListField(
        child=serializers.ChoiceField(choices=list(SCOPES.items())), min_length=1, max_length=40
    )
    expires_at = serializers.DateTimeField(required=False, allow_null=True, default=None)


class ApiKeyOutput(serializers.Serializer[Any]):
    """A key without its text."""

    id = serializers.CharField()
    project = serializers.CharField()
    name = serializers.CharField()
    visible_prefix = serializers.CharField()
    scopes = serializers.ListField(child=serializers.CharField())
    created_at = serializers.DateTimeField()
    expires_at = serializers.DateTimeField(allow_null=True)
    last_used_at = serializers.DateTimeField(allow_null=True)
    revoked_at = serializers.DateTimeField(allow_null=True)


class NewApiKeyOutput(ApiKeyOutput):
    """A key just made, with its text, which is shown this once."""

    key = serializers.CharField()


def show_organisation(organisation: Organisation) -> dict[str, Any]:
    """Return the organisation as `OrganisationOutput`."""
    return {
        "id": organisation.public_id,
        "name": organisation.name,
        "created_at": organisation.created_at,
    }


def show_member(membership: Membership) -> dict[str, Any]:
    """Return a membership as `MemberOutput`."""
    return {
        "id": membership.user.public_id,
        "name": membership.user.name,
        "email": membership.user.email,
        "role": membership.role,
        "joined_at": membership.created_at,
    }


def show_invitation(invitation: Invitation) -> dict[str, Any]:
    """Return an invitation as `InvitationOutput`; its link is in the mail and nowhere else."""
    return {
        "id": invitation.public_id,
        "email": invitation.email,
        "role": invitation.role,
        "created_at": invitation.created_at,
        "expires_at": invitation.expires_at,
        "accepted_at": invitation.accepted_at,
        "withdrawn_at": invitation.withdrawn_at,
    }


def show_project(project: Project) -> dict[str, Any]:
    """Return a project as `ProjectOutput`."""
    budget = project.budget_micros
    return {
        "id": project.public_id,
        "name": project.name,
        "budget_micros": None if budget is None else str(budget),
        "created_at": project.created_at,
    }


def show_key(key: ApiKey) -> dict[str, Any]:
    """Return a key as `ApiKeyOutput`; its text is not there to be shown."""
    return {
        "id": key.public_id,
        "project": key.project.public_id,
        "name": key.name,
        "visible_prefix": key.visible_prefix,
        "scopes": key.scopes,
        "created_at": key.created_at,
        "expires_at": key.expires_at,
        "last_used_at": key.last_used_at,
        "revoked_at": key.revoked_at,
    }
