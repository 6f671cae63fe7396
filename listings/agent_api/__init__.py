"""Endpoints for agents; signed on both sides."""
