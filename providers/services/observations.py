"""Writing down facts about a node's conduct, in the transaction in which they became facts."""

from datetime import datetime

from providers.models import Node, Observation


def record_observation(
    *,
    node: Node,
    kind: str,
    value: float,
    evidence: str,
    now: datetime,
    counterparty: str = "",
    weight: float = 1.0,
) -> Observation:
    """Append an observation.

    `kind` is a noun such as `admission` or `window_metered`; `evidence` is the public id of the
    record behind it; `counterparty` names the control group it was seen with, so that self-deals
    can be left out.
    """
    return Observation.objects.create(
        node=node,
        kind=kind,
        value=value,
        weight=weight,
        counterparty=counterparty,
        evidence=evidence,
        at=now,
    )
