"""Small releases that every test of this room can make."""

import numpy as np

from tabulary.confidential.tally import Tally
from tabulary.core.domain import Domain
from tabulary.core.privacy import PureDP
from tabulary.core.table import Table
from tabulary.mechanisms import measure
from tabulary.noise import ExactSampler
from tabulary.planning import plan
from tabulary.release import Release
from tests.entropy import SeededEntropy

PEOPLE = Domain(
    {"sex": ["F", "M"], "age": ["0-14", "15-64", "65+"], "job": ["none", "paid, or self"]},
    structural_zeros=[{"age": "0-14", "job": "paid, or self"}],
)
WORK = "[sex][age job][sex age job]"


def a_release(domain=PEOPLE, work=WORK, *, seed=1, privacy=None, title="", **options):
    """A release of twenty people in every possible cell."""
    planned = plan(domain, work, privacy=privacy or PureDP(1), **options)
    possible = ~domain.impossible(domain.attributes)
    tally = Tally.from_table(Table(domain, 20 * possible.astype(np.int64)), planned.counted)
    return Release(measure(tally, planned, ExactSampler(SeededEntropy(seed))), title=title)


def same_tables(one, other):
    """Whether two releases hold the same tables, number by number."""
    return one.plan == other.plan and all(
        np.array_equal(a.counts, b.counts) and a.domain == b.domain for a, b in zip(one, other, strict=True)
    )
