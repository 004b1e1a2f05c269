"""Lists of overlapping tables: what they publish, what they say of themselves, what they refuse."""

import json
import math
from fractions import Fraction

import numpy as np
import pytest

import tabulary as tb
from tabulary.errors import (
    DifferentDomains,
    InvalidArgument,
    InvalidNoise,
    InvalidPrivacy,
    InvalidTable,
    InvalidWorkload,
    PublicError,
    TooManyCells,
    UnknownMargin,
)
from tabulary.noise import ExactSampler
from tabulary.perturb import Laplace, Normal, PerturbedTable
from tabulary.perturb.tables import Tables
from tests.entropy import SeededEntropy
from tests.samplers import ConstantSampler

PEOPLE = tb.Domain({"sex": "FM", "age": range(4), "job": range(3)})
LIST = "[sex age job][sex age][job]"
COUNTS = np.arange(24).reshape(PEOPLE.shape)
TABLE = tb.Table(PEOPLE, COUNTS)


def apply(tables, table=TABLE, seed=1, **options):
    return tables.apply(table, sampler=ExactSampler(SeededEntropy(seed)), **options)


def test_every_table_of_the_list_is_perturbed_with_its_own_law():
    tables = Tables(PEOPLE, LIST, epsilons={("sex", "age", "job"): 50, ("sex", "age"): 1, "job": "1/10"})
    made = apply(tables)
    assert isinstance(made["job"], PerturbedTable)
    assert (made["sex", "age", "job"].counts == COUNTS).all()
    for margin in tables.margins:
        assert made[margin].law == tables.law(margin) == Laplace(tables.epsilons[margin])
        assert made[margin].counts.dtype == np.int64
        deviation = tables.standard_deviation(margin)
        assert made[margin].standard_errors == pytest.approx(np.full(made[margin].shape, deviation))


def test_the_cells_of_different_tables_have_independent_noise():
    tables = Tables(PEOPLE, "[sex age][age]", epsilon="1/5")
    moved = [
        apply(tables, seed=seed)["sex", "age"].counts.sum(axis=0) - apply(tables, seed=seed)["age"].counts
        for seed in range(3)
    ]
    assert np.any(moved)


def test_tables_come_in_the_order_of_asking_and_by_any_order_of_their_attributes():
    made = apply(Tables(PEOPLE, LIST, epsilon=1))
    assert [table.margin for table in made] == [("sex", "age", "job"), ("sex", "age"), ("job",)]
    assert len(made) == 3
    assert (made["age", "sex"].counts == made["sex", "age"].counts.T).all()
    for unknown in ("age", ("sex", "job"), ("nothing",), ()):
        with pytest.raises(UnknownMargin, match=r"has no table on \["):
            made[unknown]


def test_negative_numbers_are_kept_unless_a_minimum_is_asked_for():
    tables = Tables(PEOPLE, LIST, epsilon="1/5")
    kept, zero, three = (apply(tables, minimum=minimum) for minimum in (None, 0, 3))
    assert min(table.counts.min() for table in kept) < 0
    for margin in tables.margins:
        assert (zero[margin].counts == np.maximum(kept[margin].counts, 0)).all()
        assert (three[margin].counts == np.maximum(kept[margin].counts, 3)).all()


def test_the_bias_of_a_minimum_is_known_by_original_count():
    tables = Tables(PEOPLE, LIST, epsilon=1)
    kept, zero, three = (apply(tables, minimum=minimum) for minimum in (None, 0, 3))
    law = tables.law("job")
    for original in (0, 1, 5, 40):
        assert kept.bias("job", original) == 0
        assert zero.bias("job", original) == law.bias(original, minimum=0) > 0
        assert three.bias("job", original) == law.bias(original, minimum=3) > zero.bias("job", original)
    assert f"by up to {zero.bias('job', 0):.3g} on average" in zero.statement()
    assert "Numbers below 3 were" in three.statement()
    assert "unbiased" in kept.statement()
    assert "unbiased" not in zero.statement()
    assert "unbiased" in apply(tables, margins="restored").statement()


