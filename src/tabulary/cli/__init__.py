"""The command line: one file per command."""

from tabulary.cli.app import main

__all__ = ["main"]
