"""Rows from graphical models: the tree beside full tables, the fit beside exact margins, and what is refused."""

import builtins

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tabulary as tb
from tabulary.errors import (
    BudgetExceeded,
    InvalidArgument,
    InvalidWorkload,
    LedgerError,
    MissingExtra,
    TooManyCells,
)
from tabulary.noise import DiscreteGaussian
from tabulary.synth.adaptive import Observed
from tabulary.synth.graphical import (
    GraphicalLearner,
    TreeModel,
    graphical,
    require_mbi,
    rows_of,
)
from tests.entropy import SeededEntropy

DOMAIN = tb.Domain({name: range(size) for name, size in zip("abcde", (2, 3, 2, 4, 2), strict=True)})
CLIQUES = (("a", "b"), ("b", "c"), ("b", "d"), ("e",))


def a_chain(seed):
    """A distribution on all five attributes that factors along CLIQUES, as a full table of shares."""
    draw = np.random.default_rng(seed)
    full = np.ones(DOMAIN.shape)
    for clique in CLIQUES:
        factor = draw.gamma(0.7, size=DOMAIN.shape_of(clique)) * (draw.random(DOMAIN.shape_of(clique)) < 0.9)
        shape = [n if name in clique else 1 for name, n in zip(DOMAIN.attributes, DOMAIN.shape, strict=True)]
        full = full * (factor + 1e-3 * (draw.random() < 0.5)).reshape(shape)
    return full


def margin_of(full, margin, domain=DOMAIN):
    return full.sum(axis=tuple(i for i, name in enumerate(domain.attributes) if name not in margin))


@given(
    seed=st.integers(0, 10**6), names=st.sets(st.sampled_from("abcde"), min_size=1), end=st.sampled_from("xy")
)
@settings(max_examples=60)
def test_every_margin_of_a_tree_is_that_of_its_full_table(seed, names, end):
    full = a_chain(seed)
    if not full.sum():
        return
    full = full / full.sum()
    # Either way is an order in which each clique shares attributes with earlier ones as its parent does.
    cliques = CLIQUES if end == "x" else (CLIQUES[3], CLIQUES[2], CLIQUES[0], CLIQUES[1])
    model = TreeModel(DOMAIN, cliques, tuple(margin_of(full, c) for c in cliques), 50.0)
    margin = DOMAIN.margin(names)
    assert np.allclose(model.table(margin), 50 * margin_of(full, margin), atol=1e-9)


def test_without_mbi_the_remedy_is_told_and_nothing_is_spent(monkeypatch, tmp_path):
    real = builtins.__import__

    def without(name, *rest):
        if name == "mbi":
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with tb.Ledger.create(tmp_path / "ledger.sqlite") as book:
        account = book.create_account("census", tb.ZCDP(1), tb.Neighbours("add-remove"))
        with pytest.raises(MissingExtra, match=r"tabulary\[synth\]"):
            graphical(tb.Table(DOMAIN, np.ones(DOMAIN.shape, int)), "[a b]", tb.ZCDP(1), ledger=account)
        assert not list(account.entries())


@pytest.fixture
def mbi():
    try:
        return require_mbi()[1]
    except MissingExtra as missing:
        pytest.skip(str(missing))


def exactly(full, margin, domain=DOMAIN, people=10_000):
    return Observed(
        margin, np.rint(people * margin_of(full, margin, domain)).astype(int), DiscreteGaussian(1)
    )


@pytest.mark.slow
def test_a_model_fitted_to_exact_margins_has_them_and_its_rows_too(mbi):
    full = a_chain(11)
    full /= full.sum()
    learner = GraphicalLearner(DOMAIN, 2**20)
    observed = [exactly(full, clique) for clique in CLIQUES]
    model = learner.fit(observed, 10_000.0, last=True)
    for names in ("ab", "bc", "bd", "e", "ad", "acd"):
        margin = tuple(names)
        assert np.abs(model.table(margin) - 10_000 * margin_of(full, margin)).sum() < 0.02 * 10_000
    codes = rows_of(model, 10_000, SeededEntropy(0))
    rows = tb.synth.SyntheticRecords(DOMAIN, codes)
    for names in ("ab", "bd", "ad"):
        assert np.abs(rows.table(*names).counts - model.table(tuple(names))).sum() < 0.03 * 10_000


def test_a_margin_is_eligible_only_while_its_tree_fits_the_part_of_the_memory(mbi):
    learner = GraphicalLearner(DOMAIN, 8 * 30)
    seen = [("a", "b"), ("b", "c"), ("b", "d")]
    within = learner.eligible([("b",), ("b", "d"), ("d", "e"), ("c", "d")], seen, 1)
    # With (c, d) the tree would hold (b, c, d): 24 cells beside the 6 of (a, b) and the 2 of e.
    assert within == [("b",), ("b", "d")]
    roomy = GraphicalLearner(DOMAIN, 8 * 34)
    assert roomy.eligible([("d", "e"), ("c", "d")], seen, 1) == [("d", "e"), ("c", "d")]
    assert roomy.eligible([("d", "e"), ("c", "d")], seen, 0.5) == []


