"""Endpoints for the payment provider; verified by signature."""
