"""The zCDP loss that OpenDP's own conversion allows for (ε, δ)."""

from functools import cache

import opendp.prelude as dp


@cache
def zcdp_loss(epsilon: float, delta: float) -> float:
    """Return the largest ρ, to nine digits, that OpenDP converts to no more than (ε, δ)."""
    dp.enable_features("contrib")
    space = dp.atom_domain(T="i64"), dp.absolute_distance(T="i64")

    def fits(rho: float) -> bool:
        gaussian = dp.m.make_gaussian(*space, scale=(1 / (2 * rho)) ** 0.5)
        return dp.c.make_zCDP_to_approxDP(gaussian).map(1).epsilon(delta) <= epsilon

    low, high = 0, 10**9
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle / 10**9 * epsilon) else (low, middle)
    return low / 10**9 * epsilon
