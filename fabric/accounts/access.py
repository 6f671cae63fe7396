"""Who a request acts for; every page, endpoint and form asks here and nowhere else."""

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Concatenate, ParamSpec, cast
from urllib.parse import urlencode

from django.conf import settings
from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import resolve_url

from fabric.accounts.domain.actors import Actor
from fabric.accounts.domain.roles import Role, rights_of
from fabric.accounts.models import ApiKey, Invitation, Membership, Organisation, Project, User
from fabric.lib.errors import NotVisible

if TYPE_CHECKING:
    from django.db.models import QuerySet

SESSION_ORGANISATION = "organisation"
P = ParamSpec("P")


def actor_for(request: HttpRequest) -> Actor:
    """Return who acts: the API key's project, or the person in their active organisation.

    Costs one query per request, not per call. Raises PermissionDenied for the anonymous; pages
    send those to sign in with `signed_in`, endpoints answer 401 before they come here.
    """
    known: Actor | None = getattr(request, "_actor", None)
    if known is not None:
        return known
    key = getattr(request, "auth", None)
    if isinstance(key, ApiKey):
        actor = actor_of_key(key)
    elif isinstance(request.user, User):
        actor = actor_of_person(request.user, membership_for(request))
    else:
        raise PermissionDenied("Sign in first.")
    request._actor = actor  # type: ignore[attr-defined]  # noqa: SLF001 - ours, on their object
    return actor


def membership_for(request: HttpRequest) -> Membership | None:
    """Return the membership the person acts under: the chosen one while it lasts, else the first.

    Read on every request, so that a demotion or removal counts from the next one.
    """
    if not isinstance(request.user, User):
        return None
    if not hasattr(request, "_membership"):
        memberships = list(memberships_of(request.user))
        chosen = request.session.get(SESSION_ORGANISATION)
        by_choice = [one for one in memberships if str(one.organisation_id) == chosen]
        request._membership = next(iter([*by_choice, *memberships]), None)  # type: ignore[attr-defined]  # noqa: SLF001 - ours, on their object
    membership: Membership | None = request._membership  # type: ignore[attr-defined]  # noqa: SLF001 - as above
    return membership


def memberships_of(person: User) -> "QuerySet[Membership]":
    """Return where a person belongs, oldest first."""
    return Membership.objects.filter(user=person).select_related("organisation").order_by("id")


def switch_organisation(request: HttpRequest, *, public_id: str) -> Membership:
    """Make another organisation of the person the active one of this session."""
    for membership in memberships_of(cast("User", request.user)):
        if membership.organisation.public_id == public_id:
            request.session[SESSION_ORGANISATION] = str(membership.organisation_id)
            _forget(request)
            return membership
    raise NotVisible("You do not belong to such an organisation.")


def _forget(request: HttpRequest) -> None:
    for name in ("_actor", "_membership"):
        if hasattr(request, name):
            delattr(request, name)


def actor_of_person(user: User, membership: Membership | None) -> Actor:
    """Return a person acting under a membership; without one they may do nothing but operate."""
    return Actor(
        id=user.public_id,
        organisation_id=membership.organisation_id if membership else None,
        rights=rights_of(Role(membership.role)) if membership else frozenset(),
        is_operator=user.is_staff,
    )


def actor_of_key(key: ApiKey) -> Actor:
    """Return a key acting for its project, with the rights its maker has today.

    So a key never outlives its maker's standing: demote or remove the person, and it follows.
    """
    organisation_id = key.project.organisation_id
    membership = Membership.objects.filter(
        user_id=key.created_by_id, organisation_id=organisation_id, user__is_active=True
    ).first()
    return Actor(
        id=key.public_id,
        organisation_id=organisation_id,
        project_id=key.project_id,
        rights=rights_of(Role(membership.role)) if membership else frozenset(),
    )


def signed_in(
    view: Callable[Concatenate[HttpRequest, P], HttpResponseBase],
) -> Callable[Concatenate[HttpRequest, P], HttpResponseBase]:
    """Send the anonymous to sign in and back.

    A part of a page that htmx asks for cannot be redirected (the sign-in form would land inside
    the part), so htmx is told to move the whole page.
    """

    @wraps(view)
    def guarded(request: HttpRequest, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponseBase:
        if not request.user.is_authenticated:
            if request.headers.get("HX-Request"):
                here = request.headers.get("HX-Current-URL", "/")
                target = f"{resolve_url(settings.LOGIN_URL)}?{urlencode({'next': here})}"
                return HttpResponse(status=401, headers={"HX-Redirect": target})
            return redirect_to_login(request.get_full_path())
        return view(request, *args, **kwargs)

    # Other decorators keep this mark, so that the table of access can read it off any page.
    guarded.needs_sign_in = True  # type: ignore[attr-defined]
    return guarded


def access_project(*, actor: Actor, public_id: str) -> Project:
    """Return a project of the actor's organisation; a key sees its own project only."""
    project = Project.find_public(public_id)
    if (
        project is None
        or project.organisation_id != actor.organisation_id
        or (actor.project_id is not None and actor.project_id != project.pk)
    ):
        raise NotVisible("There is no such project.")
    return project


def access_api_key(*, actor: Actor, public_id: str) -> ApiKey:
    """Return a key of the actor's organisation; a key sees those of its own project only."""
    key = ApiKey.find_public(public_id)
    if (
        key is None
        or key.project.organisation_id != actor.organisation_id
        or (actor.project_id is not None and actor.project_id != key.project_id)
    ):
        raise NotVisible("There is no such key.")
    return key


def access_membership(*, actor: Actor, person_id: str) -> Membership:
    """Return a person's membership of the actor's organisation."""
    person = User.find_public(person_id)
    membership = (
        Membership.objects.visible_to(actor).filter(user=person).select_related("user").first()
        if person
        else None
    )
    if membership is None:
        raise NotVisible("There is no such member.")
    return membership


def access_invitation(*, actor: Actor, public_id: str) -> Invitation:
    """Return an invitation of the actor's organisation."""
    found = Invitation.find_public(public_id)
    invitation = Invitation.objects.visible_to(actor).filter(pk=found.pk).first() if found else None
    if invitation is None:
        raise NotVisible("There is no such invitation.")
    return invitation


def access_organisation(*, actor: Actor) -> Organisation:
    """Return the organisation the actor acts for."""
    if actor.organisation_id is None:
        raise NotVisible("You belong to no organisation.")
    return Organisation.objects.get(pk=actor.organisation_id)
