"""Tables perturbed one by one beside mechanisms whose tables agree."""

import pytest

import tabulary as tb
from tabulary.perturb import Normal
from tabulary.perturb.alternatives import ALLOCATED, EQUAL, GIVEN, RESTORED
from tabulary.perturb.tables import Tables

PEOPLE = tb.Domain({"sex": "FM", "age": range(6), "job": range(5), "region": range(10)})
BINARY = tb.Domain(dict.fromkeys("abcde", "xy"))
LISTS = [
    (PEOPLE, "[sex age][age job][sex]"),
    (PEOPLE, "[sex age job region][sex age][job region][region]"),
    (PEOPLE, tb.Workload.all_up_to(PEOPLE, 2)),
    (PEOPLE, "[region]"),
    (BINARY, tb.Workload.k_way(BINARY, 3)),
    (BINARY, tb.Workload.all_up_to(BINARY, 5)),
]


@pytest.mark.parametrize(("domain", "work"), LISTS)
@pytest.mark.parametrize("epsilon", ["1/10", 1])
def test_residuals_are_never_worse_than_an_equal_split(domain, work, epsilon):
    compared = Tables(domain, work, epsilon=epsilon).compare()
    assert compared["residual"].agree
    assert compared["residual"].error <= compared[EQUAL].error * (1 + 1e-9)


@pytest.mark.parametrize(("domain", "work"), LISTS)
def test_the_rows_are_what_each_way_says_of_itself(domain, work):
    tables = Tables(domain, work, epsilon=1)
    compared = tables.compare()
    for row in compared.rows:
        if row.name in (GIVEN, RESTORED, EQUAL, ALLOCATED):
            continue
        plan = tb.plan(domain, work, privacy=tb.PureDP(1), mechanism=row.name, reconstruct="none")
        assert row.error == plan.expected_rmse
    assert compared[GIVEN].error == compared[EQUAL].error == tables.expected_rmse()
    assert compared[ALLOCATED].error <= compared[EQUAL].error * (1 + 1e-5)
    assert compared[RESTORED].error <= compared[GIVEN].error * (1 + 1e-9)
    assert compared[RESTORED].agree
    assert compared[GIVEN].agree == (len(tables.margins) == 1)
    errors = [row.error for row in compared.rows]
    assert errors == pytest.approx(sorted(errors))
    assert len(str(compared).splitlines()) == len(compared) + 1
    assert compared.privacy == tb.PureDP(1)


def test_importance_counts_in_every_way():
    work = tb.Workload.parse("[sex][age job]", PEOPLE).weighted({"sex": 1000})
    plain, weighted = (Tables(PEOPLE, w, epsilon=1).compare() for w in ("[sex][age job]", work))
    # An equal split is as wrong in one table as in the other, and only an allocation can mind.
    assert weighted[EQUAL].error == pytest.approx(plain[EQUAL].error)
    assert weighted[ALLOCATED].error < plain[ALLOCATED].error
    assert weighted["residual"].error == pytest.approx(
        tb.plan(PEOPLE, work, privacy=tb.PureDP(1), mechanism="residual").expected_rmse
    )


def test_with_a_bound_the_mechanisms_have_the_same_epsilon_and_delta():
    tables = Tables(PEOPLE, "[sex age][age job]", epsilon=1, family=Normal, bound=40)
    compared = tables.compare()
    assert compared.privacy == tables.privacy()
    plan = tb.plan(
        PEOPLE, "[sex age][age job]", privacy=tables.privacy(), mechanism="residual", reconstruct="none"
    )
    assert compared["residual"].error == plan.expected_rmse
    assert compared[GIVEN].noise == "Normal"


@pytest.mark.parametrize("relation", ["add-remove", "replace"])
def test_weighted_counts_are_compared_at_what_a_record_can_weigh(relation):
    tables = Tables(PEOPLE, "[sex age][age job]", epsilon=1, sensitivity=40, unit="1/10", neighbours=relation)
    compared = tables.compare()
    # The mechanism 'margins' is the equal split.
    assert compared["margins"].error == pytest.approx(compared[EQUAL].error)
    assert compared["residual"].error <= compared[EQUAL].error


def test_structural_zeros_forbid_no_mechanism():
    domain = tb.Domain({"age": range(3), "job": range(2)}, [{"age": 0, "job": 1}])
    compared = Tables(domain, "[age job][age]", epsilon=1).compare()
    assert not compared.refusals
    assert compared["cells"].error > 0
