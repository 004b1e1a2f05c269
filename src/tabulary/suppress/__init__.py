"""Cells left out of a table: with a proof, as agencies do it, and what an attacker makes of either."""

from tabulary.suppress.advice import Advice, advice
from tabulary.suppress.attacker import attack
from tabulary.suppress.classical import Suppression, classical
from tabulary.suppress.contributions import Contributions
from tabulary.suppress.findings import Findings
from tabulary.suppress.people import People
from tabulary.suppress.priors import fit_prior
from tabulary.suppress.replay import Replay, replay
from tabulary.suppress.rules import Dominance, PPercent, Threshold
from tabulary.suppress.simulatable import SimulatableTable, simulatable
from tabulary.suppress.table import SuppressedTable
from tabulary.suppress.theorems import (
    breach_bound,
    full_release_bound,
    people_needed,
    people_needed_by_bound,
    release_bound,
    release_chance,
)

__all__ = [
    "Advice",
    "Contributions",
    "Dominance",
    "Findings",
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
