"""Two families with equal privacy: the bound that gives one the δ of the other."""

import math

from tabulary.errors import InvalidNoise
from tabulary.perturb.additive import Laplace, Normal

_LARGEST_BOUND = 2_000


def match_delta(
    law: Laplace | Normal, *, family: type[Laplace] | type[Normal], never_more: bool = False
) -> Laplace | Normal:
    """Return the law of another family with the same ε and the bound whose δ is closest.

    A bound is a whole number, so δ can seldom be equal. The distance is measured on the scale of √δ, which gives
    the bounds of Rinott et al. (2018), section 5.6.2, for all six of their ε; neither the smallest difference nor
    the smallest ratio of the δ does. With `never_more` it is the smallest bound whose δ is not larger, for a
    comparison of utility without any loss of privacy.

    >>> [match_delta(Laplace(e, bound=7), family=Normal).bound for e in (0.1, 0.5, 1, 1.5, 2, 3)]
    [8, 10, 12, 12, 13, 14]
    >>> match_delta(Laplace(0.5, bound=7), family=Normal, never_more=True).bound
    11
    """
    if family not in (Laplace, Normal):
        raise InvalidNoise("δ can be matched by a bound only for the families Laplace and Normal.")
    if law.bound is None:
        raise InvalidNoise(
            "A law without a bound has δ = 0, and no bound gives δ = 0 to another family. Give it a bound."
        )
    wanted = law.truncation_delta
    best: Laplace | Normal | None = None
    gap = math.inf
    # δ falls as the bound grows, so the search ends at the first bound on the other side.
    for bound in range((law.sensitivity + 1) // 2, _LARGEST_BOUND):
        tried = family(law.epsilon, bound, sensitivity=law.sensitivity)
        delta = tried.truncation_delta
        if abs(math.sqrt(delta) - math.sqrt(wanted)) < gap and not never_more:
            best, gap = tried, abs(math.sqrt(delta) - math.sqrt(wanted))
        if delta <= wanted:
            return tried if best is None else best
    raise InvalidNoise(
        f"No bound up to {_LARGEST_BOUND:,} gives {family.__name__} that δ. Choose a smaller ε."
    )
