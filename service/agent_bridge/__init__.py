"""agent-bridge: one memory for every coding agent, and a line between them."""

__version__ = "0.1.0"
