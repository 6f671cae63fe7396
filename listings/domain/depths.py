"""Who carries what, by depth of stack: said before anything is ordered."""

from dataclasses import dataclass

from fabric.lib.types import Choice


class Carrier(Choice):
    """Who does a duty."""

    YOU = "you"
    PROVIDER = "provider"
    EXCHANGE = "exchange"


@dataclass(frozen=True)
class Duty:
    """One duty of running a workload, who carries it, and what that means here."""

    name: str
    carrier: Carrier
    meaning: str


DEPTHS: dict[str, tuple[str, tuple[Duty, ...]]] = {
    "container": (
        "container on an accelerator",
        (
            Duty("Runtime", Carrier.PROVIDER, "the agent starts the container and its endpoint"),
            Duty("Batching", Carrier.YOU, "inside what you run"),
            Duty("Scaling", Carrier.YOU, "order more units, or end some"),
            Duty("Health", Carrier.EXCHANGE, "probed from outside in every window"),
            Duty("Peak", Carrier.YOU, "units are yours while paid; more only while some are free"),
        ),
    )
}
