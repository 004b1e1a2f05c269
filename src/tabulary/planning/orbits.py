"""Sets of attributes up to an exchange of attributes that are treated alike.

An allocation that starts alike for two parts that such an exchange takes into each other keeps them alike, so
one number stands for all parts of an orbit: ten numbers for all 19,600 three-way tables of fifty bits.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping

from tabulary.core.domain import Domain, Margin
from tabulary.core.symmetry import Sets, interchangeable

Orbit = tuple[tuple[int, int], ...]
"""How many attributes of each class a set has; classes without one are left out."""


class Orbits:
    """The orbits of the sets in a downward closure, each set with numbers that an exchange must keep.

    Without `exchange` every set is an orbit by itself.
    """

    def __init__(
        self, domain: Domain, numbers: Mapping[Margin, tuple[float, ...]], *, exchange: bool = True
    ) -> None:
        classes = [[a] for a in domain.attributes]
        if exchange:
            levels = dict(zip(domain.attributes, domain.shape, strict=True))
            described: dict[Sets, tuple[float, ...]] = {(frozenset(m),): v for m, v in numbers.items()}
            classes = interchangeable(levels, described, alike=_alike)
        self._class_of = {a: i for i, names in enumerate(classes) for a in names}
        self.size: Counter[Orbit] = Counter()
        self.representative: dict[Orbit, Margin] = {}
        for margin in numbers:
            orbit = self.of(margin)
            self.size[orbit] += 1
            self.representative.setdefault(orbit, margin)

    def of(self, attributes: Iterable[str]) -> Orbit:
        """Return the orbit of a set."""
        return tuple(sorted(Counter(self._class_of[a] for a in attributes).items()))

    def parts(self, margin: Orbit, centred: Orbit) -> int:
        """Return how many parts an orbit of parts has: its margins, times the choices of what is centred."""
        chosen = dict(centred)
        return self.size[margin] * math.prod(math.comb(n, chosen.get(c, 0)) for c, n in margin)


def _alike(one: tuple[float, ...], other: tuple[float, ...]) -> bool:
    # Sums of the same terms in another order differ in their last digits.
    return all(math.isclose(x, y, rel_tol=1e-9) for x, y in zip(one, other, strict=True))
