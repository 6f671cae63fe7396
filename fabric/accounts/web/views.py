"""Settings pages: the organisation and its people, projects and keys, and one's own security."""

from typing import cast

from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from fabric.accounts.access import (
    access_api_key,
    access_invitation,
    access_membership,
    access_organisation,
    access_project,
    actor_for,
    memberships_of,
    signed_in,
    switch_organisation,
)
from fabric.accounts.domain.roles import Right, Role
from fabric.accounts.models import ApiKey, Invitation, Membership, Project, User
from fabric.accounts.services import api_keys, invitations, organisations, projects
from fabric.accounts.web.forms import (
    ApiKeyForm,
    InvitationForm,
    OrganisationForm,
    ProjectForm,
    RoleForm,
)
from fabric.accounts.web.refusals import add_refusal
from fabric.lib.clock import utc_now
from fabric.lib.errors import DomainError

_FORM = require_http_methods(["GET", "HEAD", "POST"])


@signed_in
@require_safe
def show_settings(request: HttpRequest) -> HttpResponseBase:
    """Lead to the first of the settings pages."""
    return redirect("accounts:organisation")


@signed_in
@_FORM
def show_organisation(request: HttpRequest) -> HttpResponse:
    """Show the organisation's people and invitations; a POST invites somebody."""
    actor = actor_for(request)
    if actor.organisation_id is None:
        return redirect("accounts:organisation-found")
    organisation = access_organisation(actor=actor)
    if request.method == "POST":
        actor.require(Right.MANAGE_MEMBERS)
    form = InvitationForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        try:
            invitations.invite_member(
                actor=actor,
                organisation=organisation,
                invited_by=_person(request),
                email=form.cleaned_data["email"],
                role=Role(form.cleaned_data["role"]),
                now=utc_now(),
            )
        except DomainError as exc:
            add_refusal(form, exc)
        else:
            messages.success(request, f"Invited {form.cleaned_data['email']}.")
            return redirect("accounts:organisation")
    members = list(
        Membership.objects.visible_to(actor).select_related("user").order_by("created_at", "id")
    )
    open_invitations = Invitation.objects.visible_to(actor).filter(
        accepted_at__isnull=True, withdrawn_at__isnull=True
    )
    context = {
        "organisation": organisation,
        "members": [
            {"row": member, "form": RoleForm(initial={"role": member.role}, prefix=None)}
            for member in members
        ],
        "invitations": open_invitations,
        "may_manage": Right.MANAGE_MEMBERS in actor.rights,
        "me": _person(request),
        "now": utc_now(),
        "roles": Role.choices(),
        "memberships": memberships_of(_person(request)),
        "form": form,
    }
    return render(request, "accounts/organisation_show.html", context)


@signed_in
@_FORM
def rename_organisation(request: HttpRequest) -> HttpResponse:
    """Give the organisation another name."""
    actor = actor_for(request)
    organisation = access_organisation(actor=actor)
    actor.require(Right.MANAGE_MEMBERS)
    form = OrganisationForm(request.POST or None, initial={"name": organisation.name})
    if request.method == "POST" and form.is_valid():
        try:
            organisations.rename_organisation(
                actor=actor,
                organisation=organisation,
                name=form.cleaned_data["name"],
                now=utc_now(),
            )
        except DomainError as exc:
            add_refusal(form, exc)
        else:
            messages.success(request, "Renamed.")
            return redirect("accounts:organisation")
    context = {"form": form, "title": "Rename the organisation", "act": "Rename"}
    return render(request, "accounts/organisation_edit.html", context)


@signed_in
@_FORM
def found_organisation(request: HttpRequest) -> HttpResponse:
    """Found another organisation and act for it from now on."""
    form = OrganisationForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        try:
            founded = organisations.found_organisation(
                founder=_person(request), name=form.cleaned_data["name"], now=utc_now()
            )
        except DomainError as exc:
            add_refusal(form, exc)
        else:
            switch_organisation(request, public_id=founded.public_id)
            messages.success(request, f"You now act for {founded.name}.")
            return redirect("accounts:organisation")
    context = {"form": form, "title": "Found an organisation", "act": "Found"}
    return render(request, "accounts/organisation_edit.html", context)


@signed_in
@require_POST
def switch(request: HttpRequest) -> HttpResponse:
    """Act for another of one's organisations."""
    membership = switch_organisation(request, public_id=request.POST.get("organisation", ""))
    messages.success(request, f"You now act for {membership.organisation.name}.")
    return redirect("accounts:organisation")


@signed_in
@require_POST
def change_role(request: HttpRequest, person_id: str) -> HttpResponse:
    """Give a member another role."""
    actor = actor_for(request)
    membership = access_membership(actor=actor, person_id=person_id)
    form = RoleForm(request.POST)
    if form.is_valid():
        role = Role(form.cleaned_data["role"])
        organisations.change_role(actor=actor, membership=membership, role=role, now=utc_now())
        messages.success(request, f"{membership.user} is {role} now.")
    else:
        messages.error(request, "That is not a role.")
    return redirect("accounts:organisation")


@signed_in
@require_POST
def remove_member(request: HttpRequest, person_id: str) -> HttpResponse:
    """End a membership."""
    actor = actor_for(request)
    membership = access_membership(actor=actor, person_id=person_id)
    organisations.remove_member(actor=actor, membership=membership, now=utc_now())
    messages.success(request, f"{membership.user} does not belong here any more.")
    return redirect("accounts:organisation")


