"""What `bin/bench NAME` measures; one module a name."""
