"""Measurements of the real system: benches, simulations, and the story of the demo."""
