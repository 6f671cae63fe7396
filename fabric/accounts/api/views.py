"""Endpoints of organisations, members, projects and keys."""

from typing import cast

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from fabric.accounts.access import (
    access_api_key,
    access_invitation,
    access_membership,
    access_organisation,
    access_project,
)
from fabric.accounts.api.base import ApiView
from fabric.accounts.api.conditions import require_match
from fabric.accounts.api.pages import PageQuery, page_of
from fabric.accounts.api.shapes import (
    ApiKeyInput,
    ApiKeyOutput,
    InvitationInput,
    InvitationOutput,
    MemberInput,
    MemberOutput,
    NewApiKeyOutput,
    OrganisationInput,
    OrganisationOutput,
    ProjectInput,
    ProjectOutput,
    show_invitation,
    show_key,
    show_member,
    show_organisation,
    show_project,
)
from fabric.accounts.domain.roles import Right, Role
from fabric.accounts.models import ApiKey, Invitation, Membership, Project, User
from fabric.accounts.services.api_keys import issue_key, revoke_key
from fabric.accounts.services.invitations import invite_member, withdraw_invitation
from fabric.accounts.services.organisations import (
    change_role,
    remove_member,
    rename_organisation,
)
from fabric.accounts.services.projects import change_project, create_project


class OrganisationDetail(ApiView):
    """The caller's own organisation."""

    scopes = {"get": "account:read", "put": "account:write"}
    rights = {"put": Right.MANAGE_MEMBERS}

    @extend_schema(operation_id="organisation_get", responses=OrganisationOutput)
    def get(self, request: Request) -> Response:
        """Read the organisation this key acts for."""
        return Response(show_organisation(access_organisation(actor=self.actor)))

    @extend_schema(
        operation_id="organisation_change", request=OrganisationInput, responses=OrganisationOutput
    )
    def put(self, request: Request) -> Response:
        """Give the organisation another name; wants `If-Match`."""
        organisation = access_organisation(actor=self.actor)
        require_match(request, show_organisation(organisation))
        given = self.read_body(OrganisationInput)
        renamed = rename_organisation(
            actor=self.actor, organisation=organisation, now=self.now, **given
        )
        return Response(show_organisation(renamed))


class MemberList(ApiView):
    """The people of the organisation."""

    scopes = {"get": "account:read"}

    @extend_schema(
        operation_id="members_list", parameters=[PageQuery], responses=page_of(MemberOutput)
    )
    def get(self, request: Request) -> Response:
        """List the members and their roles."""
        self.read_query(PageQuery)
        members = Membership.objects.visible_to(self.actor).select_related("user")
        return self.page(members, order=("id",), represent=show_member)


class MemberDetail(ApiView):
    """One person of the organisation."""

    scopes = {"get": "account:read", "put": "account:write"}
    rights = {"put": Right.MANAGE_MEMBERS}

    @extend_schema(operation_id="members_get", responses=MemberOutput)
    def get(self, request: Request, person_id: str) -> Response:
        """Read a member."""
        return Response(show_member(access_membership(actor=self.actor, person_id=person_id)))

    @extend_schema(operation_id="members_change", request=MemberInput, responses=MemberOutput)
    def put(self, request: Request, person_id: str) -> Response:
        """Give a member another role; wants `If-Match`. Only owners make and change owners."""
        membership = access_membership(actor=self.actor, person_id=person_id)
        require_match(request, show_member(membership))
        role = Role(self.read_body(MemberInput)["role"])
        changed = change_role(actor=self.actor, membership=membership, role=role, now=self.now)
        return Response(show_member(changed))


class MemberRemoval(ApiView):
    """The end of a membership."""

    scopes = {"post": "account:write"}
    rights = {"post": Right.MANAGE_MEMBERS}

    @extend_schema(operation_id="members_remove", request=None, responses=MemberOutput)
    def post(self, request: Request, person_id: str) -> Response:
        """Remove a member and revoke the keys they made; the answer shows who it was."""
        membership = access_membership(actor=self.actor, person_id=person_id)
        removed = show_member(membership)
        remove_member(actor=self.actor, membership=membership, now=self.now)
        return Response(removed)


class InvitationList(ApiView):
    """Those who were asked to join; they accept on the page that the mail leads to."""

    scopes = {"get": "account:read", "post": "account:write"}
    rights = {"post": Right.MANAGE_MEMBERS}

    @extend_schema(
        operation_id="invitations_list",
        parameters=[PageQuery],
        responses=page_of(InvitationOutput),
    )
    def get(self, request: Request) -> Response:
        """List the invitations, newest first, closed ones too."""
        self.read_query(PageQuery)
        invitations = Invitation.objects.visible_to(self.actor)
        return self.page(invitations, order=("-created_at", "-id"), represent=show_invitation)

    @extend_schema(
        operation_id="invitations_create",
        request=InvitationInput,
        responses={201: InvitationOutput},
    )
    def post(self, request: Request) -> Response:
        """Mail somebody a link to join, good once and for seven days."""
        given = self.read_body(InvitationInput)
        invitation = invite_member(
            actor=self.actor,
            organisation=access_organisation(actor=self.actor),
            invited_by=cast("User", request.user),
            email=given["email"],
            role=Role(given["role"]),
            now=self.now,
        )
        return Response(show_invitation(invitation), status=201)


