"""What every REST endpoint is built on, and the endpoints of this app."""
