"""From a Measurement to the published tables. Post-processing: nothing here can read a record."""

from typing import TYPE_CHECKING

from tabulary.lazy import load_on_use

if TYPE_CHECKING:
    from tabulary.reconstruct.constrained import FullTable, measured_vector
    from tabulary.reconstruct.least_squares import solve_least_squares
    from tabulary.reconstruct.linear import linear_estimates
    from tabulary.reconstruct.lp import ProgramSolution, solve_program
    from tabulary.reconstruct.reconstruction import Reconstruction, reconstruct
    from tabulary.reconstruct.rounding.full_table import round_table, uniforms_from
    from tabulary.reconstruct.shift import integer_shift, weighted_shift

__all__ = [
    "FullTable",
    "ProgramSolution",
    "Reconstruction",
    "integer_shift",
    "linear_estimates",
    "measured_vector",
    "reconstruct",
    "round_table",
    "solve_least_squares",
    "solve_program",
    "uniforms_from",
    "weighted_shift",
]

load_on_use(__name__)
