"""Privacy parameters, composition and conversions.

Parameters are exact fractions. If a conversion must leave the rationals, the result is rounded in the direction
that protects: a promised ε or δ is rounded up, a ρ that may be spent is rounded down.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from tabulary.core.exact_numbers import exact_fraction, show_fraction
from tabulary.errors import InvalidPrivacy

# Double-precision exp, log and erfc are good to a few units in the last place, and their arguments here to a
# thousand times that in the tails. Each term below is thus good to this relative error; a sum is moved in
# the protective direction by this much of the sum of its absolute terms, so cancellation cannot hurt.
_FLOAT_SLACK = 1e-12

# Below this, doubles lose digits; a δ that comes out smaller is reported as this.
_SMALLEST_DELTA = 1e-290

# Parameters outside these bounds are typing errors, and would not be exact as doubles.
_BOUND = Fraction(10) ** 290


@dataclass(frozen=True)
class PureDP:
    """ε-differential privacy: no outcome becomes more than e^ε times likelier through one person.

    >>> PureDP(0.5)
    PureDP(epsilon=Fraction(1, 2))
    >>> print(PureDP("1/3"))
    ε = 1/3
    """

    epsilon: Fraction

    def __init__(self, epsilon: object) -> None:
        object.__setattr__(self, "epsilon", _positive(epsilon, "epsilon"))

    def __str__(self) -> str:
        return f"ε = {show_fraction(self.epsilon)}"


@dataclass(frozen=True)
class ApproxDP:
    """(ε, δ)-differential privacy: as ε, except with probability δ.

    >>> print(ApproxDP(1, 1e-9))
    ε = 1, δ = 1e-9
    """

    epsilon: Fraction
    delta: Fraction

    def __init__(self, epsilon: object, delta: object) -> None:
        object.__setattr__(self, "epsilon", _positive(epsilon, "epsilon"))
        object.__setattr__(self, "delta", _positive(delta, "delta"))
        if self.delta >= 1:
            raise InvalidPrivacy(
                f"delta must be below 1, not {show_fraction(self.delta)}: at 1 nothing is promised. "
                "Use a δ far smaller than one over the number of people."
            )

    def __str__(self) -> str:
        return f"ε = {show_fraction(self.epsilon)}, δ = {show_fraction(self.delta)}"


@dataclass(frozen=True)
class ZCDP:
    """ρ-zero-concentrated differential privacy (Bun & Steinke 2016): Gaussian noise composes exactly in it.

    >>> print(ZCDP("1/8"))
    ρ = 0.125
    """

    rho: Fraction

    def __init__(self, rho: object) -> None:
        object.__setattr__(self, "rho", _positive(rho, "rho"))

    def __str__(self) -> str:
        return f"ρ = {show_fraction(self.rho)}"


Privacy = PureDP | ApproxDP | ZCDP


@dataclass(frozen=True)
class GaussianDP:
    """What Gaussian noise with ρ = Δ₂²/(2σ²) satisfies: its exact curve δ(ε), and everything it implies.

    A loss, not a promise: continuous Gaussian noise and anything computed from it has this loss, in any dimension.
    With μ = √(2ρ) it is μ-Gaussian differential privacy (Dong, Roth & Su 2022).

    >>> print(GaussianDP("1/8"))
    ρ = 0.125 (Gaussian)
    """

    rho: Fraction

    def __init__(self, rho: object) -> None:
        object.__setattr__(self, "rho", _positive(rho, "rho"))

    def __str__(self) -> str:
        return f"ρ = {show_fraction(self.rho)} (Gaussian)"


Loss = PureDP | ZCDP | GaussianDP
"""What a noise satisfies in its own currency."""


def describe_privacy(privacy: Privacy | GaussianDP) -> dict[str, str]:
    """Return a privacy parameter as exact text, the inverse of `privacy_from_description`.

    >>> describe_privacy(ApproxDP(1, 1e-9))
    {'kind': 'approx-dp', 'epsilon': '1', 'delta': '1/1000000000'}
    """
    match privacy:
        case PureDP(epsilon=epsilon):
            return {"kind": "pure-dp", "epsilon": str(epsilon)}
        case ApproxDP(epsilon=epsilon, delta=delta):
            return {"kind": "approx-dp", "epsilon": str(epsilon), "delta": str(delta)}
        case ZCDP(rho=rho):
            return {"kind": "zcdp", "rho": str(rho)}
        case GaussianDP(rho=rho):
            return {"kind": "gaussian-dp", "rho": str(rho)}


def privacy_from_description(description: object) -> Privacy:
    """Return the privacy parameter that `describe_privacy` wrote; refuse anything else.

    >>> privacy_from_description({"kind": "zcdp", "rho": "1/8"})
    ZCDP(rho=Fraction(1, 8))
    """
    match description:
        case {"kind": "pure-dp", "epsilon": str(epsilon), **rest} if not rest:
            return PureDP(epsilon)
        case {"kind": "approx-dp", "epsilon": str(epsilon), "delta": str(delta), **rest} if not rest:
            return ApproxDP(epsilon, delta)
        case {"kind": "zcdp", "rho": str(rho), **rest} if not rest:
            return ZCDP(rho)
    raise InvalidPrivacy("this is not the description of a privacy parameter that Tabulary writes.")


def loss_from_description(description: object) -> Loss:
    """Return the loss that `describe_privacy` wrote; refuse anything else.

    >>> loss_from_description({"kind": "gaussian-dp", "rho": "1/8"})
    GaussianDP(rho=Fraction(1, 8))
    """
    match description:
        case {"kind": "gaussian-dp", "rho": str(rho), **rest} if not rest:
            return GaussianDP(rho)
    found = privacy_from_description(description)
    if isinstance(found, ApproxDP):
        raise InvalidPrivacy("no noise has a cost in (ε, δ) directly.")
    return found


def compose(parts: Iterable[Privacy]) -> Privacy:
    """Return what is promised after all of `parts` have used the same records.

    Sequential composition: ε, δ and ρ add up. Pure parts join a zCDP total as ρ = ε²/2 (Bun & Steinke 2016,
    Proposition 1.4) and an (ε, δ) total with δ = 0. zCDP and (ε, δ) do not mix without a choice of δ:
    convert with `zcdp_to_approx` first.

    >>> print(compose([PureDP("1/2"), PureDP("1/4")]))
    ε = 0.75
    >>> print(compose([ZCDP("1/8"), PureDP("1/2")]))
    ρ = 0.25
    """
    spent = list(parts)
    if not spent:
        raise InvalidPrivacy("an empty composition promises nothing. Name at least one part.")
    if not all(isinstance(part, PureDP | ApproxDP | ZCDP) for part in spent):
        raise InvalidPrivacy(
            "the parts of a composition must be PureDP(1), ApproxDP(1, 1e-9), ZCDP('1/8') or similar."
        )
    kinds = {type(part) for part in spent}
    if kinds >= {ApproxDP, ZCDP}:
        raise InvalidPrivacy("zCDP and (ε, δ) cannot be added directly: choose a δ and use zcdp_to_approx.")
    if ZCDP in kinds:
        return ZCDP(sum(_as_rho(part) for part in spent))
    epsilon = sum(part.epsilon for part in spent if not isinstance(part, ZCDP))
    if ApproxDP in kinds:
        delta = sum(part.delta for part in spent if isinstance(part, ApproxDP))
        # A δ of one or more promises nothing; ApproxDP refuses it.
        return ApproxDP(epsilon, delta)
    return PureDP(epsilon)


def pure_to_zcdp(privacy: PureDP) -> ZCDP:
    """Return the zCDP that ε-DP implies, exactly: ρ = ε²/2.

    >>> pure_to_zcdp(PureDP("1/2"))
    ZCDP(rho=Fraction(1, 8))
    """
    return ZCDP(privacy.epsilon**2 / 2)


def zcdp_to_approx(privacy: ZCDP, delta: object) -> ApproxDP:
    """Return the (ε, δ) that ρ-zCDP implies for this δ, with ε rounded up.

    Canonne, Kamath & Steinke (2020), Corollary 13:
    ε = inf over α > 1 of αρ + (log(1/δ) + (α - 1) log(1 - 1/α) - log α) / (α - 1).

    >>> float(zcdp_to_approx(ZCDP("0.014973"), 1e-9).epsilon) <= 1
    True
    """
    wanted = ApproxDP(1, delta).delta
    epsilon = _zcdp_epsilon(float(privacy.rho), float(wanted))
    return ApproxDP(_rounded_up(max(epsilon, 0.0)), wanted)


@lru_cache(maxsize=256)
def approx_to_zcdp(privacy: ApproxDP) -> ZCDP:
    """Return the largest ρ, rounded down, whose zCDP implies this (ε, δ).

    >>> f"{float(approx_to_zcdp(ApproxDP(1, 1e-9)).rho):.6f}"
    '0.014973'
    """
    epsilon, delta = float(privacy.epsilon), float(privacy.delta)
    return ZCDP(_largest(lambda rho: _zcdp_epsilon(rho, delta) <= epsilon))


def implies(loss: Loss, promise: Privacy) -> bool:
    """Return whether the loss of the noise implies the promise.

    >>> implies(ZCDP("0.014973"), ApproxDP(1, 1e-9)), implies(ZCDP("0.015"), ApproxDP(1, 1e-9))
    (True, False)
    """
    match promise:
        case PureDP(epsilon=epsilon):
            return isinstance(loss, PureDP) and loss.epsilon <= epsilon
        case ZCDP(rho=rho):
            return _as_rho(loss) <= rho
        case ApproxDP(epsilon=epsilon, delta=delta):
            if isinstance(loss, PureDP):
                return loss.epsilon <= epsilon
            if isinstance(loss, GaussianDP):
                return _gaussian_delta(float(epsilon), float(loss.rho)) <= float(delta)
            return _zcdp_epsilon(float(loss.rho), float(delta)) <= float(epsilon)


def gaussian_delta(epsilon: object, rho: object) -> float:
    """Return the exact δ at ε of Gaussian noise whose ρ = Δ₂²/(2σ²), rounded up.

    Balle & Wang (2018), Theorem 8, with μ = Δ₂/σ: δ = Φ(μ/2 - ε/μ) - e^ε Φ(-μ/2 - ε/μ). It is the law of
    continuous Gaussian noise, and of anything computed from it. It is not a theorem about the discrete
    Gaussian, whose guarantee here goes through zCDP (`approx_to_zcdp`).

    >>> gaussian_delta(1, "0.016557") < 1.001e-9
    True
    """
    return _gaussian_delta(float(_positive(epsilon, "epsilon")), float(_positive(rho, "rho")))


def gaussian_rho(privacy: ApproxDP) -> Fraction:
    """Return the largest ρ = Δ₂²/(2σ²), rounded down, at which Gaussian noise is (ε, δ)-DP.

    The analytic calibration: σ = Δ₂/√(2ρ) is the least noise that the exact curve of `gaussian_delta` allows.

    >>> f"{float(gaussian_rho(ApproxDP(1, 1e-9))):.6f}"
    '0.016557'
    """
    epsilon, delta = float(privacy.epsilon), float(privacy.delta)
    return _largest(lambda rho: _gaussian_delta(epsilon, rho) <= delta)


def _positive(value: object, name: str) -> Fraction:
    number = exact_fraction(value, name=name, error=InvalidPrivacy)
    if number <= 0:
        raise InvalidPrivacy(f"{name} must be positive, not {show_fraction(number)}.")
    if not 1 / _BOUND < number < _BOUND:
        raise InvalidPrivacy(f"{name} is beyond all bounds: it lies outside 1e-290 to 1e290.")
    return number


def _as_rho(part: Privacy | GaussianDP) -> Fraction:
    if isinstance(part, PureDP):
        return pure_to_zcdp(part).rho
    assert not isinstance(part, ApproxDP)
    return part.rho


def _zcdp_epsilon(rho: float, delta: float) -> float:
    # The objective is convex in log(α - 1) around its minimum; a golden-section search that stops early only
    # returns a valid, slightly larger ε, since every α gives a true bound.
    def bound(log_excess: float) -> float:
        excess = math.exp(log_excess)
        alpha = 1 + excess
        terms = (alpha * rho, -math.log(delta) / excess, -math.log(alpha) / excess, math.log1p(-1 / alpha))
        return sum(terms) + _FLOAT_SLACK * sum(map(abs, terms))

    low, high = -30.0, 30.0
    ratio = (math.sqrt(5) - 1) / 2
    left, right = high - ratio * (high - low), low + ratio * (high - low)
    for _ in range(70):
        if bound(left) <= bound(right):
            high, right = right, left
            left = high - ratio * (high - low)
        else:
            low, left = left, right
            right = low + ratio * (high - low)
    return bound((low + high) / 2)


def _gaussian_delta(epsilon: float, rho: float) -> float:
    mu = math.sqrt(2 * rho)
    near, far = mu / 2 - epsilon / mu, -mu / 2 - epsilon / mu
    first = _normal_cdf(near)
    if first < _SMALLEST_DELTA:
        return _SMALLEST_DELTA
    # e^ε Φ(·) as one exponential, so that a large ε does not overflow before the tail underflows.
    second = math.exp(min(epsilon + _log_normal_cdf(far), 0.0))
    # An argument wrong by one unit in its last place moves Φ by up to forty of them, this far in the tail.
    slack = _FLOAT_SLACK + 200 * math.ulp(1.0) * abs(far)
    return max(first - second, 0.0) + slack * (first + second)


def _normal_cdf(x: float) -> float:
    return 0.5 * math.erfc(-x / math.sqrt(2))


def _log_normal_cdf(x: float) -> float:
    if x > -35:
        return math.log(_normal_cdf(x))
    # Lower bound of Mills' ratio: the subtracted term comes out no larger than it is, δ no smaller.
    return -x * x / 2 - math.log(-x - 1 / x) - 0.5 * math.log(2 * math.pi)


def _largest(allowed: Callable[[float], bool]) -> Fraction:
    """Return the largest number for which `allowed` holds, rounded down to eight digits.

    Eight digits keep the scales that follow from it readable, and leave room for another machine's last bit
    when it checks them.
    """
    low, high = -700.0, 700.0
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if allowed(math.exp(middle)) else (low, middle)
    exponent = math.floor(low / math.log(10)) - 7
    unit = Fraction(10) ** exponent
    found = math.floor(Fraction(math.exp(low)) * (1 - Fraction(1, 10**9)) / unit) * unit
    if found <= 0 or not allowed(float(found)):
        raise InvalidPrivacy("these privacy parameters do not allow Gaussian noise of any scale.")
    return found


def _rounded_up(value: float) -> Fraction:
    return Fraction(f"{value * (1 + _FLOAT_SLACK) + 1e-280:.14e}")
