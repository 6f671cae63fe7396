"""Error pages: in the look, with the request id, and saying what to do."""

import pytest
from django.contrib.sessions.backends.base import SessionBase
from django.core.exceptions import SuspiciousOperation
from django.http import HttpResponse
from django.test import Client, RequestFactory

from fabric.lib.errors import FieldError, InvalidInput, NotVisible, WrongState
from fabric.web.errors import RefusalPageMiddleware, show_bad_request, show_fault
from tests.world import World


@pytest.mark.django_db
def test_a_page_that_is_not_there_says_so_with_the_request_id(world: World) -> None:
    answer = world.client(world.alice).get("/leases/of/nobody/")
    assert answer.status_code == 404
    html = answer.content.decode()
    assert "NOT_FOUND" in html
    assert answer["Request-Id"] in html
    assert "Meridian Lab" in html  # the frame stays, so that one can go on


def refuse(error: Exception, world: World) -> HttpResponse | None:
    request = RequestFactory().get("/orders/new/")
    request.user = world.alice
    request.session = SessionBase()
    middleware = RefusalPageMiddleware(lambda _: HttpResponse())
    return middleware.process_exception(request, error)


@pytest.mark.django_db
def test_a_refusal_keeps_its_status_code_and_fields(world: World) -> None:
    answer = refuse(
        InvalidInput(
            "The order was not accepted.",
            errors=(FieldError("unit_count", "Only 1 unit is free.", "1"),),
        ),
        world,
    )
    assert answer is not None
    html = answer.content.decode()
    assert answer.status_code == 400
    for text in ("INVALID_INPUT", "unit_count", "Only 1 unit is free.", "Accepted: 1"):
        assert text in html


@pytest.mark.django_db
def test_a_lost_race_is_409_and_says_nothing_was_charged(world: World) -> None:
    answer = refuse(WrongState("The listing was withdrawn."), world)
    assert answer is not None
    assert answer.status_code == 409
    assert "nothing was charged" in answer.content.decode()


@pytest.mark.django_db
def test_what_is_not_visible_reads_as_what_is_not_there(world: World) -> None:
    answer = refuse(NotVisible("lease lse_secret"), world)
    assert answer is not None
    assert answer.status_code == 404
    assert "lse_secret" not in answer.content.decode()


def test_other_exceptions_are_left_to_be_logged() -> None:
    middleware = RefusalPageMiddleware(lambda _: HttpResponse())
    assert middleware.process_exception(RequestFactory().get("/"), ValueError("bug")) is None


def test_a_fault_of_ours_is_told_without_database_or_session() -> None:
    answer = show_fault(RequestFactory().get("/leases/"))
    assert answer.status_code == 500
    assert "either done whole or not at all" in answer.content.decode()


@pytest.mark.django_db
@pytest.mark.parametrize("path", ["/", "/nothing/", "/api/v1/listings/", "/static/nothing.css"])
def test_a_name_that_is_not_ours_is_refused_in_one_line(path: str) -> None:
    answer = Client(headers={"host": "evil.example"}).get(path)
    assert answer.status_code == 400
    assert answer.content == b"Nothing is served under this name. Check the Host header.\n"


def test_what_is_refused_before_anybody_is_known_has_a_page() -> None:
    answer = show_bad_request(RequestFactory().get("/leases/"), SuspiciousOperation("bad session"))
    assert answer.status_code == 400
    assert "BAD_REQUEST" in answer.content.decode()
