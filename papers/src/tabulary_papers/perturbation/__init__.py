"""Perturbed tables: Table 2 and Figures 1 to 3 of Rinott, O'Keefe, Shlomo & Skinner (2018), section 5."""

from tabulary_papers.perturbation.study import PerturbationStudy

__all__ = ["PerturbationStudy"]
