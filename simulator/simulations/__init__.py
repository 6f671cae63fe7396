"""What `bin/simulate NAME` plays; one module a name."""
