"""`python -m fabric_agent` is `fabric-agent`."""

from fabric_agent.cli import main

main()
