"""The agent that runs on a provider's machine; never imports Django."""

from importlib.metadata import version

VERSION = version("fabric-agent")
