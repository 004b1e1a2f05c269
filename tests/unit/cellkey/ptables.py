"""Perturbation tables for tests."""

from hypothesis import strategies as st

from tabulary.cellkey import PTable


@st.composite
def ptables(draw, moduli=(4, 10, 256), first=None):
    """A ptable with any pvalues that no count falls below zero by."""
    modulus = draw(st.sampled_from(moduli))
    start = draw(st.sampled_from([0, 1])) if first is None else first
    rows = draw(st.integers(1, 6))
    matrix = [
        draw(st.lists(st.integers(-min(3, start + row), 3), min_size=modulus, max_size=modulus))
        for row in range(rows)
    ]
    above = draw(st.sampled_from(["refuse", "last", ("repeat", start + rows - 1)]))
    return PTable.from_array(matrix, first=start, above=above if above != ("repeat", 0) else "last")


def wide_ptable(modulus, first=1, above="last"):
    """A law of five offsets at every count, nowhere biased, that perturbs zeros where it has a row for them."""
    rows = [{0: "1/2", 1: "1/4", 2: "1/4"}] if first == 0 else []
    rows += [{-1: "3/10", 0: "4/10", 1: "3/10"}]
    rows += [{-2: "1/10", -1: "1/5", 0: "2/5", 1: "1/5", 2: "1/10"}]
    return PTable.from_rows(rows, modulus=modulus, first=first, above=above)
