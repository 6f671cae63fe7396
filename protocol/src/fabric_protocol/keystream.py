"""Keyed bytes that both sides of a challenge can make at any place, and no one beforehand.

AES-128 in counter mode: exact and the same in every language, quick where the processor has AES,
and addressable, so that the checker makes the few blocks it needs and not the whole range.
"""

import hashlib
from typing import Any

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]
BLOCK_BYTES = 16
_CHUNK_BYTES = 1 << 20
_ZEROS = bytes(_CHUNK_BYTES)


def derive(secret: bytes, label: str, *parts: int) -> bytes:
    """Return 32 bytes that belong to this secret, purpose and place only."""
    text = ":".join([label, *(str(part) for part in parts)])
    return hashlib.sha256(b"fabric-challenge-v1\n" + text.encode() + b"\n" + secret).digest()


def stream(key: bytes, count: int) -> Bytes:
    """Return the first `count` bytes of the stream of `key`."""
    out = np.empty(count, dtype=np.uint8)
    fill(key, out)
    return out


def fill(key: bytes, out: Bytes, *, first_block: int = 0) -> None:
    """Write the stream of `key`, from block `first_block` on, over the whole of `out`."""
    encryptor = Cipher(
        algorithms.AES128(key[:BLOCK_BYTES]), modes.CTR(first_block.to_bytes(BLOCK_BYTES, "big"))
    ).encryptor()
    for start in range(0, len(out), _CHUNK_BYTES):
        part = out[start : start + _CHUNK_BYTES]
        encryptor.update_into(memoryview(_ZEROS)[: len(part)], part.data)


def integers(key: bytes, count: int, below: int) -> NDArray[np.int64]:
    """Return `count` integers in `[0, below)`; the bias of the remainder is below 2^-31."""
    words = stream(key, 8 * count).view("<u8")
    return (words % np.uint64(below)).astype(np.int64)


def cells(key: bytes, indices: NDArray[np.int64], cell_bytes: int) -> Bytes:
    """Return the cells at `indices` of the stream that `fill` writes, one row each."""
    blocks = cell_bytes // BLOCK_BYTES
    counters = np.zeros((len(indices), blocks, 2), dtype=">u8")
    counters[:, :, 1] = indices[:, None] * blocks + np.arange(blocks)
    out = encrypt_blocks(block_cipher(key), counters.view(np.uint8).reshape(-1))
    return out.reshape(len(indices), cell_bytes)


def block_cipher(key: bytes) -> Any:
    """Return AES-128 on single blocks, to be used with `encrypt_blocks`."""
    return Cipher(algorithms.AES128(key[:BLOCK_BYTES]), modes.ECB()).encryptor()  # noqa: S305


def encrypt_blocks(cipher: Any, data: Bytes) -> Bytes:
    """Return every 16-byte block of `data` encrypted by itself."""
    out = np.empty(len(data) + BLOCK_BYTES - 1, dtype=np.uint8)
    cipher.update_into(data.data, out.data)
    return out[: len(data)]
