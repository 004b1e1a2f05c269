"""The downward closure of the wanted tables: what contrasts and residuals are measured on."""

from collections.abc import Iterable
from itertools import combinations

from tabulary.core import basis
from tabulary.core.domain import Domain, Margin
from tabulary.errors import TooManyCells


def closure(domain: Domain, margins: Iterable[Margin], cap: int) -> list[Margin]:
    """Return every set whose coefficients some margin needs, lowest order first; refuse more than the cap."""
    found: set[Margin] = set()
    for margin in margins:
        if 2 ** len(margin) <= cap:
            found.update(s for k in range(len(margin) + 1) for s in combinations(margin, k))
        if max(2 ** len(margin), len(found)) > cap:
            raise TooManyCells(_too_many(max(2 ** len(margin), len(found)), cap))
    coefficients = sum(basis.coefficients(domain.shape_of(s)) for s in found)
    if coefficients > cap:
        raise TooManyCells(_too_many(coefficients, cap))
    # A set with an attribute of one level has no coefficients; an empty part is kept, for it costs nothing.
    return sorted(found, key=lambda s: (len(s), [domain.position(a) for a in s]))


def _too_many(number: int, cap: int) -> str:
    return (
        f"the downward closure of these tables has {number:,} coefficients or more, above the cap of "
        f"{cap:,}. Use the mechanism 'margins', ask for smaller tables, or raise the cap (max_cells)."
    )