@pytest.mark.slow
def test_no_model_ever_takes_more_than_the_memory(mbi, monkeypatch):
    taken = []
    fit = GraphicalLearner.fit

    def watched(self, observed, people, *, last):
        model = fit(self, observed, people, last=last)
        taken.append(sum(table.nbytes for table in model.tables))
        return model

    monkeypatch.setattr(GraphicalLearner, "fit", watched)
    full = a_chain(3)
    table = tb.Table(DOMAIN, np.rint(5_000 * full / full.sum()).astype(int))
    work = tb.Workload.k_way(DOMAIN, 2)
    graphical(table, work, tb.ZCDP(1), memory=8 * 34, rounds=6, rows=50, entropy=SeededEntropy(0))
    assert 0 < max(taken) <= 8 * 34


@pytest.mark.slow
def test_impossible_records_are_neither_believed_in_nor_made(mbi):
    domain = tb.Domain(
        {"a": range(2), "b": range(3), "c": range(2)}, structural_zeros=[{"a": 1, "b": 2}, {"b": 0, "c": 1}]
    )
    counts = np.full((2, 3, 2), 40)
    counts[1, 2], counts[:, 0, 1] = 0, 0
    table = tb.Table(domain, counts)
    learner = GraphicalLearner(domain, 2**20)
    model = learner.fit([exactly(counts / counts.sum(), (n,), domain) for n in "abc"], 1e4, last=False)
    believed = model.table(("a", "b", "c"))
    assert (believed[counts == 0] == 0).all()
    assert (believed[counts > 0] > 0).all()
    rows = graphical(
        table, "[a][b c]", tb.ZCDP("1/100"), rounds=4, rows=3_000, entropy=SeededEntropy(1)
    ).table("a", "b", "c")
    assert (rows.counts[counts == 0] == 0).all()


@pytest.mark.slow
def test_more_privacy_loss_gives_better_rows_with_the_domains_labels(mbi):
    full = a_chain(5)
    table = tb.Table(DOMAIN, np.rint(20_000 * full / full.sum()).astype(int))
    work = tb.Workload.k_way(DOMAIN, 2)

    def distance(rho):
        rows = graphical(table, work, tb.ZCDP(rho), rounds=8, entropy=SeededEntropy(2))
        apart = [
            np.abs(rows.table(*m).counts / len(rows) - table.project(*m).counts / table.counts.sum()).sum()
            for m in work.margins
        ]
        return np.mean(apart), rows

    poor, _ = distance("1/1000000")
    rich, rows = distance(1)
    assert poor > 5 * rich
    assert rich < 0.05
    assert len(rows) == pytest.approx(table.counts.sum(), rel=0.01)
    assert rows.guarantee == "ρ = 1 (add-remove)"
    assert set(rows.to_pandas()["d"]) <= set(DOMAIN.levels_of("d"))


def test_an_account_pays_once_and_before_anything_is_drawn(mbi, tmp_path):
    table = tb.Table(DOMAIN, np.ones(DOMAIN.shape, int))

    class Broken:
        def draw(self, law, size):
            raise RuntimeError("no entropy")

    with tb.Ledger.create(tmp_path / "ledger.sqlite") as book:
        account = book.create_account("census", tb.ZCDP(1), tb.Neighbours("add-remove"))
        with pytest.raises(RuntimeError, match="no entropy"):
            graphical(table, "[a b]", tb.ZCDP("3/4"), ledger=account, sampler=Broken())
        assert len(list(account.entries())) == 1
        with pytest.raises(BudgetExceeded):
            graphical(table, "[a b]", tb.ZCDP("3/4"), ledger=account, sampler=Broken())
        with pytest.raises(LedgerError, match="name the account"):
            graphical(table, "[a b]", tb.ZCDP("1/8"), ledger=book)


def test_bad_input_is_refused_before_anything_is_measured(mbi):
    table = tb.Table(DOMAIN, np.ones(DOMAIN.shape, int))
    with pytest.raises(TooManyCells, match="smallest model"):
        graphical(table, "[a b]", tb.ZCDP(1), memory="32 B")
    with pytest.raises(InvalidWorkload, match="no attribute 'z'"):
        graphical(table, "[a z]", tb.ZCDP(1))
    with pytest.raises(TooManyCells, match="rows"):
        graphical(table, "[a b]", tb.ZCDP(1), rows=10**12)
    with pytest.raises(InvalidArgument, match="Records or from a Table"):
        graphical(type("Other", (), {"domain": DOMAIN})(), "[a b]", tb.ZCDP(1))
