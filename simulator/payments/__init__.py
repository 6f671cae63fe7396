"""A stand-in for Stripe on loopback: a process of its own with state, for demos and tests only."""
