"""`python -m tabulary` is the command `tabulary`."""

from tabulary.cli import main

main()
