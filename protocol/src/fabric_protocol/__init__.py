"""What control plane, agent and SDK agree on, byte by byte; plain Python, no Django."""
