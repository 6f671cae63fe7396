"""Whatever is thrown at an endpoint, it answers as the published description says it may."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import schemathesis
from django.core.signals import request_finished, request_started
from django.db import close_old_connections, transaction
from hypothesis import HealthCheck, Phase, given, seed, settings
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
from tests.browser.stage import Stage, set_stage
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
def stage(world: World) -> Iterator[Stage]:
    """A small market; requests share the test's connection, as with Django's own client."""
    for signal in (request_started, request_finished):
        signal.disconnect(close_old_connections)
    yield set_stage(world)
    for signal in (request_started, request_finished):
        signal.connect(close_old_connections)


def ids_of(stage: Stage, world: World) -> dict[str, str]:
    """Return an id that exists for each kind that paths name."""
    return {
        "lease_id": stage.lease.public_id,
        "listing_id": stage.listing.public_id,
        "node_id": stage.node.public_id,
        "dispute_id": stage.dispute.public_id,
        "reading_id": stage.reading.public_id,
        "agreement_id": stage.lease.agreement.public_id,
        "project_id": world.project.public_id,
    }


def throw(operation: Any, ids: dict[str, str], headers: dict[str, str], *, examples: int) -> None:
    """Send an operation made-up requests about the things named in `ids`, where its path asks."""

    @seed(20261201)
    @settings(
        max_examples=examples,
        database=None,
        deadline=None,
        derandomize=False,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy())
    def check(case: Any) -> None:
        known = {name: ids[name] for name in case.path_parameters or {} if name in ids}
        case.path_parameters = {**(case.path_parameters or {}), **known}
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
    person: User, stage: Stage, world: World, headers: dict[str, str], *, examples: int
) -> None:
    """Throw at every operation in turn, each from the same market, and name all that fail."""
    ids, wrong = ids_of(stage, world), []
    for name, operation in OPERATIONS.items():
        before = transaction.savepoint()
        try:
            throw(operation, ids, headers, examples=examples)
            throw(operation, {}, headers, examples=1)
        except FailureGroup as failures:
            wrong.append(f"{name} as {person.name}: {failures}")
        transaction.savepoint_rollback(before)
    assert not wrong, "\n\n".join(wrong)


@pytest.mark.parametrize("name", ["alice", "carol", "dave"])
def test_every_operation_answers_as_described(
    name: str, stage: Stage, world: World, headers_of: Callable[[User], dict[str, str]]
) -> None:
    """R-E4 (api): no server error and no undocumented answer, for both sides and a stranger."""
    person = getattr(world, name)
    answers_as_described(person, stage, world, headers_of(person), examples=2)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["alice", "carol", "dave"])
def test_every_operation_answers_as_described_for_long(
    name: str, stage: Stage, world: World, headers_of: Callable[[User], dict[str, str]]
) -> None:
    """R-E4 (api): the same, with many more requests."""
    person = getattr(world, name)
    answers_as_described(person, stage, world, headers_of(person), examples=40)
