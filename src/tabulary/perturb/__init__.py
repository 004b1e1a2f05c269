"""Frequency-table perturbation as agencies do it, with its true privacy.

A perturbation replaces an original count a by b with probability p(a, b). Everything that a law reports about
itself (its exact δ for any ε, losses, bias, entropy) is computed from these probabilities.

>>> law = Laplace(1.5, bound=7)
>>> law.transition(3, 3).__round__(4), f"{law.delta:.6f}"
(0.6352, '0.000017')
"""

from tabulary.perturb.additive import Laplace, Normal
from tabulary.perturb.alternatives import Alternatives
from tabulary.perturb.custom import Custom
from tabulary.perturb.hellinger import Hellinger
from tabulary.perturb.matching import match_delta
from tabulary.perturb.max_entropy import MaxEntropy
from tabulary.perturb.perturbation import Perturbation, Row
from tabulary.perturb.properties import NoiseProperties, noise_properties
from tabulary.perturb.published import PerturbedTable, perturb
from tabulary.perturb.published_tables import PerturbedTables
from tabulary.perturb.tables import Tables

__all__ = [
    "Alternatives",
    "Custom",
    "Hellinger",
    "Laplace",
    "MaxEntropy",
    "NoiseProperties",
    "Normal",
    "Perturbation",
    "PerturbedTable",
    "PerturbedTables",
    "Row",
    "Tables",
    "match_delta",
    "noise_properties",
    "perturb",
]