@signed_in
@require_POST
def withdraw_invitation(request: HttpRequest, invitation_id: str) -> HttpResponse:
    """Make an invitation's link useless."""
    actor = actor_for(request)
    invitation = access_invitation(actor=actor, public_id=invitation_id)
    invitations.withdraw_invitation(actor=actor, invitation=invitation, now=utc_now())
    messages.success(request, f"The invitation of {invitation.email} is withdrawn.")
    return redirect("accounts:organisation")


@signed_in
@_FORM
def answer_invitation(request: HttpRequest, token: str) -> HttpResponse:
    """Show who invites; a POST joins."""
    invitation = invitations.find_invitation(token=token, now=utc_now())
    if request.method == "POST":
        membership = invitations.accept_invitation(
            person=_person(request), token=token, now=utc_now()
        )
        switch_organisation(request, public_id=membership.organisation.public_id)
        messages.success(request, f"You now act for {membership.organisation.name}.")
        return redirect("accounts:organisation")
    return render(request, "accounts/invitation_answer.html", {"invitation": invitation})


@signed_in
@_FORM
def show_projects(request: HttpRequest) -> HttpResponse:
    """List the projects; a POST makes one."""
    actor = actor_for(request)
    organisation = access_organisation(actor=actor)
    if request.method == "POST":
        actor.require(Right.MANAGE_PROJECTS)
    form = ProjectForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        try:
            project = projects.create_project(
                actor=actor, organisation=organisation, now=utc_now(), **form.cleaned_data
            )
        except DomainError as exc:
            add_refusal(form, exc)
        else:
            messages.success(request, f"{project.name} is there.")
            return redirect("accounts:projects")
    context = {
        "projects": Project.objects.visible_to(actor),
        "may_manage": Right.MANAGE_PROJECTS in actor.rights,
        "form": form,
    }
    return render(request, "accounts/project_list.html", context)


@signed_in
@_FORM
def edit_project(request: HttpRequest, project_id: str) -> HttpResponse:
    """Rename a project or move its budget."""
    actor = actor_for(request)
    project = access_project(actor=actor, public_id=project_id)
    actor.require(Right.MANAGE_PROJECTS)
    start = {"name": project.name, "budget_micros": project.budget_micros}
    form = ProjectForm(request.POST or None, initial=start)
    if request.method == "POST" and form.is_valid():
        try:
            projects.change_project(
                actor=actor, project=project, now=utc_now(), **form.cleaned_data
            )
        except DomainError as exc:
            add_refusal(form, exc)
        else:
            messages.success(request, "Saved.")
            return redirect("accounts:projects")
    return render(request, "accounts/project_edit.html", {"form": form, "project": project})


@signed_in
@_FORM
def show_keys(request: HttpRequest) -> HttpResponse:
    """List the keys; a POST makes one and shows its text, this once."""
    actor = actor_for(request)
    access_organisation(actor=actor)
    if request.method == "POST":
        actor.require(Right.MANAGE_KEYS)
    visible = Project.objects.visible_to(actor)
    form = ApiKeyForm(request.POST or None, projects=visible)
    fresh = None
    if request.method == "POST" and form.is_valid():
        now = utc_now()
        try:
            fresh = api_keys.issue_key(
                actor=actor,
                created_by=_person(request),
                project=form.cleaned_data["project"],
                name=form.cleaned_data["name"],
                scopes=form.cleaned_data["scopes"],
                expires_at=form.expires_at(now),
                now=now,
            )
        except DomainError as exc:
            add_refusal(form, exc)
        else:
            form = ApiKeyForm(projects=visible)
    context = {
        "keys": ApiKey.objects.visible_to(actor).select_related("project", "created_by"),
        "may_manage": Right.MANAGE_KEYS in actor.rights,
        "fresh_text": fresh[0] if fresh else "",
        "fresh_key": fresh[1] if fresh else None,
        "now": utc_now(),
        "form": form,
    }
    return render(request, "accounts/key_list.html", context)


@signed_in
@require_POST
def revoke_key(request: HttpRequest, key_id: str) -> HttpResponse:
    """Revoke a key."""
    actor = actor_for(request)
    key = access_api_key(actor=actor, public_id=key_id)
    api_keys.revoke_key(actor=actor, key=key, now=utc_now())
    messages.success(request, f"{key.name} is revoked; it is refused from the next request on.")
    return redirect("accounts:keys")


@signed_in
@require_safe
def show_security(request: HttpRequest) -> HttpResponse:
    """Show how one signs in, and the doors to change it."""
    person = _person(request)
    kinds = list(Authenticator.objects.filter(user=person).values_list("type", flat=True))
    context = {
        "person": person,
        "addresses": EmailAddress.objects.filter(user=person).order_by("-primary", "email"),
        "has_totp": Authenticator.Type.TOTP in kinds,
        "passkeys": kinds.count(Authenticator.Type.WEBAUTHN),
        "has_recovery_codes": Authenticator.Type.RECOVERY_CODES in kinds,
        "has_second_factor": bool(set(kinds) - {Authenticator.Type.RECOVERY_CODES}),
    }
    return render(request, "accounts/security_show.html", context)


def _person(request: HttpRequest) -> User:
    return cast("User", request.user)
