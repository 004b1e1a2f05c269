"""Perturbed tables: Table 2 and Figures 1 to 3 of Rinott, O'Keefe, Shlomo & Skinner (2018), section 5."""

from tabulary.studies.perturbation.study import PerturbationStudy
from tabulary.studies.perturbation.trials import (
    BOUND,
    EPSILONS,
    MEASURES,
    Measure,
    RiskUtility,
    Trial,
    compared_laws,
    risk_utility,
)

__all__ = [
    "BOUND",
    "EPSILONS",
    "MEASURES",
    "Measure",
    "PerturbationStudy",
    "RiskUtility",
    "Trial",
    "compared_laws",
    "risk_utility",
]
