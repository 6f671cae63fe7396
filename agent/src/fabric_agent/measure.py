"""Timed reads and writes of the work folder, and short runs of the challenge's own work."""

import mmap
import os
import secrets
import time
from dataclasses import dataclass
from pathlib import Path

from fabric_protocol import challenge, memory, product

DISK_MIB = 64
_BLOCK = 1 << 20


@dataclass(frozen=True)
class DiskSpeed:
    """Sequential speeds in MB/s; `direct` says whether the page cache was kept out of it."""

    read_mb_s: float
    write_mb_s: float
    direct: bool


@dataclass(frozen=True)
class WorkSpeed:
    """Rates of one run of the challenge's work, and the seconds each part took."""

    compute_gops: float
    memory_bandwidth_gb_s: float
    product_seconds: float
    memory_seconds: float


def measure_disk(folder: Path, *, mib: int = DISK_MIB) -> DiskSpeed:
    """Write and read back a file of random bytes; OSError when the folder does not allow it."""
    path = folder / f".disk-{secrets.token_hex(4)}"
    buffer = mmap.mmap(-1, _BLOCK)
    buffer.write(secrets.token_bytes(_BLOCK))
    direct = getattr(os, "O_DIRECT", 0)
    try:
        try:
            write_s = _timed_write(path, buffer, mib, direct)
        except OSError:  # tmpfs and some network file systems have no direct access.
            direct = 0
            write_s = _timed_write(path, buffer, mib, direct)
        read_s = _timed_read(path, buffer, mib, direct)
    finally:
        path.unlink(missing_ok=True)
        buffer.close()
    megabytes = mib * _BLOCK / 1e6
    return DiskSpeed(
        read_mb_s=round(megabytes / read_s, 1),
        write_mb_s=round(megabytes / write_s, 1),
        direct=bool(direct),
    )


def measure_work(*, n: int = 2048, rounds: int = 2, memory_mib: int = 256) -> WorkSpeed:
    """Run the challenge's own work on a nonce of our own and return its rates."""
    parameters = challenge.Parameters(
        report="",
        devices=(
            challenge.DeviceWork(
                ordinal=0,
                product=product.ProductWork(n=n, rounds=rounds),
                memory=memory.MemoryWork.covering(memory_mib << 20),
            ),
        ),
    )
    prover = challenge.Prover(challenge.new_nonce(), parameters)
    try:
        prover.commit()
    finally:
        prover.close()
    timings = prover.timings
    return WorkSpeed(
        compute_gops=round(parameters.operations / timings["product_seconds"] / 1e9, 2),
        memory_bandwidth_gb_s=round(parameters.bytes_touched / timings["memory_seconds"] / 1e9, 3),
        product_seconds=round(timings["product_seconds"], 3),
        memory_seconds=round(timings["memory_seconds"], 3),
    )


def _timed_write(path: Path, buffer: mmap.mmap, mib: int, direct: int) -> float:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | direct, 0o600)
    try:
        start = time.perf_counter()
        for _ in range(mib):
            os.write(descriptor, buffer)
        os.fsync(descriptor)
        return max(time.perf_counter() - start, 1e-6)
    finally:
        os.close(descriptor)


def _timed_read(path: Path, buffer: mmap.mmap, mib: int, direct: int) -> float:
    descriptor = os.open(path, os.O_RDONLY | direct)
    try:
        if not direct:
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        start = time.perf_counter()
        for _ in range(mib):
            os.readv(descriptor, [buffer])
        return max(time.perf_counter() - start, 1e-6)
    finally:
        os.close(descriptor)
