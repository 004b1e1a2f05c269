"""Error bars of published tables: they hold the truth as often as they say, and stay where they are.

People are generated and every release draws fresh noise that can be replayed. The classes of true counts are those that
a reader looks at: nobody, a few, a group, many.
"""

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import pytest

import tabulary as tb
from tabulary.confidential.tally import Tally
from tabulary.mechanisms import measure
from tabulary.noise import ExactSampler
from tabulary.planning import Face
from tabulary.reconstruct import reconstruct
from tests.entropy import SeededEntropy
from tests.populations import SHAPES, true_table

CLASSES = ((0, 0), (1, 4), (5, 50), (51, np.inf))
# A class with fewer cells says nothing about a share of 95 %: their errors are correlated.
FEWEST = 60
SHRUNK, WHOLE = Face("shrink", "none"), Face("shrink", "controlled")
LEAST_SQUARES = Face("least-squares", "controlled")
# Releases of few records say little about how strong interactions are, so their bars move more.
VAGUE = ("few records", "skewed")


@dataclass(frozen=True)
class Bars:
    """True counts, and the distances and half-widths of several releases of one plan, one row per release."""

    truth: np.ndarray
    distances: np.ndarray
    widths: np.ndarray

    def coverage(self, low, high=np.inf):
        """The share of cells in a class whose interval holds the truth; None if they are too few."""
        within = (self.truth >= low) & (self.truth <= high)
        return float((self.distances <= self.widths)[:, within].mean()) if within.sum() >= FEWEST else None

    def variation(self):
        """The standard deviation of the half-width of each cell over its mean."""
        return self.widths.std(axis=0, ddof=1) / self.widths.mean(axis=0)


@lru_cache
def bars(shape, face, releases, epsilon=1):
    """Return the bars of all tables of one and two attributes of a generated population."""
    domain, codes = SHAPES[shape](200)
    work = tb.Workload.all_up_to(domain, 2)
    plan = tb.plan(domain, work, privacy=tb.ApproxDP(epsilon, "1e-9"), mechanism="residual")
    truth = {m: true_table((domain, codes), m) for m in {*plan.counted, *work}}
    tally = Tally(domain, {m: truth[m] for m in plan.counted})
    rows = []
    for seed in range(releases):
        made = reconstruct(measure(tally, plan, ExactSampler(SeededEntropy(seed))), face)
        rows.append(
            [
                np.concatenate([np.abs(made.table(m) - truth[m]).ravel() for m in work]),
                np.concatenate([made.errors(m).half_widths(0.95).ravel() for m in work]),
            ]
        )
    distances, widths = np.moveaxis(np.array(rows, dtype=np.float64), 1, 0)
    return Bars(np.concatenate([truth[m].ravel() for m in work]), distances, widths)


def check_coverage(found):
    for low, high in CLASSES:
        held = found.coverage(low, high)
        assert held is None or held >= 0.91, f"of the true counts from {low} too few are held: {held:.3f}"
    assert 0.93 <= found.coverage(1) <= 0.995, "the cells that are not empty"


def check_steadiness(found, allowed=0.05):
    variation = found.variation()
    assert np.quantile(variation, 0.95) < allowed, f"bars move: {np.quantile(variation, 0.95):.3f}"
    assert variation.max() < 2 * allowed, f"bars move: {variation.max():.3f}"


@pytest.mark.parametrize("shape", ["dense", "mixed", "chained"])
def test_bars_of_official_tables_hold_the_truth_and_stay_where_they_are(shape):
    found = bars(shape, WHOLE, 6)
    check_coverage(found)
    check_steadiness(found)


@pytest.mark.audit
@pytest.mark.parametrize("face", [SHRUNK, WHOLE], ids=str)
@pytest.mark.parametrize("epsilon", ["1", "4"])
@pytest.mark.parametrize("shape", SHAPES)
def test_bars_of_shrunk_tables_hold_the_truth(shape, epsilon, face):
    check_coverage(bars(shape, face, 10, epsilon))


@pytest.mark.audit
@pytest.mark.parametrize("shape", SHAPES)
def test_bars_of_shrunk_tables_stay_where_they_are(shape):
    check_steadiness(bars(shape, SHRUNK, 10, "1"), allowed=0.15 if shape in VAGUE else 0.06)


@pytest.mark.audit
@pytest.mark.parametrize("shape", ["few records", "binary"])
def test_bars_of_least_squares_hold_the_truth_and_stay_where_they_are(shape):
    found = bars(shape, LEAST_SQUARES, 10)
    check_coverage(found)
    check_steadiness(found)


def test_cells_of_like_size_have_like_bars():
    domain, codes = SHAPES["mixed"](200)
    plan = tb.plan(domain, "[x2 x5]", privacy=tb.ApproxDP(1, "1e-9"), mechanism="residual")
    tally = Tally(domain, {m: true_table((domain, codes), m) for m in plan.counted})
    made = reconstruct(measure(tally, plan, ExactSampler(SeededEntropy(3))))
    margin = ("x2", "x5")
    counts, widths = made.table(margin).ravel(), made.errors(margin).half_widths(0.95).ravel()
    order = np.argsort(counts, kind="stable")
    assert (np.diff(widths[order]) >= 0).all()
    assert (widths[counts == 0] == widths[counts == 0][0]).all()


def test_bars_that_are_too_short_or_that_jitter_would_be_noticed():
    # The sabotaged twins: bars of seven tenths of the length, and bars that move by a tenth.
    found = bars("mixed", WHOLE, 6)
    with pytest.raises(AssertionError, match="too few are held"):
        check_coverage(replace(found, widths=0.7 * found.widths))
    jitter = 1 + 0.1 * np.random.default_rng(0).standard_normal(found.widths.shape)
    with pytest.raises(AssertionError, match="bars move"):
        check_steadiness(replace(found, widths=found.widths * jitter))
