"""Who acts: what every service takes as `actor`."""

import uuid
from dataclasses import dataclass, field

from fabric.accounts.domain.roles import Right
from fabric.lib.errors import NotAllowed


@dataclass(frozen=True)
class Actor:
    """A person, an API key, a node, an operator or the exchange itself, acting for one tenant.

    `id` is the public id that events and audit entries name (`usr_…`, `key_…`, `nod_…`, or
    `exchange` for sweeps). `organisation_id` is the tenant's key, None for operators and sweeps.
    """

    id: str
    organisation_id: uuid.UUID | None = None
    rights: frozenset[Right] = field(default_factory=frozenset)
    project_id: uuid.UUID | None = None
    is_operator: bool = False

    def require(self, right: Right) -> None:
        """Raise NotAllowed unless this actor has `right` in its organisation."""
        if right not in self.rights:
            raise NotAllowed(f"This needs the right to {right.value.replace('_', ' ')}.")

    def require_operator(self) -> None:
        """Raise NotAllowed unless this actor is an operator of the exchange."""
        if not self.is_operator:
            raise NotAllowed("Only an operator of the exchange may do this.")


EXCHANGE = Actor(id="exchange", is_operator=True)
