"""What a program is told when something is refused."""

import pytest
from django.db import OperationalError
from django.test import Client

from fabric.accounts.models import Project
from tests.world import World

pytestmark = pytest.mark.django_db
URL = "/api/v1/projects/"
JSON = "application/json"


def test_a_refusal_is_a_problem_with_everything_a_program_needs(world: World, api) -> None:
    """R-C15 (api): a refusal names its code, each field, and what would be accepted."""
    given = {"name": "", "budget_micros": "-1", "colour": "red"}
    response = api(world.alice).post(URL, given, content_type=JSON)
    body = response.json()
    assert response.status_code == 400
    assert response.headers["Content-Type"] == "application/problem+json"
    assert body["type"].endswith("/docs/errors/invalid_input/")
    assert (body["code"], body["status"], body["instance"]) == ("INVALID_INPUT", 400, URL)
    assert body["errors"] == [
        {
            "pointer": "/colour",
            "code": "UNKNOWN_FIELD",
            "detail": "There is no such field.",
            "accepted": "name, budget_micros",
        }
    ]
    assert body["request_id"] == response.headers["Request-Id"]
    assert body["retryable"] is False
    without = api(world.alice).post(URL, {"name": "", "budget_micros": "-1"}, content_type=JSON)
    assert [entry["pointer"] for entry in without.json()["errors"]] == ["/name", "/budget_micros"]
    assert not Project.objects.filter(name="").exists()


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b'"text"',
        b'{"name": NaN}',
        b'{"name": Infinity}',
        b'{"name": "a", "name": "b"}',
        b'{"name": "a\\u0000b"}',
        b'{"name": "\\ud800"}',
        b"\xff\xfe",
        b'{"name": ' + b"[" * 50_000 + b"]" * 50_000 + b"}",
        b'{"name": ' + b"[" * 40 + b"]" * 40 + b"}",
        b'{"budget_micros": ' + b"9" * 5000 + b"}",
        b'{"name": "' + b"x" * 1_100_000 + b'"}',
    ],
)
def test_a_body_that_is_not_one_plain_object_is_refused(world: World, api, body: bytes) -> None:
    response = api(world.alice).generic("POST", URL, body, JSON)
    assert (response.status_code, response.json()["code"]) in (
        (400, "MALFORMED_BODY"),
        (400, "INVALID_INPUT"),
    )
    assert Project.objects.filter(organisation=world.meridian).count() == 1


@pytest.mark.parametrize("budget", [5, 5.0, True, "1.5", "+1", "٣", "1e3", "9" * 19, "", None, []])
def test_an_amount_is_a_string_of_digits(world: World, api, budget: object) -> None:
    given = {"name": "Atlas", "budget_micros": budget}
    response = api(world.alice).post(URL, given, content_type=JSON)
    assert response.status_code == (201 if budget is None else 400)


def test_another_type_of_body_is_415_and_another_accept_is_406(world: World, api) -> None:
    client = api(world.alice)
    form = client.post(URL, {"name": "Atlas"})
    assert (form.status_code, form.json()["code"]) == (415, "UNSUPPORTED_MEDIA_TYPE")
    xml = client.get(URL, headers={"Accept": "text/xml"})
    assert (xml.status_code, xml.json()["code"]) == (406, "NOT_ACCEPTABLE")


def test_an_unknown_method_or_address_is_a_problem_too(world: World, api) -> None:
    client = api(world.alice)
    method = client.delete(URL)
    assert (method.status_code, method.json()["code"]) == (405, "METHOD_NOT_ALLOWED")
    assert method.headers["Allow"] == "GET, POST, HEAD, OPTIONS"
    address = client.get("/api/v1/no-such-thing/")
    assert (address.status_code, address.json()["code"]) == (404, "NOT_FOUND")


def test_a_malformed_id_is_not_found_without_a_query(world: World, api) -> None:
    for wrong in ("prj_1", "lse_" + "0" * 26, "prj_" + "z" * 26, "x" * 300):
        assert api(world.alice).get(f"{URL}{wrong}/").status_code == 404


def test_a_failure_of_ours_says_nothing_of_its_cause(world: World, api, monkeypatch) -> None:
    client = api(world.alice)

    def fail(**_: object) -> None:
        raise RuntimeError("the secret inner detail")

    monkeypatch.setattr("fabric.accounts.api.views.create_project", fail)
    response = client.post(URL, {"name": "Atlas"}, content_type=JSON)
    assert (response.status_code, response.json()["code"]) == (500, "INTERNAL_ERROR")
    assert response.json()["retryable"] is True
    assert "secret" not in response.content.decode()

    def lose(**_: object) -> None:
        raise OperationalError("server closed the connection")

    monkeypatch.setattr("fabric.accounts.api.views.create_project", lose)
    response = client.post(URL, {"name": "Atlas"}, content_type=JSON)
    assert (response.status_code, response.json()["code"]) == (503, "UNAVAILABLE")
    assert response.headers["Retry-After"] == "2"


def test_a_request_id_of_the_caller_is_kept_unless_it_could_corrupt_a_log(world: World) -> None:
    client = Client()
    kept = client.get("/healthz/live/", headers={"Request-Id": "abc-12345"})
    assert kept.headers["Request-Id"] == "abc-12345"
    for wrong in ("short", "x" * 65, "a b c d e f g", "abcdefgh;DROP", "abcdefgh\x7f"):
        made = client.get("/healthz/live/", headers={"Request-Id": wrong})
        assert made.headers["Request-Id"].startswith("req_")


def test_every_code_has_a_page_that_explains_it(world: World) -> None:
    client = Client()
    listed = client.get("/docs/errors/")
    assert listed.status_code == 200
    for code in ("INVALID_INPUT", "IDEMPOTENCY_KEY_REUSED", "LAST_OWNER", "SCOPE_MISSING"):
        assert code.encode() in listed.content
        assert client.get(f"/docs/errors/{code.lower()}/").status_code == 200
    assert client.get("/docs/errors/no_such_code/").status_code == 404
