"""The two faces of a release over many releases of one plan: estimates are unbiased, published counts need not be."""

from itertools import combinations
from statistics import NormalDist

import numpy as np
import pytest

import tabulary as tb
from tabulary.confidential.tally import Tally
from tabulary.mechanisms import MECHANISMS, measure
from tabulary.noise import ExactSampler
from tabulary.planning.face import LINEAR
from tabulary.reconstruct import reconstruct
from tests.entropy import SeededEntropy

pytestmark = pytest.mark.audit

ALPHA = 1e-6
RELEASES = 400
# Some cells are empty and one is impossible: that is where published counts are biased and estimates must not be.
DOMAIN = tb.Domain(
    {"sex": ["F", "M"], "age": ["0-14", "15-64", "65+"], "job": ["none", "paid"]},
    structural_zeros=[{"age": "0-14", "job": "paid"}],
)
PEOPLE = tb.Table(DOMAIN, [[[3, 0], [0, 40], [9, 0]], [[1, 0], [6, 55], [0, 2]]])


@pytest.mark.parametrize("privacy", [tb.PureDP("1/2"), tb.ZCDP("1/8")], ids=str)
@pytest.mark.parametrize("mechanism", sorted(MECHANISMS))
def test_estimates_are_unbiased_in_every_margin_and_published_counts_are_found_to_be_biased(
    mechanism, privacy
):
    plan = tb.plan(DOMAIN, "[sex age][age job]", privacy=privacy, mechanism=mechanism)
    tally = Tally.from_table(PEOPLE, plan.counted)
    sampler = ExactSampler(SeededEntropy(31))
    measured = [measure(tally, plan, sampler) for _ in range(RELEASES)]
    faces = {face: [reconstruct(each, face) for each in measured] for face in (LINEAR, plan.face)}
    margins = {s for m in plan.workload for n in range(len(m) + 1) for s in combinations(m, n)}
    truth = {m: PEOPLE.project(m).counts for m in margins}
    cells = sum(counts.size for counts in truth.values())
    farthest = NormalDist().inv_cdf(1 - ALPHA / (2 * cells))
    scores = dict.fromkeys(faces, 0.0)
    for margin in margins:
        possible = ~DOMAIN.impossible(margin)
        deviation = plan.error_of(margin).standard_errors[possible] / np.sqrt(RELEASES)
        for face, made in faces.items():
            mean = np.mean([each.table(margin) for each in made], axis=0)
            off = np.abs(mean - truth[margin])[possible] / deviation
            scores[face] = max(scores[face], float(off.max()))
    assert scores[LINEAR] < farthest
    # The twin: what was made non-negative is too large where nobody is.
    assert scores[plan.face] > farthest
