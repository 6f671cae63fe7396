"""What a challenge asks for, and how much of it, so that the machine is busy long enough."""

from collections.abc import Mapping, Sequence

from fabric_protocol import challenge
from providers.domain.bands import Band, select_band
from providers.domain.reports import Report

SECONDS = 2.5  # Long enough that the network's delay is small beside it.
SIMULATED_SECONDS = 2.5
UNKNOWN_GOPS_PER_CORE = 50.0  # A first guess where nobody has measured; the clock then tells.


def build_parameters(
    report: Report,
    *,
    report_digest: str,
    bands: Mapping[str, Sequence[Band]],
    simulated: bool,
) -> challenge.Parameters:
    """Return the work for every device of the report, sized by what its class is expected to do.

    A simulated node gets the same questions cut to milliseconds, by one stated factor.
    """
    cores = core_count(report)
    band = select_band(bands, "compute_gops", instruction_set=instruction_set(report), cores=cores)
    expected = band.expected if band else UNKNOWN_GOPS_PER_CORE * cores
    if simulated:
        return challenge.scaled_parameters(
            report=report_digest,
            units_mib=promised_mib(report),
            expected_gops=expected,
            seconds=SIMULATED_SECONDS,
        )
    return challenge.size_parameters(
        report=report_digest,
        units_mib=promised_mib(report),
        expected_gops=expected,
        cores=cores,
        seconds=SECONDS,
    )


def promised_mib(report: Report) -> dict[int, int]:
    """Return the memory to fill on each device: the whole unit's, or all slices' together."""
    memory: dict[int, int] = {}
    for device in report.devices:
        units = [unit for unit in report.units if unit.device == device.ordinal]
        whole = [unit.memory_mib for unit in units if unit.slots == (0, device.slots)]
        slices = [unit.memory_mib for unit in units if unit.slots != (0, device.slots)]
        memory[device.ordinal] = min(device.memory_mib, max([sum(slices), *whole]))
    return {ordinal: mib for ordinal, mib in memory.items() if mib}


def instruction_set(report: Report) -> str:
    """Return what the devices compute with; a node's devices are of one class."""
    return report.devices[0].instruction_set if report.devices else ""


def core_count(report: Report) -> int:
    """Return the cores the node states, at least one; only CPU classes are judged per core."""
    value = report.facts.get("cpu_cores", {}).get("value")
    if isinstance(value, bool) or not isinstance(value, int):
        return 1
    return min(max(1, value), 4096)
