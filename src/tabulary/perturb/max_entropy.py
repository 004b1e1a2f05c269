"""The perturbation tables of statistical offices: maximum entropy for a range, a mean and a variance."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TypeGuard, TypeVar

import numpy as np

from tabulary.core.exact_numbers import exact_fraction, show_fraction
from tabulary.errors import InvalidNoise
from tabulary.noise import Tabulated
from tabulary.perturb.entropy_program import EntropyProgram
from tabulary.perturb.tabulated import RowByRow

# Tables in practice reach 10 or 20; a table that reaches this far takes seconds to solve.
_LARGEST_BOUND = 250
# The error that the exact law may have in each constraint.
_TOLERANCE = 1e-12

Value = TypeVar("Value")


@dataclass(frozen=True, init=False, repr=False)
class MaxEntropy(RowByRow):
    r"""Adds the noise of largest entropy with mean 0, this variance and values within ±`bound`.

    The design of perturbation tables for cell keys: Fraser & Wooton (2005), Marley & Leaver (2011), Giessing
    (2016). Parameters as in the R package ptable, where `bound` is D and `variance` is V. Each says something
    of every row, that is of what is added to every original count:

    * its mean is 0, and its variance is `variance`. With `at_most` the variance may be smaller where that
      has more entropy, which is how ptable reads V and what agencies ask for: Rinott et al. (2018),
      section 2.2, property 7;
    * `nonnegative`: nothing below zero is published. With a mean of 0 this leaves every zero as it is;
    * `js`: none of 1, …, js is published (with `nonnegative`); zero may be;
    * `pstay`: how likely a count is published as it is. Those up to `js` never are;
    * `mono`: of two values on the same side of the original count, the farther is not the likelier, and the
      count itself is the likeliest. ptable asks this below the count only.

    `pstay` and `mono` are one value for all counts, or one for each of 1, 2, …, `settled`, the last of which
    serves all larger counts. Counts below D (D + js + 1 if js > 0) have rows of their own. `variance_parameter`
    holds the variance asked for; `variance(a)` tells that of the row of a.

    Without `nonnegative` one row serves all counts. It is p(k) ∝ exp(-λk²), with λ > 0 for a variance below D(D +
    1)/3, that of the uniform law, and λ < 0 above it, up to D². `tabulary.perturb.entropy_program` says how the
    other rows are solved. The law that is drawn, and from which every property is computed, is the solution in
    units of 2⁻⁶²: its mean, variance and `pstay` are exact to 1e-12, or there is an error.

    Privacy: none is promised, because entropy does not measure it. With `nonnegative` a positive published value
    proves that the original one is not zero, so δ is at least 1 - p(1, 0) at every ε: Rinott et al. (2018), section
    4.5. In this table that is 0.48:

    >>> table = MaxEntropy(2, bound=5, nonnegative=True)
    >>> [round(table.transition(1, b), 3) for b in range(7)]
    [0.52, 0.23, 0.112, 0.061, 0.036, 0.024, 0.017]
    >>> table.transition(0, 0), round(table.delta_at(1), 4), round(table.delta_at(100), 4)
    (1.0, 0.4796, 0.4796)
    >>> additive = MaxEntropy(2, bound=5)
    >>> round(additive.delta_at(1), 4), round(additive.entropy(0), 4)
    (0.0428, 1.7654)
    """

    variance_parameter: Fraction
    bound: int
    nonnegative: bool
    js: int
    pstay: Fraction | tuple[Fraction | None, ...] | None
    mono: bool | tuple[bool, ...]
    at_most: bool

    def __init__(
        self,
        variance: object,
        bound: int,
        *,
        nonnegative: bool = False,
        js: int = 0,
        pstay: object = None,
        mono: bool | Sequence[bool] = False,
        at_most: bool = False,
    ) -> None:
        _check_range(bound, _flag(nonnegative, "nonnegative"), js)
        wanted = _variance(variance)
        own = (bound + js + 1 if js else bound) if nonnegative else 1
        stays, monos = _each(pstay, "pstay", own, _stay), _each(mono, "mono", own, _flag)
        for name, value in {
            "variance_parameter": wanted,
            "nonnegative": nonnegative,
            "js": js,
            "pstay": stays if _is_list(pstay) else stays[0],
            "mono": monos if _is_list(mono) else monos[0],
            "at_most": _flag(at_most, "at_most"),
        }.items():
            object.__setattr__(self, name, value)
        # Not negative and of mean 0: nothing is ever added to a count of zero.
        laws = [Tabulated(0, (1,))] if nonnegative else []
        for original, stay, ordered in zip(range(1, own + 1), stays, monos, strict=True):
            offsets = np.arange(-bound, bound + 1)
            if nonnegative:
                published = original + offsets
                offsets = offsets[(published == 0) | (published > js)]
            asked = EntropyProgram(
                offsets,
                variance=None,
                # A count that is never published cannot stay.
                stay=float(stay) if stay is not None and 0 in offsets else None,
                mono=ordered,
            )
            laws.append(
                _law(asked, float(wanted), at_most, f" of the count {original}" if nonnegative else "")
            )
        self._settle(laws)
        # The farthest offsets may be too unlikely to be written down; the range is still the one asked for.
        object.__setattr__(self, "bound", bound)

    def describe(self) -> dict[str, str]:
        """Return the family and its exact parameters; an option that was not taken is left out.

        >>> MaxEntropy("3/2", bound=4, nonnegative=True, pstay=0.5).describe()
        {'family': 'max-entropy', 'variance': '3/2', 'bound': '4', 'nonnegative': 'true', 'pstay': '1/2'}
        """
        described = {
            "family": "max-entropy",
            "variance": str(self.variance_parameter),
            "bound": str(self.bound),
        }
        return described | {name: _written(value) for name, value in self._options().items()}

    def __str__(self) -> str:
        variance = f"variance {'at most ' if self.at_most else ''}{show_fraction(self.variance_parameter)}"
        kept = ", never negative" if self.nonnegative else ""
        return f"maximum-entropy perturbation, {variance}, at most ±{self.bound:,}{kept}"

    def __repr__(self) -> str:
        options = "".join(f", {name}={_written(value)}" for name, value in self._options().items())
        return f"<MaxEntropy variance={self.variance_parameter}, bound={self.bound}{options}>"

    def _options(self) -> dict[str, object]:
        """Return the options that were taken."""
        left_out = {"nonnegative": False, "js": 0, "pstay": None, "mono": False, "at_most": False}
        return {name: getattr(self, name) for name, value in left_out.items() if getattr(self, name) != value}


def _law(free: EntropyProgram, variance: float, at_most: bool, where: str) -> Tabulated:
    """Return the exact law of one row, or raise InvalidNoise, which says what is possible instead."""
    if at_most:
        # An upper bound that the law of largest entropy satisfies has no effect; one that it violates holds with
        # equality.
        freest = _exact(free)
        if freest is not None and freest.variance <= variance:
            return freest
    found = _exact(replace(free, variance=variance))
    if found is None:
        raise InvalidNoise(_refusal(free, variance, where))
    return found


def _exact(asked: EntropyProgram) -> Tabulated | None:
    """Return the solution in units of 2**-62 if it satisfies all constraints, otherwise None."""
    lowest, highest = int(asked.offsets[0]), int(asked.offsets[-1])
    probabilities = np.zeros(highest - lowest + 1)
    probabilities[asked.offsets - lowest] = asked.solve()
    law = Tabulated.from_probabilities(lowest, probabilities)
    misses = [abs(law.mean) / max(1.0, law.variance**0.5)]
    if asked.variance is not None:
        misses.append(abs(law.variance / asked.variance - 1))
    if asked.stay is not None:
        misses.append(abs(float(law.pmf(0)) - asked.stay))
    return law if max(misses) <= _TOLERANCE else None


def _refusal(free: EntropyProgram, variance: float, where: str) -> str:
    """Return the message for a variance that no law of this row has."""
    law = f"No law on the offsets {free.offsets[0]:+d} to {free.offsets[-1]:+d}{where} has mean 0"
    law += "" if free.stay is None else f", pstay {free.stay:.6g}"
    law += ", falls towards both sides" if free.mono else ""
    between = free.variances()
    if between is None:
        return f"{law}. Nothing was drawn. Choose a larger bound, or leave out pstay or mono."
    low, high = between
    if low * (1 - 1e-9) <= variance <= high * (1 + 1e-9):
        return (
            f"A variance of {variance:.6g} is so close to the end of the possible range{where}, {low:.6g} "
            f"to {high:.6g}, that it cannot be met to twelve digits. Nothing was drawn. Choose one further "
            "inside."
        )
    instead = "at_most=True" if variance > high else "another js or pstay"
    return (
        f"{law} and variance {variance:.6g}: the variance must be between {low:.6g} and {high:.6g}. Nothing "
        f"was drawn. Choose such a variance, or {instead}."
    )


def _check_range(bound: int, nonnegative: bool, js: int) -> None:
    for name, value, least in (("bound", bound, 1), ("js", js, 0)):
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= _LARGEST_BOUND:
            raise InvalidNoise(
                f"{name} must be a whole number from {least} to {_LARGEST_BOUND}, not {value!r}. Nothing "
                "was drawn."
            )
    if js and not nonnegative:
        raise InvalidNoise(
            "js keeps small positive values unpublished, which makes sense only if negative values are not "
            "published either: add nonnegative=True. Nothing was drawn."
        )
    if js >= bound:
        raise InvalidNoise(
            f"With js = {js} the bound must be larger than {js}, not {bound}: a count just above js could "
            "only be published unchanged. Nothing was drawn."
        )


def _variance(value: object) -> Fraction:
    variance = exact_fraction(value, name="the variance", error=InvalidNoise)
    if variance <= 0:
        raise InvalidNoise(
            f"The variance must be positive, not {value}: otherwise the exact counts would be published."
        )
    return variance


def _stay(value: object, name: str) -> Fraction | None:
    if value is None:
        return None
    stay = exact_fraction(value, name=name, error=InvalidNoise)
    if not 0 < stay < 1:
        raise InvalidNoise(
            f"{name} must be a probability strictly between 0 and 1, not {value}. Leave it out to let the "
            "entropy decide how many counts stay unchanged. Nothing was drawn."
        )
    return stay


def _flag(value: object, name: str) -> bool:
    if not isinstance(value, bool):
        raise InvalidNoise(f"{name} must be True or False, not {value!r}. Nothing was drawn.")
    return value


def _is_list(value: object) -> TypeGuard[Sequence[object]]:
    return isinstance(value, Sequence) and not isinstance(value, str)


def _each(value: object, name: str, rows: int, read: Callable[[object, str], Value]) -> tuple[Value, ...]:
    """Return a parameter for the counts 1, …, `rows`: given one by one, or once for all."""
    if not _is_list(value):
        return (read(value, name),) * rows
    if len(value) != rows:
        raise InvalidNoise(
            f"{name} has {len(value)} values, but there are {rows} rows to solve. Give one value for all "
            "counts, or one per row. Nothing was drawn."
        )
    return tuple(read(one, name) for one in value)


def _written(value: object) -> str:
    if isinstance(value, tuple):
        return " ".join(map(_written, value))
    return str(value).lower() if isinstance(value, bool) or value is None else str(value)
