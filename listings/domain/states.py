"""Where a listing stands, and the moves between."""

from fabric.lib.types import Choice


class ListingState(Choice):
    """What a buyer may do with a listing."""

    CHECKING = "checking"
    PUBLISHED = "published"
    REFUSED = "refused"
    WITHDRAWN = "withdrawn"


MOVES: dict[ListingState, frozenset[ListingState]] = {
    ListingState.CHECKING: frozenset(
        {ListingState.PUBLISHED, ListingState.REFUSED, ListingState.WITHDRAWN}
    ),
    ListingState.PUBLISHED: frozenset({ListingState.CHECKING, ListingState.WITHDRAWN}),
    ListingState.REFUSED: frozenset({ListingState.CHECKING, ListingState.WITHDRAWN}),
    ListingState.WITHDRAWN: frozenset({ListingState.CHECKING}),
}


class Suitability(Choice):
    """A kind of work a listing can be good for."""

    SERVING = "serving"
    TRAINING = "training"
    BATCH = "batch"
