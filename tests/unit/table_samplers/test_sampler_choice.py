"""Which sampler answers a question."""

from fractions import Fraction

import numpy as np
import pytest

from tabulary.core.domain import Domain
from tabulary.suppress.simulatable_method.terms import SuppressionTerms
from tabulary.table_samplers.partial_table import CellQuestion, PartialTable
from tabulary.table_samplers.people import People
from tabulary.table_samplers.public_seed import PublicSeed
from tabulary.table_samplers.sampler_choice import sampler_chooser
from tests.suppressed_tables import true_answers


def a_table(*shape: int, number: int = 20) -> PartialTable:
    people = People.of(
        Domain({f"x{n}": range(levels) for n, levels in enumerate(shape)}), np.full(shape, number), 0.4
    )
    counts = np.full(shape, number // 2)
    axes = range(len(shape))
    return PartialTable.table(
        people, tuple(counts.sum(axis=tuple(a for a in axes if a != axis)) for axis in axes)
    )


def test_the_exact_program_is_taken_where_it_is_feasible_and_the_chain_where_it_is_not():
    choose = sampler_chooser("auto", epsilon=0.5)
    assert choose(a_table(2, 3), CellQuestion((0, 0))).name == "exact"
    assert choose(a_table(2, 2, 2), CellQuestion((0, 0, 0))).name == "chain"
    assert choose(a_table(10, 10, number=100), CellQuestion((0, 0))).name == "chain"
    assert choose(a_table(2, 3), None).name == "exact"


@pytest.mark.parametrize("name", ["exact", "chain"])
def test_one_sampler_may_be_asked_for_everything(name):
    choose = sampler_chooser(name, epsilon=0.5)
    assert {choose(table, None).name for table in (a_table(2, 3), a_table(2, 2, 2))} == {name}


def test_a_value_that_meets_epsilon_in_its_own_cell_is_looked_at_in_the_others():
    # 3 of 20 people where 4 were expected: exactly a quarter less, and by a rounding error more. One is then left for
    # 40 others, of whom 8 were expected.
    people = People.of(Domain({"a": "xy", "b": "xyz"}), [[20, 20, 20], [30, 30, 30]], 0.2)
    known = PartialTable.table(people, (np.array([4, 20]), np.array([8, 8, 8])))
    terms = SuppressionTerms(Fraction(1, 4), Fraction(1, 10), sampler="chain")
    chain = terms.sampler_chooser()(known, CellQuestion((0, 0)))
    answers = chain.answers(known, CellQuestion((0, 0)), draws=500, seed=PublicSeed("a seed"))
    truth = true_answers(known, CellQuestion((0, 0)))
    assert answers.deviation[answers.values == 3] >= truth.deviation[truth.values == 3] - 1e-9
    assert truth.deviation[truth.values == 3] == pytest.approx(0.875)
