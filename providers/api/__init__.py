"""REST endpoints of this app."""
