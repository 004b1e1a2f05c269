"""Synthetic records: rows that reproduce tables and describe no real person."""

from tabulary.synth.from_release import from_release
from tabulary.synth.graphical import graphical
from tabulary.synth.mwem import mwem
from tabulary.synth.rap import rap
from tabulary.synth.rows import SyntheticRecords
from tabulary.synth.utility import MarginFit, Utility, utility

__all__ = [
    "MarginFit",
    "SyntheticRecords",
    "Utility",
    "from_release",
    "graphical",
    "mwem",
    "rap",
    "utility",
]
