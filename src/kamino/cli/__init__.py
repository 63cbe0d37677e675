"""The command line: the only part that prints."""

from kamino.cli.app import main

__all__ = ["main"]
