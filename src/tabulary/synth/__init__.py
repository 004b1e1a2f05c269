"""Synthetic records: rows that reproduce tables and stand for nobody."""

from tabulary.synth.from_release import from_release
from tabulary.synth.rows import SyntheticRecords
from tabulary.synth.utility import Utility, utility

__all__ = ["SyntheticRecords", "Utility", "from_release", "utility"]
