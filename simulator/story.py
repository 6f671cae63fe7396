"""The whole story, played by people at pages, programs at the API and a real agent.

Every step prints its evidence. The last one prints a receipt and holds it against the ledger.
"""

from __future__ import annotations

import re
import secrets
import time
from typing import TYPE_CHECKING, Any

import httpx
import yaml

from deploy.local import agents
from deploy.local.processes import StartFailed
from fabric.lib.ids import from_public
from fabric.lib.money import format_amount
from fabric_agent.problems import AgentProblem
from fabric_agent.state import StateFolder
from simulator.program import CallRefused, Program
from simulator.receipt import check_receipt
from simulator.visitor import PageRefused, Visitor

if TYPE_CHECKING:
    from collections.abc import Mapping

    from deploy.local.deployment import Deployment

BUYER_SCOPES = ["catalogue:read", "leases:read", "leases:write", "billing:read", "orders:read"]
PROVIDER_SCOPES = ["catalogue:read", "provider:read", "provider:write", "leases:read"]
TOP_UP = "25.00"
BUDGET = "10.00"
STANDS_BPS = 5_000
WINDOWS_BEFORE_DISPUTE = 3
FEWEST_FIELDS = 12
NODE_NAME = "this-machine"


class StoryFailed(Exception):
    """Something did not go as the story tells it."""


def play(deployment: Deployment) -> int:
    """Play the story; return 0 when the receipt agrees with the ledger."""
    story = Story(deployment)
    try:
        story.play_to_metering()
        story.dispute()
        story.end()
        disagreements = story.settle_accounts()
    except (
        StoryFailed,
        PageRefused,
        CallRefused,
        AgentProblem,
        StartFailed,
        httpx.HTTPError,
    ) as error:
        print(f"\nbin/demo --once: the story stopped: {error}")
        return 1
    finally:
        story.close()
    for disagreement in disagreements:
        print(f"  DISAGREES  {disagreement}")
    seconds = time.monotonic() - deployment.progress.started
    if disagreements:
        print(f"\nbin/demo --once: the receipt and the ledger disagree ({seconds:.0f} s)")
        return 1
    print(f"\nbin/demo --once: the receipt agrees with the ledger ({seconds:.0f} s)")
    return 0


