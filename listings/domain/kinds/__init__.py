"""Kinds of listing. A kind is data: fields with units and tolerances, a price form, and advice.

Orders, escrow, metering and settlement read these tables and know no field by name, so a kind that
is no accelerator needs a table here and nothing else.
"""

from listings.domain.kinds.accelerator import ACCELERATOR
from listings.domain.kinds.schema import Kind

KINDS: dict[str, Kind] = {ACCELERATOR.name: ACCELERATOR}


def find_kind(name: str) -> Kind:
    """Return the kind called `name`; KeyError when no such kind is registered."""
    return KINDS[name]
