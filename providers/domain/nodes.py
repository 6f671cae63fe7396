"""States, tiers and pools of a node, and the moves between its states."""

from fabric.lib.types import Choice


class Tier(Choice):
    """What a machine was admitted for, by benchmark."""

    DATA_CENTRE = "data_centre"
    PROFESSIONAL = "professional"
    COMMUNITY = "community"


class Pool(Choice):
    """Where capacity stands."""

    HOME = "home"
    EDGE = "edge"
    ENTERPRISE = "enterprise"
    CLOUD = "cloud"


class NodeState(Choice):
    """Where a machine is between enrolment and retirement."""

    ENROLLED = "enrolled"
    PROVING = "proving"
    ADMITTED = "admitted"
    HELD_BACK = "held_back"
    FENCED = "fenced"
    RETIRED = "retired"


MOVES: dict[NodeState, frozenset[NodeState]] = {
    NodeState.ENROLLED: frozenset({NodeState.PROVING, NodeState.HELD_BACK, NodeState.RETIRED}),
    NodeState.PROVING: frozenset(
        {NodeState.ADMITTED, NodeState.HELD_BACK, NodeState.FENCED, NodeState.RETIRED}
    ),
    NodeState.ADMITTED: frozenset(
        {NodeState.PROVING, NodeState.HELD_BACK, NodeState.FENCED, NodeState.RETIRED}
    ),
    NodeState.HELD_BACK: frozenset({NodeState.PROVING, NodeState.RETIRED}),
    NodeState.FENCED: frozenset({NodeState.PROVING, NodeState.HELD_BACK, NodeState.RETIRED}),
    NodeState.RETIRED: frozenset(),
}