def test_a_list_tells_what_to_expect_before_any_budget_is_spent():
    tables = Tables(PEOPLE, LIST, epsilon=1)
    rows = tables.standard_deviations()
    law = Laplace("1/3")
    row = rows["sex", "age"]
    assert row.direct == pytest.approx(law.noise.variance**0.5)
    assert row.summed == pytest.approx((3 * law.noise.variance) ** 0.5)
    assert row.source == ("sex", "age", "job")
    assert rows["sex", "age", "job"].summed is None
    assert row.cells == 8
    assert len(rows) == len(str(rows).splitlines()) - 1 == 3


def test_a_margin_that_is_not_in_the_list_is_added_up_from_the_best_table():
    tables = Tables(PEOPLE, LIST, epsilons={("sex", "age", "job"): 1, ("sex", "age"): "1/100", "job": 1})
    one = math.sqrt(Laplace(1).noise.variance)
    assert tables.standard_deviation("age") == pytest.approx(one * math.sqrt(6))
    assert tables.standard_deviation("age", source=("sex", "age")) > 100
    assert tables.standard_deviation(()) == pytest.approx(one * math.sqrt(3))
    with pytest.raises(InvalidWorkload, match="no table"):
        Tables(PEOPLE, "[sex]", epsilon=1).standard_deviation("age")
    with pytest.raises(InvalidWorkload, match="not a margin"):
        tables.standard_deviation("sex", source="job")


def test_structural_zeros_are_not_perturbed_and_shorten_sums():
    domain = tb.Domain({"age": range(3), "job": range(2)}, [{"age": 0, "job": 1}])
    tables = Tables(domain, "[age job][age]", epsilon=1)
    table = tb.Table(domain, [[4, 0], [4, 4], [4, 4]])
    assert all(apply(tables, table, seed=s)["age", "job"].counts[0, 1] == 0 for s in range(5))
    assert tables.cells(("age", "job")) == 5
    variance = tables.law(("age", "job")).noise.variance
    assert tables.standard_deviations()["age",].summed == pytest.approx(math.sqrt(5 / 3 * variance))


def test_weighted_counts_are_published_in_their_unit():
    tables = Tables(PEOPLE, LIST, epsilon=1, sensitivity=500, unit="1/100")
    bare = tables.apply(TABLE, sampler=ConstantSampler())
    assert bare["sex", "age", "job"].counts.tolist() == (COUNTS / 100).tolist()
    made = apply(tables)
    assert np.round(made["job"].counts * 100, 9) == pytest.approx(np.rint(made["job"].counts * 100))
    # Noise grows with the largest weight, five, and hardly with how finely it is counted.
    assert made["job"].standard_errors == pytest.approx(np.full(3, 5 * 3 * math.sqrt(2)), rel=1e-3)
    coarse = Tables(PEOPLE, LIST, epsilon=1, sensitivity=5)
    assert coarse.standard_deviation("job") == pytest.approx(tables.standard_deviation("job"), rel=0.01)
    assert made["job"].half_widths(0.95) == pytest.approx(np.full(3, 3 * 5 * math.log(20)), rel=0.01)
    assert made["job"].slice(job=1).standard_errors.shape == ()
    assert made["age", "sex"].standard_errors.shape == (4, 2)
    assert "at most 5." in made.statement()


def test_a_minimum_of_weighted_counts_is_a_whole_number_of_units():
    tables = Tables(PEOPLE, LIST, epsilon="1/10", sensitivity=50, unit="1/4")
    assert min(table.counts.min() for table in apply(tables, minimum="3/4")) == 0.75
    assert apply(tables, minimum="3/4").bias("job", 0) == 0.25 * tables.law("job").bias(0, minimum=3)
    assert apply(tables, minimum="3/4").describe()["minimum"] == "3/4"
    with pytest.raises(InvalidNoise, match="whole number of units"):
        apply(tables, minimum="1/3")


