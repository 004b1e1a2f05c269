from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tabulary import Domain, Workload
from tabulary.errors import InvalidWorkload, TooManyCells
from tabulary.infer import models
from tabulary.infer.models import LogLinearModel

LETTERS = "ABCDE"


@st.composite
def drawn_models(draw, most=5):
    letters = LETTERS[: draw(st.integers(1, most))]
    domain = Domain({a: range(draw(st.integers(1, 3))) for a in letters})
    margins = draw(st.lists(st.sets(st.sampled_from(letters)), min_size=1, max_size=6, unique_by=frozenset))
    return LogLinearModel(domain, tuple(domain.margin(m) for m in margins))


def cliques(edges, letters):
    """The maximal complete sets of a graph, by looking at every set."""
    complete = [
        set(s)
        for k in range(1, len(letters) + 1)
        for s in combinations(letters, k)
        if all(frozenset(pair) in edges for pair in combinations(s, 2))
    ]
    return [s for s in complete if not any(s < other for other in complete)]


def chordal(edges, letters):
    """Whether vertices can be taken away one by one, each with neighbours that all know each other."""
    left = set(letters)
    while left:
        for vertex in sorted(left):
            near = [v for v in left if frozenset((v, vertex)) in edges]
            if all(frozenset(pair) in edges for pair in combinations(near, 2)):
                left.remove(vertex)
                break
        else:
            return False
    return True


@given(drawn_models())
def test_a_model_is_decomposable_when_its_graph_is_chordal_and_its_generators_are_the_cliques(model):
    letters = model.attributes
    edges = {frozenset(pair) for g in model.generators for pair in combinations(g, 2)}
    graphical = sorted(map(sorted, cliques(edges, letters))) == sorted(
        sorted(g) for g in model.generators if g
    )
    assert model.decomposable == (graphical and chordal(edges, letters))


@given(drawn_models())
def test_the_design_has_the_rank_that_the_model_counts(model):
    design = model.design(np.arange(model.domain.size))
    assert np.linalg.matrix_rank(design) == model.parameters


@given(drawn_models())
def test_the_terms_are_all_margins_of_generators(model):
    assert set(model.terms) == set(Workload(model.domain, model.generators).closure().margins)


@given(drawn_models())
def test_dropping_a_generator_takes_exactly_that_interaction_away(model):
    for generator in model.generators:
        if generator:
            assert set(model.without(generator).terms) == set(model.terms) - {generator}


def test_a_model_does_not_depend_on_how_it_is_written():
    domain = Domain({"A": "xy", "B": "xy", "C": "xy"})
    model = LogLinearModel.parse("[BC][AB][C]", domain)
    assert model == LogLinearModel.parse([("B", "A"), ("C", "B")], domain)
    assert model == LogLinearModel.parse(Workload.parse("[AB][BC]", domain), domain)
    assert model == LogLinearModel.parse(model, domain)
    assert str(model) == "[AB][BC]"


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ("AB", "write each in brackets"),
        ("[AX]", "no attribute 'X'"),
        ("[AA]", "attribute 'A' twice"),
        (3, "a log-linear model is written as its margins"),
        ([("A", "X")], "no attribute 'X'"),
        ("[A][A]", r"the margin \[A\] twice"),
    ],
)
def test_what_is_not_a_model_of_the_table_is_refused(wrong, reason):
    with pytest.raises(InvalidWorkload, match=reason):
        LogLinearModel.parse(wrong, Domain({"A": "xy", "B": "xy"}))


def test_a_design_too_large_is_refused_with_its_size(monkeypatch):
    monkeypatch.setattr(models, "MAX_DESIGN", 10)
    model = LogLinearModel.parse("[A][B]", Domain({"A": "xy", "B": "xy"}))
    with pytest.raises(TooManyCells, match="4 margins on 4 cells"):
        model.design(np.arange(4))
