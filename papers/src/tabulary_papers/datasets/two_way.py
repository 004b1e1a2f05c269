"""Made-up tables of two attributes, with and without association: the simulations of Rinott et al. (2018)."""

import numpy as np

from tabulary import Domain, Table
from tabulary.errors import InvalidTable

_MOST_CELLS = 1_000_000
# exp of more than this does not fit what a count is kept in.
_LARGEST_LOG = 30.0


def independent_table(
    shape: tuple[int, int], people: int, *, concentration: float = 3.0, seed: int = 2018
) -> Table:
    """Return the counts of so many people over two attributes that have nothing to do with each other.

    The shares of the levels are drawn from Dirichlet distributions, the chance of a cell is the product of its two
    shares, and the counts are multinomial: section 5.6.2. The larger the `concentration`, the more alike are the
    levels; at 1 every split is as likely as any other, and some levels have hardly anyone. The paper does not say what
    it took. The same seed gives the same table.

    >>> independent_table((10, 100), 10_000).total
    10000
    """
    _check_shape(shape)
    if isinstance(people, bool) or not isinstance(people, int) or people < 1:
        raise InvalidTable(f"the number of people must be a positive whole number, not {people!r}.")
    if not 0 < concentration < np.inf:
        raise InvalidTable(f"the concentration of shares must be a positive number, not {concentration!r}.")
    draw = np.random.default_rng(seed)
    rows, columns = (draw.dirichlet(np.full(levels, float(concentration))) for levels in shape)
    chances = np.outer(rows, columns)
    return _table(draw.multinomial(people, chances.reshape(-1) / chances.sum()).reshape(shape))


def log_linear_table(
    shape: tuple[int, int], *, level: float = 4.0, interaction: float = 0.0, seed: int = 2018
) -> Table:
    """Return Poisson counts with the means exp(η + α_i + β_j + `interaction` · γ_ij), η being the `level`.

    α, β and γ are drawn anew for each seed, evenly from -0.5 to 0.5: section 6.1, which takes η = 4 and an
    interaction of 0 or 0.7. Without interaction the attributes are independent.

    >>> log_linear_table((10, 10)).shape
    (10, 10)
    """
    _check_shape(shape)
    if not (abs(level) <= _LARGEST_LOG and abs(interaction) <= _LARGEST_LOG):
        raise InvalidTable(
            f"the level and the interaction must be logarithms within ±{_LARGEST_LOG:g}, not {level!r} and "
            f"{interaction!r}."
        )
    draw = np.random.default_rng(seed)
    rows, columns, cells = (draw.uniform(-0.5, 0.5, size) for size in (shape[0], shape[1], shape))
    return _table(draw.poisson(np.exp(level + rows[:, None] + columns + interaction * cells)))


def _check_shape(shape: tuple[int, int]) -> None:
    if len(shape) != 2 or min(shape) < 1 or shape[0] * shape[1] > _MOST_CELLS:
        raise InvalidTable(
            f"a two-way table needs rows and columns, with at most {_MOST_CELLS:,} cells in all, not the "
            f"shape {shape!r}."
        )


def _table(counts: np.ndarray[tuple[int, ...], np.dtype[np.int64]]) -> Table:
    rows, columns = counts.shape
    return Table(Domain({"row": range(1, rows + 1), "column": range(1, columns + 1)}), counts)