def test_weights_that_add_up_can_be_restored_too():
    tables = Tables(PEOPLE, LIST, epsilon=1, sensitivity=50, unit="1/10")
    made = apply(tables, margins="restored")
    assert made["sex", "age", "job"].counts.sum(axis=(0, 1)) == pytest.approx(made["job"].counts)
    assert made["job"].standard_errors == pytest.approx(
        np.full(3, tables.standard_deviations()["job",].restored)
    )


def test_a_list_describes_itself_for_an_analyst_and_for_the_ledger():
    tables = Tables(PEOPLE, LIST, epsilon=1, bound={("job",): 30}, sensitivity=2, neighbours="replace")
    made = apply(tables, minimum=1)
    described = json.loads(json.dumps(made.describe()))
    assert described["privacy"]["epsilon"] == "1"
    assert described["neighbours"] == tb.Neighbours("replace").describe()
    assert described["tables"][2] == {
        "attributes": ["job"],
        "weight": "1",
        "epsilon": "1/3",
        "perturbation": {"family": "laplace", "epsilon": "1/6", "bound": "30", "sensitivity": "2"},
    }
    assert (described["minimum"], described["margins"], described["unit"]) == ("1", "free", "1")
    assert described["statement"] == made.statement()
    assert (
        tables.digest()
        == Tables(PEOPLE, LIST, epsilon=1, bound={("job",): 30}, sensitivity=2, neighbours="replace").digest()
    )
    assert tables.digest() != Tables(PEOPLE, LIST, epsilon=1, sensitivity=2, neighbours="replace").digest()


def test_a_list_says_what_it_promises():
    pure, cut = (Tables(PEOPLE, LIST, epsilon="1/2", bound=bound) for bound in (None, 60))
    assert "3 tables together are ε-differentially private with ε = 0.5." in pure.statement()
    assert f"(ε, δ)-differentially private with {cut.privacy()}." in cut.statement()
    assert "any other in its place" in Tables(PEOPLE, LIST, epsilon=1, neighbours="replace").statement()
    assert str(pure) == "3 tables with laplace perturbations at ε = 0.5 (add-remove), d = 3"
    assert apply(cut).privacy == cut.privacy()


def test_bounds_and_the_family_reach_every_law():
    same = Tables(PEOPLE, LIST, epsilon=3, family=Normal, bound=9)
    assert same.laws == (Normal(1, 9),) * 3
    mixed = Tables(PEOPLE, LIST, epsilon=3, bound={"job": 9})
    assert mixed.laws == (Laplace(1), Laplace(1), Laplace(1, 9))


def test_the_data_may_be_every_table_by_itself():
    tables = Tables(PEOPLE, "[sex age][job]", epsilon=1)
    parts = {m: TABLE.project(m) for m in tables.margins}
    whole, apart = (apply(tables, data) for data in (TABLE, parts))
    assert all((whole[m].counts == apart[m].counts).all() for m in tables.margins)
    with pytest.raises(InvalidTable, match=r"\[job\]"):
        tables.apply({("sex", "age"): parts["sex", "age"]})


def test_data_of_another_domain_and_data_that_are_no_counts_are_refused():
    tables = Tables(PEOPLE, LIST, epsilon=1)
    with pytest.raises(DifferentDomains, match="different domains"):
        tables.apply(tb.datasets.load("rochdale"))
    for counts in (COUNTS + 0.5, COUNTS - 1):
        with pytest.raises(InvalidTable, match="whole numbers that are not negative"):
            tables.apply(tb.Table(PEOPLE, counts))


