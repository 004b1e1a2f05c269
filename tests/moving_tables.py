"""Small tables of which something is left open, for what must be shown of a walk among them."""

import numpy as np
from hypothesis import strategies as st

from tabulary.table_samplers.partial_table import CellQuestion, PartialTable, SplitQuestion, TableQuestion
from tests.suppressed_tables import known_table

SHAPES = [(2, 2), (2, 3), (3, 3), (2, 4), (2, 2, 2), (2, 3, 2), (2, 1, 3)]


@st.composite
def moving_tables(draw, people: int = 3) -> PartialTable:
    """What is known of a table with people of two kinds in each cell, some cells released and some bounded."""
    shape = draw(st.sampled_from(SHAPES))
    number, probability, counts, chance = _table(shape, draw(st.integers(0, 2**32 - 1)), people)
    known = known_table(number, probability, counts, released=chance.random(shape) < 0.2)
    for index in np.argwhere(chance.random(shape) < 0.2):
        place = tuple(map(int, index))
        low, high = max(int(counts[place]) - 1, 0), min(int(counts[place]) + 1, int(known.upper[place]))
        known = known.bounded(place, max(low, int(known.lower[place])), high)
    return known


@st.composite
def open_questions(draw, people: int = 3) -> tuple[PartialTable, TableQuestion]:
    """What is known, and a question about it: a cell that is open, or a group of one more level than is parted."""
    if draw(st.booleans()):
        known = draw(moving_tables(people))
        cells = np.argwhere(known.lower < known.upper)
        cell = draw(st.sampled_from(cells.tolist())) if cells.size else [0] * known.lower.ndim
        return known, CellQuestion(tuple(cell))
    shape = draw(st.sampled_from([shape for shape in SHAPES if 1 not in shape]))
    axis = draw(st.integers(0, len(shape) - 1))
    number, probability, counts, _ = _table(shape, draw(st.integers(0, 2**32 - 1)), people)
    cuts = [tuple(range(1, levels)) for levels in shape]
    cut = draw(st.sampled_from(cuts[axis]))
    cuts[axis] = tuple(other for other in cuts[axis] if other != cut)
    return known_table(number, probability, counts, groups=tuple(cuts)), SplitQuestion(axis, cut - 1, cut)


def _table(shape, seed, people):
    chance = np.random.default_rng(seed)
    number = chance.integers(0, people + 1, (*shape, 2))
    number[..., 0] += 1
    probability = chance.choice([0.05, 0.2, 0.4, 0.5, 0.7], number.shape)
    counts = chance.binomial(number.sum(axis=-1), chance.uniform(0.2, 0.6))
    return number, probability, counts, chance
