"""From a batch, or from its absence, to a reading, its conformity and its usage record."""

from datetime import datetime
from typing import Any

from billing.models import Terms, UsageRecord
from billing.services import usage
from leases.domain.batches import MeterBatch
from leases.domain.consequences import Compared, Consequence, consequence_of
from leases.domain.metering import Probe, billable
from leases.domain.states import WindowState, WitnessKind
from leases.domain.windows import Coverage
from leases.models import Batch, Lease, LeaseWindow, Reading, WitnessReading
from listings.domain.bodies import kind_of
from listings.domain.conformity import RULES_VERSION, compare

UNMETERED = "unmetered"


def record_reading(
    *, lease: Lease, terms: Terms, body: MeterBatch, batch: Batch, now: datetime
) -> tuple[Reading, Consequence]:
    """Write the reading of an accepted batch with what it costs, and say what follows from it.

    Windows before it that nobody metered become explicit zeros: the chain has passed them.
    """
    if lease.ready_at is None:
        raise RuntimeError("a lease that was never ready has no reading")
    record_unmetered(lease=lease, terms=terms, before_index=body.window_index, now=now)
    window = lease.windows.filter(window_index=body.window_index).first()
    coverage = _coverage(window)
    bill = billable(
        body,
        coverage=coverage,
        ready_at=lease.ready_at,
        stopped_at=lease.stop_requested_at,
        probes=_probes(lease, body.window_index),
    )
    verdicts = _compare(lease, terms, body.observed)
    reading = Reading.objects.create(
        lease=lease,
        batch=batch,
        window_index=body.window_index,
        starts_at=body.starts_at,
        ends_at=body.ends_at,
        claimed_seconds=body.ready_seconds,
        witnessed_seconds=bill.witnessed_seconds,
        ready_seconds=bill.seconds,
        caps=[{"rule": cap.rule, "seconds": cap.seconds} for cap in bill.caps],
        observed=body.observed,
        conformity=verdicts,
        rules_version=RULES_VERSION,
        usage_record=_charge(
            lease=lease,
            terms=terms,
            window_index=body.window_index,
            starts_at=body.starts_at,
            ends_at=body.ends_at,
            ready_seconds=bill.seconds,
            evidence=bytes(batch.digest).hex(),
            now=now,
        ),
        received_at=batch.received_at,
    )
    _mark_metered(window)
    return reading, consequence_of(
        Compared(field=item["field"], verdict=item["verdict"]) for item in verdicts
    )


def record_unmetered(
    *, lease: Lease, terms: Terms, before_index: int | None, now: datetime
) -> list[Reading]:
    """Write explicit zeros for reserved windows that have no reading and will get none."""
    windows = lease.windows.reserved().order_by("window_index")
    if before_index is not None:
        windows = windows.filter(window_index__lt=before_index)
    readings = []
    for window in windows:
        readings.append(
            Reading.objects.create(
                lease=lease,
                batch=None,
                window_index=window.window_index,
                starts_at=window.starts_at,
                ends_at=window.ends_at,
                claimed_seconds=0,
                witnessed_seconds=None,
                ready_seconds=0,
                observed={},
                conformity=_compare(lease, terms, {}),
                rules_version=RULES_VERSION,
                usage_record=_charge(
                    lease=lease,
                    terms=terms,
                    window_index=window.window_index,
                    starts_at=window.starts_at,
                    ends_at=window.ends_at,
                    ready_seconds=0,
                    evidence=UNMETERED,
                    now=now,
                ),
                received_at=now,
            )
        )
        _mark_metered(window)
    return readings


def _charge(
    *,
    lease: Lease,
    terms: Terms,
    window_index: int,
    starts_at: datetime,
    ends_at: datetime,
    ready_seconds: int,
    evidence: str,
    now: datetime,
) -> UsageRecord:
    return usage.record_usage(
        agreement=lease.agreement,
        terms=terms,
        window_index=window_index,
        starts_at=starts_at,
        ends_at=ends_at,
        ready_seconds=ready_seconds,
        evidence=evidence,
        meter_party=lease.provider.organisation.public_id,
        now=now,
    )


def _coverage(window: LeaseWindow | None) -> Coverage | None:
    if window is None or window.state != WindowState.RESERVED:
        return None
    return window.coverage


def _mark_metered(window: LeaseWindow | None) -> None:
    if window is not None and window.state == WindowState.RESERVED:
        LeaseWindow.objects.filter(pk=window.pk).update(state=WindowState.METERED)


def _probes(lease: Lease, window_index: int) -> list[Probe]:
    rows = WitnessReading.objects.filter(
        lease=lease, window_index=window_index, kind=WitnessKind.CONTROL_PLANE
    )
    return [Probe(at=row.at, reachable=row.observed.get("reachable") is True) for row in rows]


def _compare(lease: Lease, terms: Terms, observed: dict[str, Any]) -> list[dict[str, Any]]:
    """Compare with the promise of the signed terms, never with the listing as it is today."""
    specs = kind_of(lease.revision.body).fields
    return [verdict.as_dict() for verdict in compare(specs, terms.body["promise"], observed)]
