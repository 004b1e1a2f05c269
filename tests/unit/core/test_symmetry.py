"""Attributes that may be exchanged, beside every permutation of a few."""

from itertools import combinations, permutations

from hypothesis import given, settings
from hypothesis import strategies as st

from tabulary.core.symmetry import interchangeable

NAMES = "abcd"
sets = st.frozensets(st.sampled_from(NAMES), max_size=3)


@settings(max_examples=200)
@given(
    st.dictionaries(st.tuples(sets, sets), st.integers(0, 1), max_size=10),
    st.tuples(*[st.integers(2, 3)] * 4),
)
def test_attributes_share_a_class_exactly_when_swapping_them_changes_nothing(described, sizes):
    levels = dict(zip(NAMES, sizes, strict=True))
    classes = interchangeable(levels, described)
    named = {a for key in described for s in key for a in s}
    assert sorted(a for names in classes for a in names) == sorted(named)
    together = {frozenset(pair) for names in classes for pair in combinations(names, 2)}
    for pair in combinations(sorted(named), 2):
        swap = dict(zip(pair, reversed(pair), strict=True))
        image = {
            tuple(frozenset(swap.get(a, a) for a in s) for s in key): value
            for key, value in described.items()
        }
        unchanged = image == described and levels[pair[0]] == levels[pair[1]]
        assert (frozenset(pair) in together) == unchanged


@given(st.sets(st.integers(0, 2)))
def test_all_sets_of_some_sizes_are_kept_by_every_permutation(orders):
    described = {(frozenset(s),): len(s) for n in orders for s in combinations(NAMES, n)}
    classes = interchangeable(dict.fromkeys(NAMES, 2), described)
    assert classes == ([list(NAMES)] if orders - {0} else [])
    for order in permutations(NAMES):
        moved = dict(zip(NAMES, order, strict=True))
        assert {(frozenset(moved[a] for a in s),) for (s,) in described} == set(described)
