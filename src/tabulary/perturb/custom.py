"""A perturbation that the user defines."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce

from tabulary.core.exact_numbers import exact_fraction
from tabulary.errors import InvalidNoise
from tabulary.noise import Tabulated
from tabulary.perturb.tabulated import RowByRow

# Decimals that were rounded before add up to one only approximately.
_TOLERANCE = Fraction(1, 10**9)


@dataclass(frozen=True, init=False)
class Custom(RowByRow):
    """Adds each offset with its given probability.

    `pmf` is one mapping from offsets to probabilities, for every count; or a sequence of them, for the counts
    0, 1, 2, …, whose last one serves all larger counts. A float is read as the decimal it prints as.
    Probabilities must add up to one within 1e-9; what is drawn, and what every property is computed from, is
    the exact law with these weights.

    >>> law = Custom({-1: "1/4", 0: "1/2", 1: "1/4"})
    >>> law.pmf_at(5), round(law.delta_at(1), 12)
    ({-1: Fraction(1, 4), 0: Fraction(1, 2), 1: Fraction(1, 4)}, 0.25)
    """

    laws: tuple[Tabulated, ...]

    def __init__(self, pmf: Mapping[int, object] | Sequence[Mapping[int, object]]) -> None:
        rows = list(pmf) if isinstance(pmf, Sequence) else [pmf]
        if not rows:
            raise InvalidNoise("A perturbation needs at least one row of probabilities. Nothing was drawn.")
        self._settle(_law(row, a, len(rows)) for a, row in enumerate(rows))

    def pmf_at(self, original: int) -> dict[int, Fraction]:
        """Return the exact probability of every offset that may be added to an original count."""
        law = self.drawn(original)
        total = sum(law.weights)
        return {law.lowest + i: Fraction(w, total) for i, w in enumerate(law.weights)}

    def describe(self) -> dict[str, str]:
        """Return every row, exactly."""
        rows = {
            f"row {a}": f"{law.describe()['lowest']}: {law.describe()['weights']}"
            for a, law in enumerate(self.laws)
        }
        return {"family": "custom", **rows}

    def __str__(self) -> str:
        return f"custom perturbation, at most ±{self.bound:,}"


def _law(row: object, original: int, rows: int) -> Tabulated:
    where = "" if rows == 1 else f" of the count {original}"
    if not isinstance(row, Mapping) or not row:
        raise InvalidNoise(
            f"The probabilities{where} must be a mapping from offsets to probabilities, such as {{-1: 0.25, "
            "0: 0.5, 1: 0.25}."
        )
    for offset in row:
        if isinstance(offset, bool) or not isinstance(offset, int):
            raise InvalidNoise(f"An offset{where} must be a whole number, not {offset!r}. Nothing was drawn.")
    exact = {
        k: exact_fraction(p, name=f"the probability of {k:+d}{where}", error=InvalidNoise)
        for k, p in row.items()
    }
    for offset, probability in exact.items():
        if probability < 0:
            raise InvalidNoise(f"The probability of {offset:+d}{where} is negative. Nothing was drawn.")
    total = sum(exact.values(), Fraction(0))
    if abs(total - 1) > _TOLERANCE:
        raise InvalidNoise(
            f"The probabilities{where} add up to {float(total):.10g}, not to 1. Nothing was drawn. Write "
            "them as fractions, such as '1/3', if decimals are not exact."
        )
    shared = reduce(math.lcm, (p.denominator for p in exact.values()))
    lowest, highest = min(exact), max(exact)
    weights = tuple(int(exact.get(k, Fraction(0)) * shared) for k in range(lowest, highest + 1))
    return Tabulated(lowest, weights)
