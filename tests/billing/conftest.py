"""The payment stand-in for the tests of billing."""

from tests.standin import connected_standin, own_standin, shared_standin, standin

__all__ = ["connected_standin", "own_standin", "shared_standin", "standin"]
