"""How far private tables are from the truth where tables are large and sparse, then and now.

The experiments of Yang, Fienberg & Rinaldo on their four tables, their mechanisms as published and with exact
calibration, and beside them what this package does for the same margins at the same ε.
"""

from tabulary_papers.sparse_tables.study import GRID, PAPER_GRID, SparseTables

__all__ = ["GRID", "PAPER_GRID", "SparseTables"]
