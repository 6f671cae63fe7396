"""Orders, leases, signed meter batches, readings, and disputes about them."""

from leases.models.disputes import Dispute
from leases.models.leases import Lease, LeaseTransition, LeaseUnit, LeaseWindow
from leases.models.metering import Batch, Reading, Stream, WitnessReading
from leases.models.orders import Order

__all__ = [
    "Batch",
    "Dispute",
    "Lease",
    "LeaseTransition",
    "LeaseUnit",
    "LeaseWindow",
    "Order",
    "Reading",
    "Stream",
    "WitnessReading",
]
