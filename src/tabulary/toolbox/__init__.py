"""The basic tools of differential privacy, each with its guarantee, its estimator and its standard error.

Randomized response, the Laplace mechanism for bounded statistics, the exponential mechanism, report noisy max, and
the sum of several promises. All noise is whole numbers, drawn exactly.

In addition, without any guarantee: redaction and coarsening of records, and checks that find the weaknesses of such
records (`k_anonymity`, `homogeneity`, `link`, `intersection_attack`, `risks`).

>>> from tabulary.core.privacy import PureDP
>>> answer = mean([34, 51, 29, 60] * 100, Bounds(0, 110), privacy=PureDP(1))
>>> answer.statistic, len(answer.measured), str(answer.spent)
('mean', 2, 'ε = 1')
"""

from tabulary.core.guessing import guessing
from tabulary.toolbox.answer import Answer
from tabulary.toolbox.bounds import Bounds
from tabulary.toolbox.coarsening import coarsen, redact
from tabulary.toolbox.composition import group, parallel, sequential
from tabulary.toolbox.diagnosis import Diagnosis, Exposed
from tabulary.toolbox.intersection import Intersection, intersection_attack
from tabulary.toolbox.k_anonymity import Anonymity, Homogeneity, homogeneity, k_anonymity
from tabulary.toolbox.laplace import laplace
from tabulary.toolbox.linkage import Linkage, link
from tabulary.toolbox.quantile import quantile
from tabulary.toolbox.randomized_response import RandomizedResponse
from tabulary.toolbox.response_estimate import ResponseEstimate
from tabulary.toolbox.risks import Risks, risks
from tabulary.toolbox.selection import Chosen, exponential_mechanism, report_noisy_max, utility_bound
from tabulary.toolbox.spending import Terms
from tabulary.toolbox.statistics import count, mean, standard_deviation, standard_deviation_sensitivity, total

__all__ = [
    "Anonymity",
    "Answer",
    "Bounds",
    "Chosen",
    "Diagnosis",
    "Exposed",
    "Homogeneity",
    "Intersection",
    "Linkage",
    "RandomizedResponse",
    "ResponseEstimate",
    "Risks",
    "Terms",
    "coarsen",
    "count",
    "exponential_mechanism",
    "group",
    "guessing",
    "homogeneity",
    "intersection_attack",
    "k_anonymity",
    "laplace",
    "link",
    "mean",
    "parallel",
    "quantile",
    "redact",
    "report_noisy_max",
    "risks",
    "sequential",
    "standard_deviation",
    "standard_deviation_sensitivity",
    "total",
    "utility_bound",
]
