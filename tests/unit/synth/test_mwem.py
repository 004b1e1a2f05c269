"""MWEM beside its definition."""

import math
from fractions import Fraction

import numpy as np
import pytest

import tabulary as tb
from tabulary.errors import (
    BudgetExceeded,
    InvalidArgument,
    InvalidPrivacy,
    InvalidWorkload,
    LedgerError,
    TooManyCells,
)
from tabulary.noise import ExactSampler
from tabulary.synth.mwem import Measured, MwemPlan, even_table, learned, margin_scores, mwem, updated
from tests.entropy import SeededEntropy

DOMAIN = tb.Domain({"a": range(2), "b": range(3), "c": range(2)})
WORK = "[a b][b c][a c]"


def a_table(seed=0, people=3_000):
    draw = np.random.default_rng(seed)
    return tb.Table(DOMAIN, draw.multinomial(people, draw.dirichlet(np.full(12, 0.5))).reshape(2, 3, 2))


class Scripted:
    """A sampler that draws no noise and chooses what it is told, so that a run can be followed by hand."""

    def __init__(self, choices):
        self.choices = list(choices)

    def draw(self, law, size):
        if type(law).__name__ == "ExponentialChoice":
            return np.array([self.choices.pop(0)])
        return np.zeros(size, dtype=np.int64)


def test_a_run_is_that_of_the_definition_cell_by_cell():
    """The reference goes through every cell of the full table with plain loops."""
    table = a_table()
    plan = MwemPlan.of(DOMAIN, WORK, tb.PureDP(1), rounds=3, passes=5, neighbours="replace")
    exact = {margin: table.project(margin).counts for margin in plan.margins}
    found, people = learned(plan, exact, Scripted([2, 0, 1]))
    assert people == 3_000

    reference = dict.fromkeys(np.ndindex(2, 3, 2), 3000 / 12)
    seen = []
    for chosen in (2, 0, 1):
        margin = plan.margins[chosen]
        seen.append(margin)
        for _ in range(5):
            for name in seen:
                axes = [DOMAIN.attributes.index(attribute) for attribute in name]
                present = {}
                for cell, weight in reference.items():
                    key = tuple(cell[axis] for axis in axes)
                    present[key] = present.get(key, 0.0) + weight
                for cell in reference:
                    key = tuple(cell[axis] for axis in axes)
                    reference[cell] *= math.exp((exact[name][key] - present[key]) / (2 * 3_000))
                total = sum(reference.values())
                for cell in reference:
                    reference[cell] *= 3_000 / total
    for cell, weight in reference.items():
        assert found[cell] == pytest.approx(weight, rel=1e-12)


def test_without_noise_the_table_comes_to_have_the_margins():
    table = a_table(1)
    plan = MwemPlan.of(DOMAIN, WORK, tb.PureDP(1), rounds=3, passes=400, neighbours="replace")
    exact = {margin: table.project(margin).counts for margin in plan.margins}
    found, _ = learned(plan, exact, Scripted([0, 1, 2]))
    for margin in plan.margins:
        others = tuple(i for i, name in enumerate(DOMAIN.attributes) if name not in margin)
        assert np.abs(found.sum(axis=others) - exact[margin]).sum() < 0.01 * 3_000


@pytest.mark.parametrize("relation", ["add-remove", "replace"])
def test_one_person_moves_every_score_and_margin_by_no_more_than_stated(relation):
    plan = MwemPlan.of(DOMAIN, WORK, tb.PureDP(1), neighbours=relation)
    table = a_table(2, 40).counts
    guess = np.random.default_rng(5).uniform(0, 9, (2, 3, 2))
    before = {m: tb.Table(DOMAIN, table).project(m).counts for m in plan.margins}
    worst, worst_l1 = 0, 0
    for taken in [None, *np.ndindex(2, 3, 2)]:
        for given in [None, *np.ndindex(2, 3, 2)]:
            if (relation == "replace") != (taken is not None and given is not None) or taken == given:
                continue
            other = table.copy()
            if taken is not None and not other[taken]:
                continue
            if taken is not None:
                other[taken] -= 1
            if given is not None:
                other[given] += 1
            after = {m: tb.Table(DOMAIN, other).project(m).counts for m in plan.margins}
            moved = np.abs(margin_scores(plan, after, guess) - margin_scores(plan, before, guess)).max()
            worst = max(worst, int(moved))
            worst_l1 = max(worst_l1, *(int(np.abs(after[m] - before[m]).sum()) for m in plan.margins))
    assert worst == plan.score_sensitivity
    assert plan.noise(plan.margins[0]).scale == worst_l1 / plan.share


