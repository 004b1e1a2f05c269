"""Frequency-table perturbation as agencies do it, with its true privacy.

A perturbation replaces an original count a by b with probability p(a, b). Everything a law says of itself
(its exact δ for any ε, losses, bias, entropy) is computed from these probabilities.

>>> law = Laplace(1.5, bound=7)
>>> law.transition(3, 3).__round__(4), f"{law.delta:.6f}"
(0.6352, '0.000017')
"""

from tabulary.perturb.additive import Laplace, Normal
from tabulary.perturb.custom import Custom
from tabulary.perturb.law import Perturbation, Row
from tabulary.perturb.matching import match_delta
from tabulary.perturb.published import PerturbedTable, perturb

__all__ = [
    "Custom",
    "Laplace",
    "Normal",
    "Perturbation",
    "PerturbedTable",
    "Row",
    "match_delta",
    "perturb",
]
