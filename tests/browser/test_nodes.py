"""The pages of nodes in a real browser: looks, barriers, enrolling, and following a test."""

import re

import pytest
from playwright.sync_api import Browser, expect

from fabric.lib.clock import utc_now
from providers.models import Node
from providers.services.enrolment import create_token
from tests.browser.harness import LOOKS, open_window
from tests.providers.agents import TestAgent, host_report
from tests.providers.test_challenges import prove_simulated
from tests.providers.test_reports import gpu
from tests.world import World

pytestmark = pytest.mark.e2e


def enrol_h100(world: World, name: str) -> TestAgent:
    """Return a simulated H100 that has reported and waits for its test."""
    text, _ = create_token(
        provider=world.provider,
        actor=world.actor(world.olga),
        now=utc_now(),
        simulated=True,
        accepts_unisolated=True,
    )
    agent = TestAgent().enrol(text, name=name)
    agent.report(
        host_report(
            driver="simulated",
            devices=[gpu(identity=f"GPU-{name}-5e88-4898-da28")],
            units=[{"device": 0, "slots": [0, 1], "memory_mib": 81_000}],
        )
    )
    return agent


@pytest.mark.parametrize("look", LOOKS, ids="-".join)
def test_pages_of_nodes_are_free_of_barriers(
    browser: Browser, live_server_url: str, world: World, look: tuple[str, str]
) -> None:
    """R-E4 (page): axe-core, the console and the content policy find nothing on nodes' pages."""
    theme, size = look
    good, slow = enrol_h100(world, "is-r5-01"), enrol_h100(world, "is-r5-02")
    waiting = enrol_h100(world, "is-r5-03")
    prove_simulated(good)
    good.post("beats/", {"seq": 1, "health": {}, "workloads": []})
    prove_simulated(slow, gops=330_000.0)
    pages = {
        "nodes": "/provider/nodes/",
        "node-admitted": f"/provider/nodes/{good.node_id}/",
        "node-held-back": f"/provider/nodes/{slow.node_id}/",
        "node-proving": f"/provider/nodes/{waiting.node_id}/",
        "enrol": "/provider/enrol/",
        "provider-profile": "/provider/profile/",
    }
    barriers: list[str] = []
    with open_window(browser, live_server_url, theme=theme, size=size) as visitor:
        visitor.sign_in(world.carol)
        for name, path in pages.items():
            visitor.go(path)
            visitor.take_shot(name)
            barriers += [f"{name}: {text}" for text in visitor.find_barriers()]
            if overflow := visitor.find_overflow():
                barriers.append(f"{name}: sticks out sideways: {overflow}")
    assert not barriers, "\n".join(barriers)


def test_a_provider_enrols_a_machine_and_watches_it_being_admitted(
    browser: Browser, live_server_url: str, world: World
) -> None:
    """R-B1 (page): from the button to the tier without reloading: the page follows by itself."""
    with open_window(browser, live_server_url, theme="light", size="desktop") as visitor:
        visitor.sign_in(world.carol)
        visitor.go("/provider/enrol/")
        page = visitor.page
        page.get_by_role("button", name="Make a token").click()
        command = page.locator("code", has_text="fabric-agent enroll").inner_text()
        visitor.take_shot("enrol-made")
        match = re.search(r"--token (\S+)", command)
        assert match is not None
        TestAgent().enrol(match[1], name="bare-machine")
        node = Node.objects.get(name="bare-machine")
        assert not node.simulated

        agent = enrol_h100(world, "is-r5-04")
        visitor.go(f"/provider/nodes/{agent.node_id}/")
        expect(page.get_by_text("Being tested.")).to_be_visible()
        prove_simulated(agent)
        expect(page.locator("#standing h2").get_by_text("Admitted")).to_be_visible(timeout=15_000)
