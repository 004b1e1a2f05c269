"""Cells left out of a table: with a proof, as agencies do it, and what an attacker makes of either."""

from tabulary.suppress.people import People
from tabulary.suppress.replay import Replay, replay
from tabulary.suppress.simulatable import SimulatableTable, simulatable
from tabulary.suppress.table import SuppressedTable

__all__ = ["People", "Replay", "SimulatableTable", "SuppressedTable", "replay", "simulatable"]
