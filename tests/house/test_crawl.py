"""Every address, asked for by those it is not for."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection, transaction
from django.test import Client

from fabric.api.matrix import read_rows
from fabric.lib.secrets import access_token
from tests.house.crawl import Town, all_addresses, build_town, kind_of, parts_of
from tests.world import World

pytestmark = pytest.mark.django_db
PUBLIC = frozenset(
    {
        "/docs/errors/{code}/",
        "/listings/{listing_id}/",
        "/listings/{listing_id}/revisions/{number}/",
        "/api/v1/listings/{listing_id}/",
        "/api/v1/listings/{listing_id}/revisions/{number}/",
    }
)
KEY = {"Idempotency-Key": "crawl"}


@pytest.fixture
def town(world: World) -> Town:
    """Return a town with one of everything."""
    return build_town(world)


def ask(clients: dict[str, Client], town: Town, path: str) -> Any:
    """Ask for an address as it wants to be asked: GET, or POST where there is no GET."""
    client, url = clients[kind_of(path)], town.fill(path)
    response = client.get(url)
    if response.status_code == 405:
        response = client.post(url, {}, content_type="application/json", headers=KEY)
    return response


def ask_and_undo(clients: dict[str, Client], town: Town, path: str) -> int:
    with transaction.atomic():
        status = int(ask(clients, town, path).status_code)
        transaction.set_rollback(True)
    return status


def test_what_belongs_to_others_is_not_there(town: Town) -> None:
    """R-E4 (page), R-E4 (api): every address with another tenant's id in it answers 404."""
    world = town.world
    stranger = town.clients(world.dave)
    owners = [town.clients(world.alice), town.clients(world.carol), town.clients(world.olga)]
    # What only operators may do is refused before anything is looked up: that tells nothing either.
    of_operators = {row.path for row in read_rows() if row.is_for_operators}
    wrong = []
    for path in all_addresses():
        if not parts_of(path) or path in PUBLIC:
            continue
        status = ask_and_undo(stranger, town, path)
        if status != (403 if path in of_operators else 404):
            wrong.append(f"{path} answers a stranger {status}")
        if "{token}" not in path and all(
            ask_and_undo(owner, town, path) in (401, 404) for owner in owners
        ):
            wrong.append(f"{path} answers nobody, so that its 404 shows nothing")
    assert not wrong, "\n".join(wrong)


def test_the_anonymous_see_what_is_public_and_nothing_else(town: Town) -> None:
    """R-E4 (page): without a session a page leads to sign-in; without a key the API says 401."""
    nobody = town.clients(None)
    wrong = []
    for path in all_addresses():
        response = ask(nobody, town, path)
        if path in PUBLIC:
            expected = response.status_code == 200
        elif kind_of(path) == "api":
            expected = response.status_code in (401, 404) or path in OPEN
        elif parts_of(path):
            expected = response.status_code == 404 or _leads_to_sign_in(response)
        else:
            expected = response.status_code < 500
        if not expected:
            wrong.append(f"{path} answers the anonymous {response.status_code}")
    assert not wrong, "\n".join(wrong)


OPEN = frozenset({"/api/v1/classes/", "/api/v1/listings/", "/api/v1/openapi.yaml", "/api/v1/"})


def _leads_to_sign_in(response: Any) -> bool:
    return bool(response.status_code == 302) and response["Location"].startswith("/accounts/login/")


def test_a_post_without_its_token_is_refused_everywhere(town: Town) -> None:
    """R-E4 (page): a form or an htmx request without the CSRF token changes nothing: 403."""
    client = Client(enforce_csrf_checks=True)
    client.cookies = town.world.client(town.world.alice).cookies
    wrong = []
    for path in all_addresses():
        kind = "application/json" if kind_of(path) == "api" else "application/x-www-form-urlencoded"
        headers = {"HX-Request": "true", **KEY}
        status = client.generic("POST", town.fill(path), "{}", kind, headers=headers).status_code
        if status != 403 and not path.startswith("/healthz/") and path not in OPEN:
            wrong.append(f"{path} takes a post without a token: {status}")
    assert not wrong, "\n".join(wrong)


FOR_CACHES = frozenset({"/api/v1/", "/api/v1/openapi.yaml"})


def test_looking_changes_nothing(town: Town) -> None:
    """R-E4 (page), R-E4 (api): GET and HEAD of any address, by anyone, write nothing.

    And no cache keeps what one visitor saw.
    """
    world = town.world
    visitors = [None, world.alice, world.carol, world.olga]
    wrong = []
    for person in visitors:
        clients = town.clients(person)
        for path in all_addresses():
            before = _rows_written()
            for method in ("get", "head") if person == world.alice else ("get",):
                answer = getattr(clients[kind_of(path)], method)(town.fill(path))
                if answer.status_code >= 500:
                    wrong.append(f"{method} {path} as {person}: {answer.status_code}")
                if person and path not in FOR_CACHES and not _is_kept_private(answer):
                    wrong.append(f"{path} may be kept by caches as {person} saw it")
            if changed := {t for t, n in _rows_written().items() if before.get(t, 0) != n}:
                wrong.append(f"{path} as {person} writes {', '.join(sorted(changed))}")
    assert not wrong, "\n".join(wrong)


def test_a_provider_never_learns_who_the_buyer_is(town: Town) -> None:
    """R-E4 (page), R-E4 (api): no page or answer tells a provider a buyer's name or secrets."""
    world = town.world
    hidden = {
        "the buyer's organisation": world.meridian.name,
        "its id": world.meridian.public_id,
        "a buyer's address": world.alice.email,
        "the project": world.project.name,
        "the access token": access_token(town.lease.public_id),
    }
    told = [
        f"{path} tells the provider {what}"
        for path, text in _texts(town, town.clients(world.carol))
        for what, secret in hidden.items()
        if secret in text
    ]
    assert not told, "\n".join(told)


def test_a_buyer_never_learns_who_works_for_the_provider(town: Town) -> None:
    told = [
        path
        for path, text in _texts(town, town.clients(town.world.alice))
        if town.world.carol.email in text
    ]
    assert not told, "\n".join(told)


def _texts(town: Town, clients: dict[str, Client]) -> Iterator[tuple[str, str]]:
    for path in all_addresses():
        response = clients[kind_of(path)].get(town.fill(path))
        if response.status_code == 200:
            parts = getattr(response, "streaming_content", None)
            content = b"".join(parts) if parts is not None else response.content
            yield path, content.decode(errors="replace")


@pytest.mark.ignore_template_errors  # not our templates
@pytest.mark.parametrize("page", ["email/", "2fa/", "2fa/webauthn/", "password/change/", "logout/"])
def test_no_cache_keeps_a_persons_account(world: World, page: str) -> None:
    """R-E4 (page): whoever uses the browser next cannot page back into another's account."""
    answer = world.client(world.alice).get(f"/accounts/{page}")
    assert answer.status_code < 400
    assert _is_kept_private(answer)


def _is_kept_private(answer: Any) -> bool:
    said = answer.headers.get("Cache-Control", "")
    return "private" in said or "no-store" in said


def _rows_written() -> dict[str, int]:
    """Return how many rows this transaction wrote, by table; sessions and uses of keys aside."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT relname, n_tup_ins + n_tup_upd + n_tup_del FROM pg_stat_xact_user_tables"
            " WHERE relname NOT IN ('django_session', 'accounts_apikey', 'accounts_user')"
        )
        return dict(cursor.fetchall())
