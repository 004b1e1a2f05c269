"""The published mechanisms say what they are, measure through the sampler, and refuse what they cannot do."""

from fractions import Fraction

import numpy as np
import pytest

import tabulary as tb
from tabulary.errors import InvalidArgument, InvalidPrivacy, InvalidTable, InvalidWorkload
from tabulary_papers.published import published_efron_stein, published_fourier, published_sensitivity
from tests.entropy import SeededEntropy
from tests.samplers import ConstantSampler

BINARY = tb.Table(tb.Domain(dict.fromkeys("ABC", "01")), np.arange(8).reshape(2, 2, 2))
MIXED = tb.Table(tb.Domain({"A": range(2), "B": range(3)}), [[5, 0, 2], [1, 1, 9]])

every_mechanism = pytest.mark.parametrize(
    "measure",
    [
        lambda *a, **k: published_fourier(BINARY, "[AB][BC]", *a, paper="YFR", **k),
        lambda *a, **k: published_fourier(BINARY, "[AB][BC]", *a, paper="DMT", **k),
        lambda *a, **k: published_efron_stein(BINARY, "[AB][BC]", *a, **k),
        lambda *a, **k: published_efron_stein(MIXED, "[AB]", *a, **k),
    ],
    ids=["YFR Table 1", "DMT Theorem 4", "YFR Table 2, binary", "YFR Table 2"],
)
both_relations = pytest.mark.parametrize("relation", ["add-remove", "replace"])


@every_mechanism
def test_every_measured_number_has_passed_the_sampler(measure):
    bare = measure(1, sampler=ConstantSampler(0))
    moved = measure(1, sampler=ConstantSampler(7))
    assert (moved.values - bare.values == 7).all()
    assert bare.linear_map.size == bare.values.size


@every_mechanism
@both_relations
def test_the_true_epsilon_is_what_the_worst_neighbour_costs(measure, relation):
    found = measure("1/2", neighbours=relation)
    units = np.eye(found.workload.domain.size).reshape(-1, *found.workload.domain.shape)
    changes = (
        units
        if relation == "add-remove"
        else (units[:, None] - units[None, :]).reshape(units.shape[0] ** 2, *units.shape[1:])
    )
    worst = max(np.abs(found.linear_map.forward(change)).sum() for change in changes)
    assert worst / float(found.noise.scale) == pytest.approx(float(found.true_epsilon))


@every_mechanism
@both_relations
def test_calibrated_exactly_the_label_is_true(measure, relation):
    found = measure("1/2", neighbours=relation, calibration="exact")
    assert found.true_epsilon == found.claimed_epsilon == Fraction(1, 2)
    assert found.statement == f"labelled ε = 0.5, really ε = 0.5 for {relation} neighbours"


@every_mechanism
def test_without_noise_the_program_returns_the_true_margins(measure):
    found = measure(1, sampler=ConstantSampler(0))
    table = MIXED if "C" not in found.workload.domain.attributes else BINARY
    tables = found.solve()
    assert tables.b == pytest.approx(0, abs=1e-6)
    for margin in found.workload:
        assert tables.margins[margin].counts.tolist() == table.project(margin).counts.tolist()


@every_mechanism
def test_the_published_tables_are_whole_non_negative_and_consistent(measure):
    found = measure(1, sampler=tb.noise.ExactSampler(SeededEntropy(1))).solve()
    assert found.table.counts.dtype == np.int64
    assert (found.table.counts >= 0).all()
    assert {t.total for t in found.margins.values()} == {found.table.total}


def test_the_statement_never_understates_the_loss():
    found = published_efron_stein(tb.datasets.load("journey-to-work"), "[AB][AC][BC]", "1/100")
    assert found.true_epsilon == Fraction(439, 338) / 100
    assert found.statement == "labelled ε = 0.01, really ε = 0.0130 for add-remove neighbours"
    assert "0.0130" in repr(found)


def test_the_contribution_of_a_person_multiplies_the_true_loss():
    found = published_fourier(
        BINARY, "[AB]", 1, neighbours=tb.Neighbours("add-remove", records=3), paper="DMT"
    )
    assert found.true_epsilon == 3
    assert "up to 3 records per person" in found.statement


def test_a_measurement_cannot_be_changed():
    found = published_fourier(BINARY, "[AB]", 1)
    with pytest.raises(ValueError, match="read-only"):
        found.values[0] = 0


def test_fourier_is_refused_on_attributes_of_more_than_two_levels():
    with pytest.raises(InvalidArgument, match="published_efron_stein"):
        published_fourier(MIXED, "[AB]", 1)


def test_impossible_cells_are_refused():
    domain = tb.Domain({"A": "xy", "B": "xy"}, [{"A": "x", "B": "x"}])
    table = tb.Table(domain, [[0, 1], [1, 1]])
    for measure in (published_fourier, published_efron_stein):
        with pytest.raises(InvalidArgument, match="structural zeros"):
            measure(table, "[AB]", 1)


def test_unknown_options_are_refused():
    with pytest.raises(InvalidArgument, match="calibration"):
        published_fourier(BINARY, "[AB]", 1, calibration="generous")
    with pytest.raises(InvalidArgument, match="paper"):
        published_fourier(BINARY, "[AB]", 1, paper="Barak")
    with pytest.raises(InvalidArgument, match="no published mechanism"):
        published_sensitivity(tb.Workload.k_way(BINARY.domain, 2), "YFR Table 9")
    with pytest.raises(InvalidPrivacy, match="epsilon must be positive"):
        published_fourier(BINARY, "[AB]", 0)
    with pytest.raises(InvalidPrivacy, match="not 'friends'"):
        published_fourier(BINARY, "[AB]", 1, neighbours="friends")


def test_a_workload_of_another_domain_is_refused():
    with pytest.raises(InvalidWorkload, match="made for another domain"):
        published_efron_stein(MIXED, tb.Workload.k_way(BINARY.domain, 1), 1)


def test_tables_that_are_not_counts_are_refused():
    with pytest.raises(InvalidTable, match="a cell is not a whole number"):
        published_efron_stein(tb.Table(MIXED.domain, np.full((2, 3), 0.5)), "[AB]", 1)


def test_counts_whose_terms_would_not_fit_are_refused():
    with pytest.raises(InvalidTable, match="64 bits"):
        published_efron_stein(tb.Table(MIXED.domain, np.full((2, 3), 2**59)), "[AB]", 1)


def test_exact_noise_for_tables_that_nobody_can_change_is_refused():
    with pytest.raises(InvalidArgument, match="no person can change"):
        published_fourier(BINARY, "[]", 1, neighbours="replace", calibration="exact")
    assert published_fourier(BINARY, "[]", 1, neighbours="replace").true_epsilon == 0