class InvitationDetail(ApiView):
    """One invitation."""

    scopes = {"get": "account:read"}

    @extend_schema(operation_id="invitations_get", responses=InvitationOutput)
    def get(self, request: Request, invitation_id: str) -> Response:
        """Read an invitation."""
        invitation = access_invitation(actor=self.actor, public_id=invitation_id)
        return Response(show_invitation(invitation))


class InvitationWithdrawal(ApiView):
    """The end of an invitation."""

    scopes = {"post": "account:write"}
    rights = {"post": Right.MANAGE_MEMBERS}

    @extend_schema(operation_id="invitations_withdraw", request=None, responses=InvitationOutput)
    def post(self, request: Request, invitation_id: str) -> Response:
        """Make the link of an open invitation useless."""
        invitation = access_invitation(actor=self.actor, public_id=invitation_id)
        withdrawn = withdraw_invitation(actor=self.actor, invitation=invitation, now=self.now)
        return Response(show_invitation(withdrawn))


class ProjectList(ApiView):
    """The organisation's projects."""

    scopes = {"get": "account:read", "post": "account:write"}
    rights = {"post": Right.MANAGE_PROJECTS}
    allows_validate_only = True

    @extend_schema(
        operation_id="projects_list", parameters=[PageQuery], responses=page_of(ProjectOutput)
    )
    def get(self, request: Request) -> Response:
        """List the projects this key may see."""
        self.read_query(PageQuery)
        projects = Project.objects.visible_to(self.actor)
        return self.page(projects, order=("name", "id"), represent=show_project)

    @extend_schema(
        operation_id="projects_create", request=ProjectInput, responses={201: ProjectOutput}
    )
    def post(self, request: Request) -> Response:
        """Make a project."""
        given = self.read_body(ProjectInput)
        project = create_project(
            actor=self.actor,
            organisation=access_organisation(actor=self.actor),
            now=self.now,
            **given,
        )
        return Response(show_project(project), status=201)


class ProjectDetail(ApiView):
    """One project."""

    scopes = {"get": "account:read", "put": "account:write"}
    rights = {"put": Right.MANAGE_PROJECTS}

    @extend_schema(operation_id="projects_get", responses=ProjectOutput)
    def get(self, request: Request, project_id: str) -> Response:
        """Read a project."""
        return Response(show_project(access_project(actor=self.actor, public_id=project_id)))

    @extend_schema(operation_id="projects_change", request=ProjectInput, responses=ProjectOutput)
    def put(self, request: Request, project_id: str) -> Response:
        """Rename a project or move its budget; wants `If-Match`."""
        project = access_project(actor=self.actor, public_id=project_id)
        require_match(request, show_project(project))
        given = self.read_body(ProjectInput)
        changed = change_project(actor=self.actor, project=project, now=self.now, **given)
        return Response(show_project(changed))


class ApiKeyList(ApiView):
    """The keys of the organisation."""

    scopes = {"get": "account:read", "post": "account:write"}
    rights = {"post": Right.MANAGE_KEYS}
    answers_secret = True

    @extend_schema(
        operation_id="api_keys_list", parameters=[PageQuery], responses=page_of(ApiKeyOutput)
    )
    def get(self, request: Request) -> Response:
        """List the keys this key may see, revoked ones too."""
        self.read_query(PageQuery)
        keys = ApiKey.objects.visible_to(self.actor).select_related("project")
        return self.page(keys, order=("-created_at", "-id"), represent=show_key)

    @extend_schema(
        operation_id="api_keys_create", request=ApiKeyInput, responses={201: NewApiKeyOutput}
    )
    def post(self, request: Request) -> Response:
        """Make a key; its text is in this answer and nowhere else, ever."""
        given = self.read_body(ApiKeyInput)
        project = access_project(actor=self.actor, public_id=given.pop("project"))
        held = None if request.auth is None else cast("ApiKey", request.auth).scopes
        text, key = issue_key(
            actor=self.actor,
            created_by=cast("User", request.user),
            project=project,
            now=self.now,
            at_most=held,
            **given,
        )
        return Response({**show_key(key), "key": text}, status=201)


class ApiKeyRevocation(ApiView):
    """The end of a key."""

    scopes = {"post": "account:write"}
    rights = {"post": Right.MANAGE_KEYS}

    @extend_schema(operation_id="api_keys_revoke", request=None, responses=ApiKeyOutput)
    def post(self, request: Request, key_id: str) -> Response:
        """Revoke a key; it is refused from the next request on."""
        key = access_api_key(actor=self.actor, public_id=key_id)
        return Response(show_key(revoke_key(actor=self.actor, key=key, now=self.now)))
