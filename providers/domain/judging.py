"""The judge: from the answered work and the server's clock to a verdict with reasons."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fabric_protocol import challenge
from providers.domain.bands import Band, Place, select_band
from providers.domain.challenges import Verdict
from providers.domain.reasons import Reason

_WORDS = {"compute_gops": "Compute", "memory_bandwidth_gb_s": "Memory bandwidth"}


@dataclass(frozen=True)
class Exchange:
    """One finished challenge, as the server recorded it."""

    nonce: bytes
    parameters: challenge.Parameters
    commitment: dict[str, Any]
    opening: dict[str, Any]
    answer: dict[str, Any]
    commit_seconds: float
    read_back_seconds: float
    simulated: bool


@dataclass(frozen=True)
class Machine:
    """What is judged: the class's ranges, and what the ranges depend on."""

    bands: Mapping[str, Sequence[Band]]
    instruction_set: str
    cores: int
    promised_mib: int


@dataclass(frozen=True)
class Judgement:
    """What came of it. Figures carry the range they were held against."""

    verdict: Verdict
    figures: dict[str, dict[str, Any]]
    reasons: tuple[Reason, ...]


def judge(exchange: Exchange, machine: Machine) -> Judgement:
    """Check the work, take the figures from the server's time, hold them against both ends.

    Wrong work or a lie about time fails whatever the speed. A figure that no range exists for
    leaves the whole unjudged: neither passed nor failed.
    """
    wrong = [*_check_work(exchange), *_check_read_back(exchange)]
    if wrong:
        return Judgement(Verdict.FAILED, {}, tuple(wrong))
    try:
        timings = challenge.trusted_timings(
            exchange.answer.get("timings"), commit_seconds=seconds_of(exchange)
        )
    except ValueError as error:
        return Judgement(Verdict.FAILED, {}, (_not_credible(error),))
    count = len(exchange.parameters.devices)
    figures = {
        name: {**figure, "devices": count}
        for name, figure in challenge.figures(exchange.parameters, timings).items()
    }
    reasons = [_place(figures, figure, machine) for figure in machine.bands]
    figures["memory_mib"] = _memory_figure(exchange, machine)
    found = [reason for reason in reasons if reason is not None]
    if any(reason.code != "NO_REFERENCE" for reason in found):
        return Judgement(Verdict.FAILED, figures, tuple(found))
    if found or not machine.bands:
        return Judgement(Verdict.CANNOT_JUDGE, figures, tuple(found or [_no_reference("class")]))
    return Judgement(Verdict.PASSED, figures, ())


def is_only_slow(judgement: Judgement) -> bool:
    """Whether every finding is about speed, which a busy moment of an honest machine explains."""
    return judgement.verdict == Verdict.FAILED and all(
        reason.code.endswith("_TOO_SLOW") for reason in judgement.reasons
    )


def seconds_of(exchange: Exchange) -> float:
    """Return the seconds from nonce to commitment: ours, or a simulated node's virtual ones.

    A virtual clock counts only on a node that an operator enrolled as simulated.
    """
    if not exchange.simulated:
        return exchange.commit_seconds
    timings = exchange.answer.get("timings")
    if not isinstance(timings, dict) or exchange.answer.get("virtual_clock") is not True:
        return exchange.commit_seconds
    try:
        return float(timings["product_seconds"]) + float(timings["memory_seconds"])
    except (KeyError, TypeError, ValueError):
        return exchange.commit_seconds


