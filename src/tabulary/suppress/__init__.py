"""Cells left out of a table: with a proof, as agencies do it, and what an attacker makes of either."""

from tabulary.attacks.suppression.attack import attack
from tabulary.attacks.suppression.findings import AttackFindings
from tabulary.core.suppressed_table import SuppressedTable
from tabulary.suppress.classical_method.classical import Suppression, classical
from tabulary.suppress.classical_method.contributions import Contributions
from tabulary.suppress.classical_method.rules import Dominance, PPercent, Threshold
from tabulary.suppress.simulatable_method.advice import Advice, advice
from tabulary.suppress.simulatable_method.priors import fit_prior
from tabulary.suppress.simulatable_method.replay import Replay, replay
from tabulary.suppress.simulatable_method.simulatable import SimulatableTable, simulatable
from tabulary.suppress.simulatable_method.theorems import (
    breach_bound,
    full_release_bound,
    people_needed,
    people_needed_by_bound,
    release_bound,
    release_chance,
)
from tabulary.table_samplers.people import People

__all__ = [
    "Advice",
    "AttackFindings",
    "Contributions",
    "Dominance",
    "PPercent",
    "People",
    "Replay",
    "SimulatableTable",
    "SuppressedTable",
    "Suppression",
    "Threshold",
    "advice",
    "attack",
    "breach_bound",
    "classical",
    "fit_prior",
    "full_release_bound",
    "people_needed",
    "people_needed_by_bound",
    "release_bound",
    "release_chance",
    "replay",
    "simulatable",
]
