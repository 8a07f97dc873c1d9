"""The shim's entry."""

from __future__ import annotations


def main() -> int:
    """Be the stdio server until stdin closes; the exit code."""
    raise NotImplementedError
