"""From readiness seen to signed batches that survive anything, and their receipts."""