@pytest.mark.parametrize(
    ("work", "options", "error", "reason"),
    [
        (LIST, {}, InvalidArgument, "as epsilon, for the whole list, or as epsilons"),
        (
            LIST,
            {"epsilon": 1, "epsilons": {}},
            InvalidArgument,
            "as epsilon, for the whole list, or as epsilons",
        ),
        (LIST, {"epsilon": 0}, InvalidPrivacy, "epsilon must be positive"),
        (LIST, {"epsilons": {"job": 1}}, InvalidArgument, "there is no ε for"),
        ("[job]", {"epsilons": {"job": 1, "age": 1}}, InvalidArgument, "which is not in the list"),
        ("[job]", {"epsilons": {"nothing": 1}}, PublicError, "no attribute 'nothing'"),
        ("[job]", {"epsilons": {"job": 0}}, InvalidPrivacy, "epsilon must be positive"),
        ("[job]", {"epsilon": 1, "bound": {"age": 3}}, InvalidArgument, "there is a bound for"),
        ("[job]", {"epsilon": 1, "bound": 0}, InvalidNoise, "the bound of a noise must be a positive"),
        ("[job]", {"epsilon": 1, "family": Normal}, InvalidNoise, "needs a bound"),
        (
            "[job]",
            {"epsilon": 1, "family": PerturbedTable},
            InvalidNoise,
            "family of a list of tables must be",
        ),
        ("[job]", {"epsilon": 1, "sensitivity": 0}, InvalidNoise, "The sensitivity of a count"),
        ("[job]", {"epsilon": 1, "sensitivity": 1.5}, InvalidNoise, "The sensitivity of a count"),
        ("[job]", {"epsilon": 1, "unit": 0}, InvalidArgument, "the unit of the weights"),
        ("[job]", {"epsilon": 1, "neighbours": "near"}, InvalidPrivacy, "not 'near'"),
        (
            "[job]",
            {"epsilon": 1, "neighbours": tb.Neighbours("replace", 2)},
            InvalidArgument,
            "one record per person",
        ),
        (
            "[job]",
            {"epsilon": 1, "neighbours": tb.Neighbours("replace", sensitive=("job",))},
            InvalidArgument,
            "one record per person",
        ),
        ("[job][]", {"epsilon": 1, "neighbours": "replace"}, InvalidArgument, "nobody can change the table"),
        ("[job][job]", {"epsilon": 1}, InvalidWorkload, "twice"),
        (3, {"epsilon": 1}, InvalidWorkload, "the tables must be text"),
        (
            tb.Workload.parse("[A]", tb.datasets.load("rochdale").domain),
            {"epsilon": 1},
            InvalidWorkload,
            "a Workload of the same domain",
        ),
    ],
)
def test_what_cannot_be_is_refused_before_there_are_data(work, options, error, reason):
    with pytest.raises(error, match=reason):
        Tables(PEOPLE, work, **options)


def test_a_table_above_the_cap_is_refused():
    with pytest.raises(TooManyCells, match="99,990,000 cells, more than the cap"):
        Tables(tb.Domain({"a": range(10_000), "b": range(9_999)}), "[a b]", epsilon=1)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"minimum": -1}, "0 or more, not -1"),
        ({"minimum": "1/2"}, "0 or more, not '1/2'"),
        ({"minimum": True}, "the minimum published value must be .* not bool"),
        ({"margins": "nice"}, "margins must be 'free' or 'restored'"),
    ],
)
def test_an_option_that_cannot_be_is_refused(options, reason):
    with pytest.raises(PublicError, match=reason):
        Tables(PEOPLE, LIST, epsilon=1).apply(TABLE, **options)


def test_the_total_may_be_perturbed_where_it_is_not_public():
    tables = Tables(PEOPLE, "[job][]", epsilon=1)
    assert tables.d == 2
    assert apply(tables)[()].shape == ()
    # Replaced weights change it too.
    assert Tables(PEOPLE, "[job][]", epsilon=1, neighbours="replace", sensitivity=9).epsilon == 1


def test_epsilons_are_exact_and_add_up():
    epsilons = {("sex", "age", "job"): 0.1, ("sex", "age"): "1/3", "job": Fraction(2, 7)}
    assert Tables(PEOPLE, LIST, epsilons=epsilons).epsilon == Fraction(1, 10) + Fraction(1, 3) + Fraction(
        2, 7
    )