def test_the_shares_add_up_to_what_was_asked_for():
    for privacy, whole in ((tb.PureDP(1), Fraction(1)), (tb.ZCDP("1/8"), Fraction(1, 8))):
        for relation in ("add-remove", "replace"):
            plan = MwemPlan.of(DOMAIN, WORK, privacy, rounds=7, neighbours=relation)
            total = 0 if plan.total_noise is None else whole / 20
            assert 2 * 7 * plan.share + total == whole


def test_the_choice_follows_its_law():
    """Frequencies of the first choice against exp(ε'·score/(2Δ)), and not against the law of twice the rate."""
    table = a_table(3, 60)
    plan = MwemPlan.of(DOMAIN, WORK, tb.PureDP(1), rounds=1, neighbours="replace")
    exact = {margin: table.project(margin).counts for margin in plan.margins}
    scores = margin_scores(plan, exact, even_table(DOMAIN, 60))
    law = np.exp(float(plan.rate) * (scores - scores.max()))
    from tabulary.toolbox.choice_laws import ExponentialChoice

    choice = ExponentialChoice(plan.rate, tuple(int(scores.max() - s) for s in scores), (1, 1, 1))
    drawn = ExactSampler(SeededEntropy(3)).draw(choice, 40_000)
    found = np.bincount(drawn, minlength=3) / 40_000
    assert np.abs(found - law / law.sum()).max() < 0.012
    doubled = law**2 / (law**2).sum()
    assert np.abs(found - doubled).max() > 0.024


def test_impossible_cells_stay_empty():
    domain = tb.Domain({"a": range(2), "b": range(3)}, structural_zeros=[{"a": 1, "b": 2}])
    table = tb.Table(domain, [[30, 40, 50], [20, 10, 0]])
    rows = mwem(table, "[a][b]", tb.PureDP(1), rounds=4, rows=400, entropy=SeededEntropy(1))
    assert rows.table("a", "b").counts[1, 2] == 0


def test_more_privacy_loss_gives_better_rows():
    table = a_table(4, 20_000)
    truth = table.project("a", "b").counts / 20_000

    def distance(epsilon):
        off = []
        for seed in range(4):
            rows = mwem(table, WORK, tb.PureDP(epsilon), rounds=6, rows=20_000, entropy=SeededEntropy(seed))
            off.append(np.abs(rows.table("a", "b").counts / 20_000 - truth).sum())
        return np.mean(off)

    assert distance("1/1000") > 3 * distance(1)


@pytest.mark.parametrize("privacy", [tb.PureDP(1), tb.ApproxDP(1, 1e-6), tb.ZCDP("1/8")], ids=str)
def test_every_promise_is_kept_in_its_own_noise(privacy):
    plan = MwemPlan.of(DOMAIN, WORK, privacy)
    kind = "DiscreteLaplace" if isinstance(privacy, tb.PureDP) else "DiscreteGaussian"
    assert type(plan.noise(plan.margins[0])).__name__ == kind
    assert len(mwem(a_table(), WORK, privacy, rounds=2, rows=50, entropy=SeededEntropy(0))) == 50


def test_an_account_pays_once_and_a_poor_one_is_told_before_anything_is_measured(tmp_path):
    with tb.Ledger.create(tmp_path / "ledger.sqlite") as book:
        account = book.create_account("census", tb.PureDP(1), tb.Neighbours("add-remove"))
        mwem(a_table(), WORK, tb.PureDP("3/4"), rounds=2, rows=10, ledger=account)
        with pytest.raises(BudgetExceeded):
            mwem(a_table(), WORK, tb.PureDP("3/4"), rounds=2, rows=10, ledger=account)
        assert len(list(account.entries())) == 1
        with pytest.raises(LedgerError, match="name the account"):
            mwem(a_table(), WORK, tb.PureDP("1/8"), rounds=2, rows=10, ledger=book)


def test_bad_input_is_refused_before_anything_is_read():
    table = a_table()
    with pytest.raises(InvalidArgument, match="rounds"):
        mwem(table, WORK, tb.PureDP(1), rounds=0)
    with pytest.raises(InvalidPrivacy, match="privacy must be PureDP, ApproxDP or ZCDP"):
        mwem(table, WORK, 1.0)
    with pytest.raises(InvalidWorkload, match="no attribute 'z'"):
        mwem(table, "[a z]", tb.PureDP(1))
    with pytest.raises(InvalidArgument, match="Records or from a Table"):
        mwem(type("Other", (), {"domain": DOMAIN})(), WORK, tb.PureDP(1))
    large = tb.Domain({f"x{i}": range(10) for i in range(8)})
    with pytest.raises(TooManyCells, match="graphical"):
        MwemPlan.of(large, tb.Workload.k_way(large, 2), tb.PureDP(1))


def test_an_update_leaves_what_it_agrees_with():
    even = even_table(DOMAIN, 1_200)
    same = Measured(("a",), np.array([600, 600]))
    assert np.allclose(updated(DOMAIN, even, [same], passes=3), even)
