"""The chart of accounts: kinds, codes, and how busy ones are sharded."""

import uuid

from fabric.lib.types import Choice

SHARDS = 16  # of accounts that every lease touches, so that no single row is hot
CASH = "cash:stripe"


class AccountKind(Choice):
    """What an account is for. `ledger_open_account` knows which of them are guarded."""

    WALLET = "wallet"
    ESCROW = "escrow"
    UNSETTLED = "unsettled"
    EARNED = "earned"
    FEE = "fee"
    CASH = "cash"
    ROUNDING = "rounding"


def wallet_code(organisation: str) -> str:
    """Name the wallet of a buyer organisation, given its public id."""
    return f"wallet:{organisation}"


def escrow_code(agreement: str) -> str:
    """Name the escrow of an agreement, given its public id."""
    return f"escrow:{agreement}"


def earned_code(organisation: str) -> str:
    """Name what a provider organisation has earned, given its public id."""
    return f"earned:{organisation}"


def shard_of(key: uuid.UUID) -> int:
    """Return the shard for an agreement; a UUIDv7 ends in random bits, so shards fill evenly."""
    return key.int % SHARDS


def unsettled_code(shard: int) -> str:
    """Name a shard of what is reserved but not yet settled."""
    return f"unsettled:{shard}"


def fee_code(share: str, shard: int) -> str:
    """Name a shard of the account of one fee share, such as `fee:margin:3`."""
    return f"fee:{share}:{shard}"