def _check_work(exchange: Exchange) -> list[Reason]:
    if exchange.answer.get("virtual_clock") is True and not exchange.simulated:
        return [
            Reason(
                "VIRTUAL_CLOCK",
                "challenge",
                "the server's clock",
                "a virtual clock",
                "The answer brings a clock of its own.",
                "Run the agent without the simulated driver.",
            )
        ]
    if exchange.answer.get("report") != exchange.parameters.report:
        return [
            Reason(
                "OTHER_INVENTORY",
                "challenge",
                exchange.parameters.report[:12],
                str(exchange.answer.get("report"))[:12],
                "The answer is about another hardware report.",
                "Send the report again and run the test again.",
            )
        ]
    findings = challenge.check_answer(
        nonce=exchange.nonce,
        parameters=exchange.parameters,
        commitment=exchange.commitment,
        opening=exchange.opening,
        answer=exchange.answer.get("devices"),
    )
    return [
        Reason(
            finding.code,
            "challenge",
            "the work that was asked for",
            "something else",
            finding.detail[0].upper() + finding.detail[1:] + ".",
            "Check the device's memory and cooling, then run the test again.",
        )
        for finding in findings
    ]


def _check_read_back(exchange: Exchange) -> list[Reason]:
    """Refuse a slow read-back: a dropped cell can be made again, but not as fast as it is read."""
    limit = challenge.read_back_limit_seconds(exchange.parameters)
    if exchange.read_back_seconds <= limit:
        return []
    return [
        Reason(
            "READ_BACK_TOO_SLOW",
            "memory_mib",
            f"within {limit:.1f} s",
            f"{exchange.read_back_seconds:.1f} s",
            "Reading the memory back took longer than memory that is held takes.",
            "Stop what swaps or shares this memory, then run the test again.",
        )
    ]


def _place(figures: dict[str, dict[str, Any]], figure: str, machine: Machine) -> Reason | None:
    """Write the range beside the figure; return the reason if it lies outside or has none."""
    measured = figures.get(figure)
    if measured is None:
        return None
    band = select_band(
        machine.bands, figure, instruction_set=machine.instruction_set, cores=machine.cores
    )
    if band is None:
        return _no_reference(figure)
    place = band.place(float(measured["value"]))
    measured |= {
        "low": band.low,
        "high": band.high,
        "source": band.source,
        "sample_size": band.sample_size,
        "place": place.value,
    }
    if place == Place.INSIDE:
        return None
    word, unit = _WORDS.get(figure, figure), measured["unit"]
    slow = place == Place.TOO_SLOW
    return Reason(
        f"{figure.upper()}_{place.upper()}",
        figure,
        f"{_plain(band.low)} to {_plain(band.high)} {unit}",
        measured["value"],
        f"{word} of {_plain(measured['value'])} {unit} is {'below' if slow else 'above'} the"
        " class's range.",
        "Stop other work on the node, check its power and cooling, then run the test again."
        if slow
        else "Check which class the device is of; a figure this good is not believed for this one.",
    )


def _plain(number: float) -> str:
    """Write a figure for a sentence: thousands with commas, small ones with what matters."""
    return f"{number:,.0f}" if abs(number) >= 1000 else f"{number:.4g}"


def _memory_figure(exchange: Exchange, machine: Machine) -> dict[str, Any]:
    touched = exchange.parameters.bytes_touched
    how = "scaled down and simulated" if exchange.simulated else "held at once"
    return {
        "value": machine.promised_mib,
        "unit": "MiB",
        "method": "95 % of it filled, mixed in place and read back under a nonce",
        "range_bytes": str(exchange.parameters.range_bytes),
        "bytes_touched": str(touched),
        "read_back_seconds": round(exchange.read_back_seconds, 3),
        "limit": exchange.answer.get("memory_limit") or {},
        "how": how,
    }


def _no_reference(figure: str) -> Reason:
    return Reason(
        "NO_REFERENCE",
        figure,
        "a reference range",
        "none",
        f"Nobody has measured {figure} on such a machine yet; it can be neither believed nor not.",
        "Send fabric-agent bench --json to the operator, who adds the range.",
    )


def _not_credible(error: ValueError) -> Reason:
    return Reason(
        "TIMINGS_NOT_CREDIBLE",
        "challenge",
        "times within the server's",
        "other times",
        f"{str(error)[0].upper()}{str(error)[1:]}.",
        "Update the agent and set the node's clock, then run the test again.",
    )
