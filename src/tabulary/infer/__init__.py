"""Honest inference from released tables: tests, estimates and intervals that know the noise."""

from tabulary.infer import utility
from tabulary.infer.association import Association, cramers_v, odds_ratio, rate
from tabulary.infer.compare import ComparedTable, compare
from tabulary.infer.difference import difference, ratio
from tabulary.infer.fit import goodness_of_fit
from tabulary.infer.fitted_model import FittedModel
from tabulary.infer.homogeneity import homogeneity
from tabulary.infer.independence import independence
from tabulary.infer.intervals import Intervals, interval, intervals
from tabulary.infer.loglinear import loglinear
from tabulary.infer.merging import merged
from tabulary.infer.models import LogLinearModel
from tabulary.infer.pairs import Compared
from tabulary.infer.results import TestResult
from tabulary.infer.search import ModelSearch, search
from tabulary.infer.table_noise import CorrelatedNoise, IndependentNoise, noise_of
from tabulary.infer.weighted_sums import Interval

__all__ = [
    "Association",
    "Compared",
    "ComparedTable",
    "CorrelatedNoise",
    "FittedModel",
    "IndependentNoise",
    "Interval",
    "Intervals",
    "LogLinearModel",
    "ModelSearch",
    "TestResult",
    "compare",
    "cramers_v",
    "difference",
    "goodness_of_fit",
    "homogeneity",
    "independence",
    "interval",
    "intervals",
    "loglinear",
    "merged",
    "noise_of",
    "odds_ratio",
    "rate",
    "ratio",
    "search",
    "utility",
]
