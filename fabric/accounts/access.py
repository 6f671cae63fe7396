"""Who a request acts for; every page, endpoint and form asks here and nowhere else."""

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec
from urllib.parse import urlencode

from django.conf import settings
from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import resolve_url
from django.utils.cache import patch_cache_control

from fabric.accounts.domain.actors import Actor
from fabric.accounts.domain.roles import Role, rights_of
from fabric.accounts.models import ApiKey, Membership, Organisation, Project, User
from fabric.lib.errors import NotVisible

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


def forget_actor(request: HttpRequest) -> None:
    """Make the next `actor_for` look again; for whoever just changed the active organisation."""
    if hasattr(request, "_actor"):
        del request._actor  # noqa: SLF001 - ours, on their object


def membership_for(request: HttpRequest) -> Membership | None:
    """Return the membership the person acts under: the chosen one while it lasts, else the first.

    Read on every request, so that a demotion or removal counts from the next one.
    """
    if not isinstance(request.user, User):
        return None
    memberships = list(
        Membership.objects.filter(user=request.user).select_related("organisation").order_by("id")
    )
    chosen = request.session.get(SESSION_ORGANISATION)
    for membership in memberships:
        if str(membership.organisation_id) == chosen:
            return membership
    return memberships[0] if memberships else None


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
    """Send the anonymous to sign in and back; keep the page out of every cache.

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
        response = view(request, *args, **kwargs)
        if not response.has_header("Cache-Control"):
            patch_cache_control(response, private=True, no_store=True)
        return response

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


def access_organisation(*, actor: Actor) -> Organisation:
    """Return the organisation the actor acts for."""
    if actor.organisation_id is None:
        raise NotVisible("You belong to no organisation.")
    return Organisation.objects.get(pk=actor.organisation_id)
