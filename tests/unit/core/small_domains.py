"""Small random domains, and what brute force says about them."""

from itertools import product

import numpy as np
from hypothesis import assume
from hypothesis import strategies as st

from tabulary.core.domain import Domain
from tabulary.core.neighbours import Neighbours
from tabulary.errors import InvalidDomain


@st.composite
def domains(draw, *, max_attributes=4, max_levels=3, max_zeros=4):
    """A domain of few cells with random structural zeros, some of them on several levels at once."""
    names = "ABCD"[: draw(st.integers(1, max_attributes))]
    levels = {a: "pqr"[: draw(st.integers(1, max_levels))] for a in names}
    boxes = {a: st.sets(st.sampled_from(levels[a]), min_size=1).map(sorted) for a in names}
    zero = st.fixed_dictionaries({}, optional=boxes).filter(bool)
    zeros = draw(st.lists(zero, max_size=max_zeros))
    try:
        return Domain(levels, zeros)
    except InvalidDomain:
        # Contradictory zeros, which have a test of their own.
        assume(False)


def possible_cells(domain):
    """Every cell of the full table, as a tuple of codes, that no structural zero matches."""
    ruled_out = [
        [(domain.position(a), {domain.code(a, level) for level in levels}) for a, levels in zero]
        for zero in domain.structural_zeros
    ]
    return [
        cell
        for cell in product(*map(range, domain.shape))
        if not any(all(cell[i] in codes for i, codes in zero) for zero in ruled_out)
    ]


def counted(domain, margin, cells):
    """How many of `cells` fall in each cell of `margin`."""
    positions = [domain.position(a) for a in margin]
    counts = np.zeros(domain.shape_of(margin), dtype=np.int64)
    for cell in cells:
        counts[tuple(cell[i] for i in positions)] += 1
    return counts


def margins_of(domain):
    """A margin of the domain, in its order; the total included."""
    return st.sets(st.sampled_from(domain.attributes)).map(domain.margin)


def near(relation, records=1):
    """The neighbouring relation of a name; "dropping" replaces records that may be left out of the counts."""
    if relation == "dropping":
        return Neighbours("replace", records, may_drop=True)
    return Neighbours(relation, records)
