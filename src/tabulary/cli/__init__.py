"""The command line: one file a command."""

from tabulary.cli.app import main

__all__ = ["main"]
