"""Whatever is thrown at an endpoint, it answers as the published description says it may."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import schemathesis
from django.core.signals import request_finished, request_started
from django.db import close_old_connections, transaction
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.core.failures import FailureGroup
from schemathesis.core.result import Ok
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from fabric.accounts.models import User
from fabric.wsgi import application
from tests.api.conftest import ApiClient
from tests.house.crawl import Town, build_town
from tests.world import World

pytestmark = pytest.mark.django_db

SCHEMA = schemathesis.openapi.from_path("docs/api/openapi.yaml")
SCHEMA.app = application
OPERATIONS = {
    f"{operation.method.upper()} {operation.path}": operation
    for operation in (
        result.ok() for result in SCHEMA.get_all_operations() if isinstance(result, Ok)
    )
}
KEPT = (
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
)


@pytest.fixture
def town(world: World) -> Iterator[Town]:
    """One of everything; requests share the test's connection, as with Django's own client."""
    for signal in (request_started, request_finished):
        signal.disconnect(close_old_connections)
    yield build_town(world)
    for signal in (request_started, request_finished):
        signal.connect(close_old_connections)


def throw(operation: Any, town: Town | None, headers: dict[str, str], *, examples: int) -> None:
    """Send made-up requests, about things that exist in `town`, or about made-up ones."""

    @settings(
        max_examples=examples,
        database=None,
        deadline=None,
        derandomize=True,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy())
    def check(case: Any) -> None:
        if town is not None:
            parts = case.path_parameters or {}
            case.path_parameters = {name: town.name_of(name) for name in parts}
        response = case.call(headers=headers)
        case.validate_response(response, checks=KEPT)

    check()


@pytest.fixture
def headers_of(api: ApiClient) -> Callable[[User], dict[str, str]]:
    def make(person: User) -> dict[str, str]:
        authorization = str(api(person).defaults["HTTP_AUTHORIZATION"])
        return {"Authorization": authorization, "Accept-Encoding": "identity"}

    return make


def answers_as_described(
    person: User, town: Town, headers: dict[str, str], *, examples: int
) -> None:
    """Throw at every operation in turn, each from the same town, and name all that fail."""
    wrong = []
    for name, operation in OPERATIONS.items():
        before = transaction.savepoint()
        try:
            throw(operation, town, headers, examples=examples)
            throw(operation, None, headers, examples=1)
        except FailureGroup as failures:
            wrong.append(f"{name} as {person.name}: {failures}")
        transaction.savepoint_rollback(before)
    assert not wrong, "\n\n".join(wrong)


@pytest.mark.parametrize("name", ["alice", "carol", "dave"])
def test_every_operation_answers_as_described(
    name: str, town: Town, headers_of: Callable[[User], dict[str, str]]
) -> None:
    """R-E4 (api): no server error and no undocumented answer, for both sides and a stranger."""
    person = getattr(town.world, name)
    answers_as_described(person, town, headers_of(person), examples=2)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["alice", "carol", "dave"])
def test_every_operation_answers_as_described_for_long(
    name: str, town: Town, headers_of: Callable[[User], dict[str, str]]
) -> None:
    """R-E4 (api): the same, with many more requests."""
    person = getattr(town.world, name)
    answers_as_described(person, town, headers_of(person), examples=40)
