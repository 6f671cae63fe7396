"""Agreements, the ledger, usage records and card payments."""

from billing.models.agreements import Agreement, Terms
from billing.models.cards import PaymentCustomer, StripeEvent, TopUp
from billing.models.ledger import Account, Entry, Transfer
from billing.models.usage import Reservation, SettlementRun, UsageRecord

__all__ = [
    "Account",
    "Agreement",
    "Entry",
    "PaymentCustomer",
    "Reservation",
    "SettlementRun",
    "StripeEvent",
    "Terms",
    "TopUp",
    "Transfer",
    "UsageRecord",
]
