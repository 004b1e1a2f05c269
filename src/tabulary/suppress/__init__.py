"""Cells left out of a table: with a proof, as agencies do it, and what an attacker makes of either."""

from tabulary.suppress.agency.classical import Suppression, classical
from tabulary.suppress.agency.contributions import Contributions
from tabulary.suppress.agency.rules import Dominance, PPercent, Threshold
from tabulary.suppress.attacker.attack import attack
from tabulary.suppress.attacker.findings import Findings
from tabulary.suppress.deciding.advice import Advice, advice
from tabulary.suppress.deciding.priors import fit_prior
from tabulary.suppress.deciding.replay import Replay, replay
from tabulary.suppress.deciding.simulatable import SimulatableTable, simulatable
from tabulary.suppress.deciding.theorems import (
    breach_bound,
    full_release_bound,
    people_needed,
    people_needed_by_bound,
    release_bound,
    release_chance,
)
from tabulary.suppress.laws.people import People
from tabulary.suppress.table import SuppressedTable

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
