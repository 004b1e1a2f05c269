"""Cells left out of a table: with a proof, as agencies do it, and what an attacker makes of either."""

from tabulary.suppress.people import People
from tabulary.suppress.table import SuppressedTable

__all__ = ["People", "SuppressedTable"]