class Story:
    """What has happened so far, and who is there."""

    def __init__(self, deployment: Deployment) -> None:
        self.deployment = deployment
        self.people: dict[str, Visitor] = {}
        self.programs: dict[str, Program] = {}
        self.number = 0
        self.node = self.listing = self.lease = self.disputed = ""

    @property
    def buyer(self) -> Program:
        """The buyer's program."""
        return self.programs["buyer"]

    @property
    def provider(self) -> Program:
        """The provider's program."""
        return self.programs["provider"]

    def play_to_metering(self) -> None:
        """Play from the first sign-in to a lease whose windows are charged."""
        self.meet()
        self.prove_the_machine()
        agents.start_fleet(self.deployment)  # proves itself while the lease below runs
        self.publish()
        self.top_up()
        self.order()
        self.meter()

    def step(self, title: str) -> None:
        """Begin the next step."""
        self.number += 1
        self.deployment.progress.say(f"{self.number}. {title}")
        self.deployment.supervisor.check()

    def evidence(self, **facts: object) -> None:
        """Print what shows that a step happened."""
        for name, value in facts.items():
            print(f"          {name.replace('_', ' '):<18} {value}", flush=True)

    def close(self) -> None:
        """Close all connections."""
        for visitor in self.people.values():
            visitor.close()
        for program in self.programs.values():
            program.close()

    def meet(self) -> None:
        """Sign three people in, two of whom make a key for their programs."""
        self.step("three people sign in, and two make a key for their programs")
        cast = self.deployment.cast
        for role, email in cast["logins"].items():
            self.people[role] = Visitor(self.deployment.url)
            self.people[role].sign_in(email, cast["password"])
        for role, scopes in (("buyer", BUYER_SCOPES), ("provider", PROVIDER_SCOPES)):
            visitor = self.people[role]
            visitor.open("/settings/keys/")
            page = visitor.submit(name="story", scopes=scopes)
            found = re.search(r'id="fresh-key">([^<]+)<', page)
            if not found:
                raise StoryFailed("the page shows no new key")
            self.programs[role] = Program(self.deployment.url, found.group(1))
            self.evidence(**{role: f"{cast['logins'][role]}, key {found.group(1)[:12]}…"})

    def prove_the_machine(self) -> None:
        """Enrol this machine, answer the challenge, and be admitted."""
        self.step("the provider makes a token; this machine makes its key and becomes a node")
        made = self.provider.post("enrolment-tokens/", {"accepts_unisolated": True})
        said = agents.enrol_host(self.deployment, made["token"], NODE_NAME)
        self.node = StateFolder(agents.host_folder(self.deployment)).identity().node_id
        agents.run_host(self.deployment)
        self.evidence(agent_says=said.splitlines()[0], token=f"{made['id']}, used once")
        self.step("the exchange challenges it: product and memory under a fresh nonce")
        node = self.provider.wait_for(
            "admission",
            lambda: self.provider.get(f"nodes/{self.node}/"),
            lambda seen: seen["state"] in {"admitted", "held_back"},
            seconds=300,
        )
        (challenge,) = self.provider.list(f"nodes/{self.node}/challenges/")[:1]
        report = self.provider.list(f"nodes/{self.node}/reports/")[0]
        self.evidence(report=report["digest"], challenge=challenge["id"])
        for name, figure in challenge["figures"].items():
            self.evidence(**{name: f"{figure['value']} {figure['unit']}"})
        if node["state"] != "admitted":
            raise StoryFailed(f"the node is held back: {node['held_back_reasons']}")
        self.evidence(admitted=f"{node['hardware_class']} to the {node['tier']} tier")

    def publish(self) -> None:
        """Publish a promise that was not shown, which is refused, then the honest one."""
        self.step("a listing that promises more than was shown is refused; the honest one is not")
        state = StateFolder(agents.host_folder(self.deployment))
        host = self.deployment.cast["host"]
        offer = agents.make_offer(
            state,
            title=host["title"],
            price_micros=host["price_micros"],
            place=host,
        )
        cores = offer["promise"]["cpu_cores"]
        boast = {**offer, "promise": {**offer["promise"], "cpu_cores": cores * 16}}
        refused = self._publish(boast, {"refused"})
        for row in refused["newest_check"]["fields"]:
            if row["verdict"] not in {"match", "better"}:
                told = f"promised {row['promised']}, shown {row['measured']}"
                self.evidence(**{f"refused {row['field']}": told})
        self.listing = refused["id"]
        listing = self._publish({"listing_id": self.listing, **offer}, {"published"})
        self.evidence(
            published=f"{self.listing} revision {listing['revision']['number']}",
            promise=listing["revision"]["digest"],
            suits=", ".join(listing["suits"]) or "none of serving, training, batch",
        )

    def _publish(self, document: Mapping[str, Any], wanted: set[str]) -> dict[str, Any]:
        """Publish a file with the agent and wait for what its check says."""
        path = agents.host_folder(self.deployment) / "listing.yaml"
        path.write_text(yaml.safe_dump(dict(document), sort_keys=False))
        said = agents.call_agent(self.deployment, "publish", str(path), "--state", str(path.parent))
        listing = said.split(":")[0].strip()
        seen: dict[str, Any] = self.provider.wait_for(
            f"a listing that is {' or '.join(wanted)}",
            lambda: self.provider.get(f"listings/{listing}/"),
            lambda row: row["state"] in wanted,
        )
        return seen

    def top_up(self) -> None:
        """Pay by card at the stand-in's page; its signed webhook credits the wallet."""
        self.step(f"the buyer tops up ${TOP_UP} by card")
        visitor = self.people["buyer"]
        visitor.open("/billing/top-ups/new/")
        visitor.submit(amount_micros=TOP_UP)
        checkout = visitor.url
        visitor.submit(button="act=pay")
        wallet = self.buyer.wait_for(
            "the money in the wallet",
            lambda: self.buyer.get("wallet/"),
            lambda seen: int(seen["available_micros"]) > 0,
        )
        self.evidence(
            paid_at=checkout.split("?")[0],
            wallet=f"${format_amount(int(wallet['available_micros']), decimals=6)}",
        )

    def order(self) -> None:
        """Order, which funds an escrow and makes a lease; readiness is seen from outside."""
        self.step(f"the buyer orders the machine and holds ${BUDGET} for it")
        visitor = self.people["buyer"]
        visitor.open(f"/orders/new/?listing={self.listing}")
        consents: dict[str, Any] = {
            name: ["on"]
            for form in visitor.forms()
            for name in form.choices
            if name.startswith("accepts_")
        }
        visitor.submit(budget_micros=BUDGET, hours="1", **consents)
        self.lease = visitor.url.rstrip("/").rpartition("/")[2]
        lease = self.buyer.wait_for(
            "a lease that is ready",
            lambda: self.buyer.get(f"leases/{self.lease}/"),
            lambda seen: seen["state"] != "provisioning",
        )
        if lease["state"] != "active":
            raise StoryFailed(f"the lease is {lease['state']}: {lease['end_reason']}")
        held = format_amount(int(lease["money"]["funded_micros"]), decimals=6)
        self.evidence(
            lease=self.lease,
            escrow=f"${held} for {lease['agreement']}",
            units=", ".join(unit["id"] for unit in lease["units"]),
            isolation=lease["isolation"],
            ready=f"{lease['ready_at']}, reached at {lease['access']['host']}:{lease['access']['port']}",
        )
        self._use(lease)

    def _use(self, lease: Mapping[str, Any]) -> None:
        """Call the workload as its tenant, with the token that only the tenant is shown."""
        token = self.buyer.post(f"leases/{self.lease}/access-token/", {})["access_token"]
        nonce = secrets.token_hex(16)
        place = lease["access"]
        answer = httpx.get(
            f"http://{place['host']}:{place['port']}/ready",
            params={"nonce": nonce},
            headers={"Authorization": f"Bearer {token}"},
            timeout=10,
        )
        said = answer.json() if answer.is_success else {}
        if said.get("nonce") != nonce or said.get("lease") != self.lease:
            raise StoryFailed(f"the workload does not answer its tenant: {answer.text[:200]}")
        self.evidence(tenant_calls=f"answered with proof {said['proof'][:16]}…")

    def meter(self) -> None:
        """Watch windows being metered, signed, compared and charged."""
        self.step("the agent meters in signed windows; each is held against the promise")
        readings = self.buyer.wait_for(
            f"{WINDOWS_BEFORE_DISPUTE} charged windows",
            self._readings,
            lambda rows: len([row for row in rows if _is_charged(row)]) >= WINDOWS_BEFORE_DISPUTE,
        )
        batches = {
            batch["id"]: batch["digest"]
            for batch in self.buyer.list(f"leases/{self.lease}/batches/")
        }
        for row in readings:
            verdicts: dict[str, int] = {}
            for field in row["conformity"]:
                verdicts[field["verdict"]] = verdicts.get(field["verdict"], 0) + 1
            if len(row["conformity"]) < FEWEST_FIELDS:
                raise StoryFailed(f"window {row['window_index']} compares too few fields")
            counted = ", ".join(f"{count} {verdict}" for verdict, count in verdicts.items())
            amount = format_amount(int(row["amount_micros"]), decimals=6)
            digest = batches.get(row["batch"], "no batch")[:16]
            self.evidence(
                **{
                    f"window {row['window_index']}": f"{row['ready_seconds']} s ${amount}  "
                    f"batch {digest}…  {counted}"
                }
            )

    def _readings(self) -> list[dict[str, Any]]:
        rows = self.buyer.list(f"leases/{self.lease}/readings/")
        return sorted(rows, key=lambda row: int(row["window_index"]))

    def dispute(self) -> None:
        """Dispute a window as the buyer, and rule on it as the operator."""
        self.step("the buyer disputes a window; the operator lets half of it stand")
        reading = next(row for row in reversed(self._readings()) if _is_charged(row))
        visitor = self.people["buyer"]
        visitor.open(f"/leases/{self.lease}/")
        visitor.submit(reading=reading["id"], statement="My own timer saw the service stall.")
        (dispute,) = self.buyer.list("disputes/", lease=self.lease)
        self.disputed = dispute["id"]
        self.evidence(
            dispute=self.disputed,
            holds=f"${format_amount(int(dispute['held_micros']), decimals=6)}"
            f" of window {reading['window_index']}",
        )
        operator = self.people["operator"]
        self._rule()
        if "/reauthenticate/" in operator.url:  # a ruling moves money: prove who you are again
            operator.submit(password=self.deployment.cast["password"])
            self._rule()
        ruled = self.buyer.get(f"disputes/{self.disputed}/")
        if ruled["stands_bps"] != STANDS_BPS:
            raise StoryFailed(f"the ruling did not take; the operator is at {operator.url}")
        self.evidence(ruled=f"{ruled['stands_bps']} basis points stand: {ruled['ruling']}")

    def _rule(self) -> None:
        """Send the ruling form of the back office."""
        operator, key = self.people["operator"], from_public("dsp", self.disputed)
        operator.open(f"/operator/leases/dispute/{key}/rule/?stands_bps={STANDS_BPS}")
        operator.submit(stands_bps=str(STANDS_BPS), ruling="The witness saw half of the stall.")

    def end(self) -> None:
        """End the lease as the buyer; the agent stops and sends its last batch."""
        self.step("the buyer ends the lease; the agent stops and sends its final batch")
        visitor = self.people["buyer"]
        page = visitor.open(f"/leases/{self.lease}/")
        if f"/leases/{self.lease}/ending/" not in page:
            raise StoryFailed("the lease page offers no ending")
        visitor.submit(action=f"/leases/{self.lease}/ending/")
        lease = self.buyer.wait_for(
            "the lease's end",
            lambda: self.buyer.get(f"leases/{self.lease}/"),
            lambda seen: seen["state"] == "ended",
        )
        self.evidence(ended=f"{lease['ended_at']}, {lease['end_reason']}")

    def settle_accounts(self) -> list[str]:
        """Wait for the last dispute window, then hold the receipt against the ledger."""
        self.step("the last windows outlive their dispute window and settle; the rest returns")

        def is_settled(lease: dict[str, Any]) -> bool:
            money = lease["money"]
            waiting = ("open_micros", "disputed_micros", "reserved_micros", "unused_micros")
            return all(int(money[name]) == 0 for name in waiting)

        self.buyer.wait_for(
            "a settled lease", lambda: self.buyer.get(f"leases/{self.lease}/"), is_settled
        )
        wallet = self.buyer.get("wallet/")
        earnings = self.provider.get("earnings/")
        self.evidence(
            wallet=f"${format_amount(int(wallet['available_micros']), decimals=6)}",
            provider_earned=f"${format_amount(int(earnings['earned_micros']), decimals=6)}",
            simulated_nodes=agents.count_admitted(self.deployment),
        )
        self.step("the receipt, computed again from the ledger's rows")
        receipt = check_receipt(self.buyer, self.lease, self.deployment.environment["DATABASE_URL"])
        proof = self.deployment.manage("prove_books").strip()
        print(f"\n{receipt.text}\n\n  {proof}")
        return receipt.disagreements


def _is_charged(reading: Mapping[str, Any]) -> bool:
    return int(reading["amount_micros"]) > 0
