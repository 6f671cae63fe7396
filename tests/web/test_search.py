"""The search box: any id one may see, and nobody else's."""

from datetime import datetime

import pytest

from providers.models import Node
from tests.world import World

pytestmark = pytest.mark.django_db


@pytest.fixture
def node(world: World, now: datetime) -> Node:
    return Node.objects.create(provider=world.provider, name="is-r2-07", enrolled_at=now)


def test_an_exact_id_leads_straight_to_its_page(world: World, node: Node) -> None:
    answer = world.client(world.carol).get("/search/", {"q": f" {node.public_id.upper()} "})
    assert answer.status_code == 302
    assert answer["Location"] == f"/provider/nodes/{node.public_id}/"


def test_a_part_of_a_name_finds_it(world: World, node: Node) -> None:
    html = world.client(world.carol).get("/search/", {"q": "R2-0"}).content.decode()
    assert "is-r2-07" in html


@pytest.mark.parametrize("who", ["alice", "dave", "nobody"])
def test_another_tenants_node_is_not_there(world: World, node: Node, who: str) -> None:
    """R-E5 (page): an id of another tenant is as unknown as one that never was."""
    client = world.client(getattr(world, who, None))
    for text in (node.public_id, "is-r2"):
        answer = client.get("/search/", {"q": text})
        assert answer.status_code == 200
        assert "Nothing found" in answer.content.decode()


def test_an_operator_finds_any_id(world: World, node: Node) -> None:
    """R-E4 (page): one box finds any object, for an operator in the back office."""
    answer = world.client(world.olga).get("/search/", {"q": node.public_id})
    assert answer["Location"] == f"/operator/providers/node/{node.pk}/change/"


@pytest.mark.parametrize("text", ["", "nod_", "nod_zzz", "usr_ü", "%", "\x00", "x" * 500])
def test_odd_text_finds_nothing_and_breaks_nothing(world: World, text: str) -> None:
    assert world.client(world.alice).get("/search/", {"q": text}).status_code == 200
