"""The agent that runs on a provider's machine; never imports Django."""
