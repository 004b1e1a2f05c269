"""The cells of margins as queries."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tabulary as tb
from tabulary.confidential.tally import Tally
from tabulary.errors import InvalidArgument, InvalidWorkload, TooManyCells
from tabulary.synth.queries import Queries, offsets_of

DOMAIN = tb.Domain({"a": range(3), "b": range(2), "c": range(4)}, [{"a": 0, "b": 1}])


@st.composite
def workloads(draw):
    names = "abc"
    every = [tuple(n for i, n in enumerate(names) if bits >> i & 1) for bits in range(1, 8)]
    margins = draw(st.lists(st.sampled_from(every), min_size=1, unique=True))
    sizes = draw(st.lists(st.integers(1, 4), min_size=3, max_size=3))
    domain = tb.Domain({name: range(size) for name, size in zip(names, sizes, strict=True)})
    return tb.Workload(domain, margins)


@given(workloads(), st.integers(0, 2**32 - 1))
@settings(max_examples=60, deadline=None)
def test_a_cell_is_the_product_of_its_prefix_and_its_last_column(work, seed):
    """On whole rows spelled out as zeros and ones, the products add up to the counts of the table."""
    queries = Queries.of(work)
    domain = queries.domain
    codes = np.random.default_rng(seed).integers(0, domain.shape, (20, len(domain.shape)))
    spelled = np.zeros((sum(domain.shape) + 1, 20), int)
    spelled[-1] = 1
    for place, first in enumerate(offsets_of(domain)[:-1]):
        spelled[first + codes[:, place], np.arange(20)] = 1
    products = spelled[queries.prefixes].prod(axis=1)[queries.prefix] * spelled[queries.last]
    counts = np.zeros(domain.shape, int)
    np.add.at(counts, tuple(codes.T), 1)
    tally = Tally.from_table(tb.Table(domain, counts), work.margins)
    assert products.sum(axis=1).tolist() == queries.exact(tally).tolist()


def test_one_person_moves_every_cell_by_at_most_one_and_one_cell_of_each_margin():
    """The sensitivity that the noise is scaled to, by brute force over all tables that differ by one record."""
    work = tb.Workload.all_up_to(DOMAIN, 2)
    queries = Queries.of(work)
    margin = np.repeat(np.arange(len(work)), [DOMAIN.cells(m) for m in work.margins])
    before = queries.exact(Tally.from_table(tb.Table(DOMAIN, np.zeros(DOMAIN.shape, int)), work.margins))
    for cell in np.argwhere(~DOMAIN.impossible(DOMAIN.attributes)):
        counts = np.zeros(DOMAIN.shape, int)
        counts[tuple(cell)] = 1
        moved = queries.exact(Tally.from_table(tb.Table(DOMAIN, counts), work.margins)) - before
        assert moved.max() == 1
        assert np.bincount(margin, weights=moved).tolist() == [1.0] * len(work)


def test_an_impossible_cell_is_no_query():
    queries = Queries.of(tb.Workload.parse("[ab][c]", DOMAIN))
    assert queries.asked.size == 3 * 2 - 1 + 4
    assert queries.impossible.tolist() == [1]


def test_attributes_in_no_margin_are_left_out():
    assert Queries.of(tb.Workload.parse("[c][a]", DOMAIN)).domain.attributes == ("a", "c")


def test_the_total_alone_makes_no_rows():
    with pytest.raises(InvalidWorkload, match="no table by an attribute"):
        Queries.of(tb.Workload(DOMAIN, [()]))


def test_the_total_may_stand_beside_other_tables():
    queries = Queries.of(tb.Workload(DOMAIN, [(), ("b",)]))
    tally = Tally.from_table(tb.Table(DOMAIN, ~DOMAIN.impossible(DOMAIN.attributes) * 2), queries.margins)
    assert queries.exact(tally).tolist() == [40, 24, 16]


def test_more_choices_than_queries_are_refused_with_both_numbers():
    queries = Queries.of(tb.Workload.parse("[ab]", DOMAIN))
    queries.check_rounds(1, 5)
    with pytest.raises(
        InvalidArgument, match=r"choose 6, but the margins have 5 cells.*Nothing was measured"
    ):
        queries.check_rounds(2, 3)


@pytest.mark.parametrize("number", [0, -1, 1.5, True, "2"])
def test_rounds_are_counted(number):
    queries = Queries.of(tb.Workload.parse("[ab]", DOMAIN))
    with pytest.raises(InvalidArgument, match="rounds must be a whole number"):
        queries.check_rounds(number, 1)
    with pytest.raises(InvalidArgument, match="per_round must be a whole number"):
        queries.check_rounds(1, number)


def test_too_many_cells_are_refused_before_they_are_made():
    domain = tb.Domain({name: range(200) for name in "abcd"})
    with pytest.raises(TooManyCells, match="24,000,000 cells together"):
        Queries.of(tb.Workload(domain, [tuple("abc"), tuple("abd"), tuple("bcd")]))


def test_too_many_targets_are_refused():
    domain = tb.Domain({name: range(200) for name in "abc"} | {name: range(2000) for name in "xy"})
    with pytest.raises(TooManyCells, match="GiB of targets"):
        Queries.of(tb.Workload(domain, [tuple("abc"), "x", "y"]))
