"""The command `fabric-agent`."""

import json
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from types import FrameType
from typing import Annotated, Any

import typer

from fabric_agent import VERSION
from fabric_agent.agent import describe_state
from fabric_agent.assemble import assemble, local_address, make_driver, work_folder
from fabric_agent.client import ControlPlane
from fabric_agent.config import Config
from fabric_agent.doctor import FAIL, PASS, examine
from fabric_agent.enrolment import enrol
from fabric_agent.health import limit_own_memory
from fabric_agent.listing_files import fetch_draft, publish_listing, write_draft
from fabric_agent.measure import measure_disk, measure_work
from fabric_agent.metering.outbox import Outbox
from fabric_agent.problems import AgentProblem, ConfigProblem, Refused
from fabric_agent.simulation import enrolled_folders, plan_nodes, prepare_node, run_nodes
from fabric_agent.state import DEFAULT_FOLDER, StateFolder

app = typer.Typer(
    help="Proves this machine to a Fabric exchange, runs leases on it and meters them.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
STATE_VARIABLE = "FABRIC_AGENT_STATE"
StateOption = Annotated[
    Path, typer.Option("--state", envvar=STATE_VARIABLE, help="The agent's folder.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]


@contextmanager
def _problems_shown() -> Iterator[None]:
    """Show expected failures plainly: what, which fields, what to do; exit 1."""
    try:
        yield
    except AgentProblem as problem:
        _say_error(f"{problem.code}: {problem.message}")
        fields = problem.fields if isinstance(problem, ConfigProblem | Refused) else []
        for field in fields:
            if isinstance(field, str):
                _say_error(f"  {field}")
                continue
            name, reason, accepted = field
            _say_error(f"  {name}: {reason}" + (f" (accepted: {accepted})" if accepted else ""))
        if problem.remedy:
            _say_error(f"  {problem.remedy}")
        raise typer.Exit(1) from problem


def _version(*, value: bool) -> None:
    if value:
        typer.echo(VERSION)
        raise typer.Exit


@app.callback()
def root(
    *,
    version: Annotated[  # noqa: ARG001 - acted on by its callback
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print and leave.")
    ] = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Log more.")] = False,
) -> None:
    """Set up logging for every command."""
    logging.basicConfig(
        level=logging.DEBUG if verbose else logging.INFO,
        format="%(asctime)s %(levelname)s %(name)s %(message)s",
        stream=sys.stderr,
    )
    logging.getLogger("httpx").setLevel(logging.WARNING)
    logging.getLogger("httpcore").setLevel(logging.WARNING)


@app.command()
def enroll(
    url: Annotated[str, typer.Option(help="The exchange's address.")],
    token: Annotated[
        str, typer.Option(help="The token from the provider page.", envvar="FABRIC_ENROLMENT_TOKEN")
    ],
    *,
    name: Annotated[str, typer.Option(help="The node's name; the host's by default.")] = "",
    memory_mib: Annotated[
        int, typer.Option(min=256, help="Memory the unit promises, in MiB.")
    ] = 1024,
    allow_http: Annotated[bool, typer.Option(help="Allow an address without TLS.")] = False,
    state: StateOption = DEFAULT_FOLDER,
) -> None:
    """Make this machine's key, prove that it is held here, and become a node."""
    with _problems_shown():
        address = local_address(url)
        config = Config(unit_memory_mib=memory_mib, listen_host=address, advertise_host=address)
        identity = enrol(
            StateFolder(state),
            url=url,
            token=token,
            name=name,
            allow_http=allow_http,
            config=config,
        )
        typer.echo(f"Enrolled as {identity.node_id} of {identity.provider}.")
        typer.echo(f"Look through {StateFolder(state).config_path}, then: fabric-agent run")


@app.command()
def run(*, state: StateOption = DEFAULT_FOLDER) -> None:
    """Report, answer challenges, run leases and meter them until told to stop."""
    folder = StateFolder(state)
    with _problems_shown(), folder.only_agent():
        agent = assemble(folder)
        limit_own_memory()
        _on_signals(agent.stop)
        agent.run()


@app.command()
def doctor(*, as_json: JsonOption = False, state: StateOption = DEFAULT_FOLDER) -> None:
    """Say, without the network, what would pass and what would fail, and what to do."""
    checks = examine(StateFolder(state))
    if as_json:
        _print_json({"checks": [check.as_document() for check in checks]})
    else:
        for check in checks:
            typer.echo(f"{check.result.upper():4}  {check.code:22} {check.what}")
            if check.result != PASS:
                typer.echo(f"      cause:  {check.cause}")
                typer.echo(f"      remedy: {check.remedy}")
    if any(check.result == FAIL for check in checks):
        raise typer.Exit(1)


@app.command()
def bench(
    *,
    runs: Annotated[int, typer.Option(min=1, max=100, help="How often.")] = 3,
    memory_mib: Annotated[int, typer.Option(min=16, help="Memory to fill, in MiB.")] = 256,
    as_json: JsonOption = False,
    state: StateOption = DEFAULT_FOLDER,
) -> None:
    """Run the challenge's work on a nonce of our own and show its rates."""
    with _problems_shown():
        folder = StateFolder(state)
        where = state if state.exists() else Path.cwd()
        driver = make_driver(_config(folder), node="bench", work_folder=where)
        speeds = [measure_work(memory_mib=memory_mib) for _ in range(runs)]
        disk = measure_disk(where)
        if as_json:
            _print_json(
                {
                    "driver": driver.name,
                    "runs": [asdict(speed) for speed in speeds],
                    "disk": asdict(disk),
                }
            )
            return
        for speed in speeds:
            typer.echo(
                f"{speed.compute_gops:10.1f} GOPS   {speed.memory_bandwidth_gb_s:7.2f} GB/s"
                f"   ({speed.product_seconds:.2f} s + {speed.memory_seconds:.2f} s)"
            )
        typer.echo(f"disk: read {disk.read_mb_s} MB/s, write {disk.write_mb_s} MB/s")


@app.command()
def read(*, state: StateOption = DEFAULT_FOLDER) -> None:
    """Print what this machine is, as the report would say it, in JSON."""
    with _problems_shown():
        folder = StateFolder(state)
        config = _config(folder)
        where = work_folder(folder, config)
        driver = make_driver(
            config, node="read", work_folder=where if where.exists() else Path.cwd()
        )
        found = driver.inventory(isolation="none", runtime="none")
        _print_json({"driver": found.driver, "facts": found.facts, "devices": found.devices})


@app.command()
def draft(
    *,
    price_micros: Annotated[
        int, typer.Option(min=1, help="Micro-units for each hour of one accelerator.")
    ],
    state: StateOption = DEFAULT_FOLDER,
) -> None:
    """Print a listing file that promises what this node has shown, to look through and publish."""
    with _problems_shown():
        typer.echo(
            write_draft(fetch_draft(StateFolder(state)), price_micros=price_micros), nl=False
        )


@app.command()
def publish(
    listing: Annotated[Path, typer.Argument(help="A YAML file; see the how-to on listings.")],
    *,
    state: StateOption = DEFAULT_FOLDER,
) -> None:
    """Offer this node's capacity as a listing file says."""
    with _problems_shown():
        published = publish_listing(StateFolder(state), listing)
        typer.echo(f"{published.get('id')}: {published.get('state')}")
        _print_json(published)


@app.command()
def status(*, as_json: JsonOption = False, state: StateOption = DEFAULT_FOLDER) -> None:
    """Show how the exchange sees this node, and what waits here."""
    with _problems_shown():
        folder = StateFolder(state)
        identity = folder.identity()
        outbox = Outbox(folder.outbox_path)
        try:
            local = describe_state(outbox)
        finally:
            outbox.close()
        plane = ControlPlane(
            identity.url, key=folder.key(), server_key=identity.server_key, tries=2
        )
        try:
            seen: dict[str, Any] = plane.get("nodes/self/").document()
        finally:
            plane.close()
        if as_json:
            _print_json({"node": identity.node_id, "exchange": seen, "leases": local})
            return
        typer.echo(f"{identity.node_id}: {seen.get('state')} {seen.get('tier') or ''}".rstrip())
        for reason in seen.get("held_back_reasons") or []:
            typer.echo(f"  held back: {reason.get('code')}: {reason.get('detail')}")
            typer.echo(f"    {reason.get('remedy')}")
        for lease in local:
            typer.echo(
                f"  {lease['lease']}: {lease['state']}, paid until {lease['paid_until']},"
                f" {lease['batches_waiting']} batches wait"
            )


@app.command()
def simulate(
    url: Annotated[str, typer.Option(help="The exchange's address.")],
    *,
    token_file: Annotated[
        Path | None, typer.Option(help="Tokens for simulation, one a line; - for standard input.")
    ] = None,
    profile: Annotated[list[str] | None, typer.Option(help="Classes, in turn.")] = None,
    devices: Annotated[int, typer.Option(min=1, max=64, help="Devices per node.")] = 1,
    prefix: Annotated[str, typer.Option(help="How the nodes' names begin.")] = "sim-",
    allow_http: Annotated[bool, typer.Option(help="Allow an address without TLS.")] = False,
    state: StateOption = DEFAULT_FOLDER,
) -> None:
    """Run nodes that are not there, each enrolled with a token an operator made for simulation."""
    with _problems_shown():
        nodes = plan_nodes(
            _read_tokens(token_file), profiles=profile or [], devices=devices, prefix=prefix
        )
        StateFolder(state).prepare()
        for node in nodes:
            prepare_node(node, url=url, folder=state, allow_http=allow_http)
        stop = threading.Event()
        _on_signals(stop.set)
        run_nodes(enrolled_folders(state), stop)


def _config(folder: StateFolder) -> Config:
    return folder.config() if folder.config_path.exists() else Config()


def _read_tokens(path: Path | None) -> list[str]:
    if path is None:
        return []
    text = sys.stdin.read() if str(path) == "-" else path.read_text(encoding="utf-8")
    return [line.strip() for line in text.splitlines() if line.strip()]


def _on_signals(act: Callable[[], object]) -> None:
    def handle(number: int, frame: FrameType | None) -> None:  # noqa: ARG001
        act()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, handle)


def _print_json(document: dict[str, Any]) -> None:
    typer.echo(json.dumps(document, indent=2, sort_keys=False))


def _say_error(text: str) -> None:
    typer.echo(text, err=True)


def main() -> None:
    """Run the command; for `python -m fabric_agent`."""
    os.umask(0o077)
    app()
