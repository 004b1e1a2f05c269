"""A table with its totals."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tabulary as tb
from tabulary.core.domain import Domain
from tabulary.core.labels import Labels, VariableLabels
from tabulary.core.table import Table
from tabulary.errors import InvalidArgument
from tabulary.release.totals import TOTAL, with_totals

LEVELS = {"sex": ["F", "M"], "age": ["young", "middle", "old"], "job": ["none", "paid"]}
ZEROS = [{"age": "young", "job": "paid"}]


@pytest.fixture(scope="module")
def release():
    domain = Domain(LEVELS, ZEROS)
    possible = ~domain.impossible(domain.attributes)
    people = Table(domain, (np.arange(12).reshape(domain.shape) * 20 + 100) * possible)
    work = tb.Workload(domain, [["sex", "age", "job"]]).closure()
    return tb.release(people, tb.plan(domain, work, privacy=tb.PureDP(1)))


@given(st.permutations(list(LEVELS)), st.integers(0, 3), st.sampled_from([0.8, 0.95]))
@settings(max_examples=20)
def test_each_total_is_a_number_of_a_smaller_table_with_its_error(release, order, size, confidence):
    named = tuple(order[:size])
    totalled = with_totals(release, named)
    shape = tuple(len(LEVELS[a]) + 1 for a in named)
    lower, upper = totalled.interval(confidence)
    assert totalled.domain.attributes == named
    assert totalled.domain.shape == totalled.counts.shape == totalled.impossible.shape == shape
    for place in np.ndindex(*shape):
        levels = {a: totalled.domain.levels_of(a)[i] for a, i in zip(named, place, strict=True)}
        kept = tuple(a for a in named if levels[a] != TOTAL)
        own = release[kept]
        at = own.table.index({a: levels[a] for a in kept})
        assert totalled.counts[place] == own.counts[at]
        assert totalled.standard_errors[place] == own.standard_errors[at]
        assert totalled.half_widths(confidence)[place] == own.half_widths(confidence)[at]
        assert [lower[place], upper[place]] == [end[at] for end in own.interval(confidence)]
        assert totalled.impossible[place] == own.domain.impossible(kept)[at]
    assert np.array_equal(totalled.domain.impossible(named), totalled.impossible)


def test_a_total_over_impossible_cells_is_impossible():
    domain = Domain(LEVELS, [{"age": "young"}])
    work = tb.Workload(domain, [["sex", "age"]]).closure()
    totalled = with_totals(
        tb.release(Table(domain, np.zeros(domain.shape)), tb.plan(domain, work, privacy=tb.PureDP(1))),
        ("sex", "age"),
    )
    assert totalled.impossible.tolist() == [[True, False, False, False]] * 3
    assert np.array_equal(totalled.domain.impossible(("sex", "age")), totalled.impossible)


def test_labels_name_the_total_beside_the_levels(release):
    words = Labels(variables={"sex": VariableLabels("Sukupuoli", levels={"F": "Nainen"})}, total="Yhteensä")
    labels = with_totals(release, ("sex", "age"), labels=words).labels
    assert [labels.level("sex", code) for code in ("F", "M", TOTAL)] == ["Nainen", "M", "Yhteensä"]
    assert labels.level("age", TOTAL) == "Yhteensä"
    assert with_totals(release, "sex").labels.level("sex", TOTAL) == "Total"


def test_a_level_with_the_code_of_totals_is_refused():
    domain = Domain({"sex": ["F", TOTAL]})
    work = tb.Workload(domain, [["sex"]]).closure()
    made = tb.release(Table(domain, [100, 90]), tb.plan(domain, work, privacy=tb.PureDP(1)))
    with pytest.raises(InvalidArgument, match="'sex' has a level '_T'"):
        _ = with_totals(made, "sex").domain
