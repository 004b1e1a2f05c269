"""The vocabulary: domains, workloads, tables, privacy. Frozen values; no input or output, no randomness."""

from typing import TYPE_CHECKING

from tabulary.lazy import load_on_use

if TYPE_CHECKING:
    from tabulary.core.arrays import Floats, Integers
    from tabulary.core.domain import MAX_CELLS, Margin
    from tabulary.core.exact_numbers import show_fraction
    from tabulary.core.neighbours import Relation
    from tabulary.core.privacy import Loss, Privacy, gaussian_delta, gaussian_rho
    from tabulary.core.sensitivity import Sensitivity
    from tabulary.core.table import CellCounts
    from tabulary.core.workload import show_margin

__all__ = [
    "MAX_CELLS",
    "CellCounts",
    "Floats",
    "Integers",
    "Loss",
    "Margin",
    "Privacy",
    "Relation",
    "Sensitivity",
    "gaussian_delta",
    "gaussian_rho",
    "show_fraction",
    "show_margin",
]

load_on_use(__name__)
