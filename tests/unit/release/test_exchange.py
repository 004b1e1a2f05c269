import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tabulary.core.domain import Domain
from tabulary.core.privacy import ZCDP, PureDP
from tabulary.core.table import Table
from tabulary.errors import InvalidTable, PublicError
from tabulary.infer import independence
from tabulary.planning import StatedErrors, plan
from tabulary.release import ReleasedTable
from tabulary.release.cutting import cut
from tabulary.release.exchange import (
    Provenance,
    counts_from_document,
    document_bytes,
    table_document,
    table_from_document,
)
from tests.unit.release.releases import PEOPLE

DOMAIN = Domain({"sex": ["F", "M"], "age": ["0-14", "15-64", "65+"], "region": ["N", "S", "W"]})
PLAN = plan(DOMAIN, "[sex age region]", privacy=ZCDP("1/8"), mechanism="residual")
ZEROS_PLAN = plan(PEOPLE, "[sex age job]", privacy=PureDP(1), mechanism="cells")
SOURCE = Provenance("census", "2026", "fixed", "a promise")


def answered(planned, by, where=None, keep=None):
    """A table of a plan as a builder would cut it, and its document as a client would read it."""
    margin = planned.domain.margin((*by, *(where or {})))
    domain = planned.domain.project(margin)
    shown = np.arange(domain.size).reshape(domain.shape) * ~domain.impossible(margin)
    whole = ReleasedTable(
        Table(domain, shown if planned is ZEROS_PLAN else shown / 7), planned.error_of(margin)
    )
    table = cut(whole, by, where or {}, keep or {})
    question = {"by": list(by), "where": where or {}, "keep": keep or {}}
    document = table_document(table, replace(SOURCE, plan=planned.digest()), question)
    return table, json.loads(document_bytes(document))


def perturbed(counts=((12, 3), (40, 0)), minimum=5):
    """A document of counts that are not differentially private, some of them withheld."""

    class Published:
        domain = Domain({"a": "xy", "b": "xy"})

    Published.counts = np.ma.masked_less(np.array(counts), minimum)
    source = Provenance("census", "2026", "cell-key", "NOT private", perturbation={"keys": 256})
    return json.loads(
        document_bytes(table_document(Published, source, {"by": ["a", "b"], "where": {}, "keep": {}}))
    )


@st.composite
def questions(draw):
    order = draw(st.permutations(DOMAIN.attributes))
    taken = draw(st.integers(0, 3))
    by, rest = order[:taken], order[taken:]
    where = {a: draw(st.sampled_from(DOMAIN.levels_of(a))) for a in rest if draw(st.booleans())}
    keep = {
        a: draw(st.lists(st.sampled_from(DOMAIN.levels_of(a)), min_size=1, unique=True))
        for a in by
        if draw(st.booleans())
    }
    return tuple(by), where, keep


@given(questions())
def test_a_table_reads_back_from_its_document_to_the_last_digit(question):
    table, document = answered(PLAN, *question)
    read = table_from_document(document, PLAN)
    assert read.domain == table.domain
    assert np.array_equal(read.counts, table.counts)
    assert np.array_equal(read.standard_errors, table.standard_errors)
    for stated, known in zip(read.interval(0.9), table.interval(0.9), strict=True):
        assert np.array_equal(stated, known)
    assert np.array_equal(read.covariance.dense(), table.covariance.dense())


def test_a_test_of_the_read_table_is_the_test_of_the_served_one():
    table, document = answered(PLAN, ("age", "region"), {"sex": "F"})
    assert independence(table_from_document(document, PLAN)) == independence(table)


@pytest.mark.parametrize("where", [{}, {"age": "0-14"}, {"sex": "M"}])
def test_impossible_cells_stay_impossible(where):
    by = tuple(a for a in ("job", "age", "sex") if a not in where)
    table, document = answered(ZEROS_PLAN, by, where)
    read = table_from_document(document, ZEROS_PLAN)
    assert table.domain.impossible(by).any()
    assert np.array_equal(read.domain.impossible(by), table.domain.impossible(by))
    assert read.counts.dtype.kind == "i"


def test_chosen_levels_keep_their_impossible_cells():
    table, document = answered(ZEROS_PLAN, ("age", "job"), keep={"age": ["0-14", "65+"]})
    assert document["impossible"] == [1]
    assert table_from_document(document, ZEROS_PLAN).domain == table.domain


def test_a_part_in_which_nothing_is_possible_is_all_zeros():
    where = {"job": "paid, or self"}
    table, document = answered(ZEROS_PLAN, ("age",), where, {"age": ["0-14"]})
    assert table_from_document(document, ZEROS_PLAN).counts.tolist() == [0]
    assert table.standard_errors.tolist() == [0.0]


def test_simulated_errors_are_taken_as_stated():
    errors = StatedErrors(np.array([[1.5, 0.7], [0.5, 0.0]]), np.array([[3.1, 1.3], [1.0, 0.0]]))
    domain = Domain({"a": "xy", "b": "xy"}, [{"a": "y", "b": "y"}])
    table = ReleasedTable(Table(domain, [[0.1, 2.7], [31.4, 0.0]]), errors)
    source = replace(SOURCE, plan=PLAN.digest(), reconstructed=True)
    document = table_document(table, source, {"by": ["a", "b"], "where": {}, "keep": {}})
    read = table_from_document(json.loads(document_bytes(document)))
    assert document["errors"] == "simulated"
    assert read.covariance is None
    assert np.array_equal(read.standard_errors, table.standard_errors)
    assert np.allclose(read.half_widths(0.95), table.half_widths(0.95), rtol=1e-12)
    assert read.domain.impossible(read.margin).tolist() == [[False, False], [False, True]]


def test_the_document_says_where_the_table_comes_from_and_nothing_of_the_call():
    _, document = answered(PLAN, ("sex",))
    assert set(document) == {
        *("schema", "dataset", "version", "method", "question", "variables", "impossible", "count"),
        *("standard_error", "lower_95", "upper_95", "estimate", "errors", "plan", "reconstructed"),
        *("perturbation", "promise"),
    }
    assert (document["dataset"], document["version"], document["plan"]) == ("census", "2026", PLAN.digest())


def test_labels_are_shown_where_there_are_any():
    table, _ = answered(PLAN, ("sex", "age"))
    document = table_document(table, SOURCE, {}, {"sex": "Sex at birth"})
    assert [v["label"] for v in document["variables"]] == ["Sex at birth", "age"]


def test_cells_are_flat_with_the_last_attribute_fastest():
    table, document = answered(PLAN, ("age", "sex"))
    assert document["count"] == [float(table[a, s]) for a in DOMAIN.levels_of("age") for s in "FM"]


def test_a_withheld_count_is_null_and_nothing_of_it_is_there():
    document = perturbed()
    assert document["count"] == [12, None, 40, None]
    assert document["standard_error"] is None
    assert document["errors"] == "unknown"
    domain, counts = counts_from_document(document)
    assert domain.attributes == ("a", "b")
    assert counts.tolist() == [[12, None], [40, None]]
    assert not counts.data[counts.mask].any()


def test_counts_without_a_law_are_no_released_table():
    with pytest.raises(InvalidTable, match="not differentially private"):
        table_from_document(perturbed())
    with pytest.raises(InvalidTable, match="are known"):
        counts_from_document(answered(PLAN, ("sex",))[1])


def test_only_the_plan_that_is_named_explains_the_errors():
    _, document = answered(PLAN, ("sex",))
    for wrong in (None, plan(DOMAIN, "[sex age region]", privacy=ZCDP("1/4"), mechanism="residual")):
        with pytest.raises(InvalidTable, match="follow from the plan"):
            table_from_document(document, wrong)


NO_DOCUMENT = "not a document of a table that Tabulary writes"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"schema": "tabulary-table/2"}, "the schema 'tabulary-table/2'"),
        ({"extra": 1}, NO_DOCUMENT),
        ({"count": None}, NO_DOCUMENT),
        ({"count": [1.0]}, "one number under 'count' for each cell"),
        ({"count": [1.0, float("nan")]}, "numbers under 'count' that no table can have"),
        ({"count": [1.0, float("inf")]}, "numbers under 'count' that no table can have"),
        ({"count": [1.0, None]}, "values under 'count' that are not numbers"),
        ({"count": [1.0, "2"]}, "values under 'count' that are not numbers"),
        ({"count": [1, True]}, "values under 'count' that are not numbers"),
        ({"count": [10**400, 1]}, "numbers under 'count' that no table can have"),
        ({"count": [10**30, 1]}, "numbers under 'count' that no table can have"),
        ({"standard_error": None}, "one number under 'standard_error' for each cell"),
        ({"standard_error": [1.0, 1.0]}, "the column 'standard_error' of the table"),
        ({"standard_error": [0.0, 0.0]}, "the column 'standard_error' of the table"),
        ({"upper_95": [0.0, 0.0]}, "the column 'upper_95' of the table"),
        ({"errors": "guessed"}, NO_DOCUMENT),
        ({"impossible": [0]}, "the attributes and levels of the table are not those"),
        ({"question": {"by": ["sex"]}}, "does not state its question"),
        ({"question": {"by": ["sex"], "where": {"age": "9"}, "keep": {}}}, "no level '9'"),
        (
            {"question": {"by": ["sex"], "where": {"age": 3}, "keep": {}}},
            "does not state its question",
        ),
        (
            {"question": {"by": ["sex"], "where": {}, "keep": {"sex": "F"}}},
            "does not state its question",
        ),
        ({"question": {"by": ["job"], "where": {}, "keep": {}}}, "no attribute 'job'"),
        (
            {"question": {"by": ["age"], "where": {}, "keep": {}}},
            "the attributes and levels of the table are not those",
        ),
        ({"variables": [], "count": [1.0]}, "the attributes and levels of the table are not those"),
        ({"variables": [{"name": "sex", "label": "sex", "levels": ["F", 3]}]}, NO_DOCUMENT),
        (
            {"variables": [{"name": "sex", "label": "sex", "levels": ["M", "F"]}]},
            "the attributes and levels of the table are not those",
        ),
        ({"variables": [{"name": "sex", "levels": ["F", "M"]}]}, NO_DOCUMENT),
    ],
    ids=str,
)
def test_a_document_that_was_changed_is_refused(change, reason):
    _, document = answered(PLAN, ("sex",))
    with pytest.raises(InvalidTable, match=reason):
        table_from_document({**document, **change}, PLAN)


@pytest.mark.parametrize("name", ["count", "plan", "promise", "impossible"])
def test_a_document_that_lacks_a_field_is_refused(name):
    _, document = answered(PLAN, ("sex",))
    del document[name]
    with pytest.raises(InvalidTable, match=NO_DOCUMENT):
        table_from_document(document, PLAN)


@pytest.mark.parametrize("document", [None, [], "table", 3, {}])
def test_what_is_no_document_is_refused(document):
    with pytest.raises(InvalidTable, match=NO_DOCUMENT):
        table_from_document(document, PLAN)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"count": [1, 2, 3]}, "a whole number, or nothing, for each cell"),
        ({"count": [1, 2, 3, 4.5]}, "a whole number, or nothing, for each cell"),
        ({"count": [1, 2, 3, True]}, "a whole number, or nothing, for each cell"),
        ({"count": [1, 2, 3, 10**30]}, "a table must contain whole or real numbers, not object"),
        ({"impossible": [4]}, "impossible cells that the table does not have"),
        ({"impossible": ["0"]}, "impossible cells that the table does not have"),
        ({"impossible": [0]}, "declares impossible is not zero"),
        ({"variables": [{"name": "a", "label": "a", "levels": ["x", "y"]}] * 2}, "names an attribute twice"),
    ],
    ids=str,
)
def test_perturbed_counts_that_cannot_be_are_refused(change, reason):
    with pytest.raises(PublicError, match=reason):
        counts_from_document({**perturbed(), **change})


def test_simulated_errors_that_cannot_be_are_refused():
    domain = Domain({"a": "xy"})
    table = ReleasedTable(Table(domain, [1.0, 2.0]), StatedErrors(np.ones(2), np.ones(2)))
    document = table_document(
        table, replace(SOURCE, reconstructed=True), {"by": ["a"], "where": {}, "keep": {}}
    )
    for change in ({"standard_error": [-1.0, 1.0]}, {"upper_95": [0.0, 3.0]}, {"lower_95": [-9.0, 1.0]}):
        with pytest.raises(InvalidTable, match="not those of any table"):
            table_from_document({**document, **change})


def two_faced(by=("sex", "age"), where=None, keep=None):
    """A published table with its unbiased face, and its document."""
    linear, plain = answered(PLAN, by, where, keep)
    errors = StatedErrors(np.full(linear.shape, 1.5), np.full(linear.shape, 3.0))
    table = ReleasedTable(Table(linear.domain, np.rint(linear.counts)), errors, linear)
    source = replace(SOURCE, plan=PLAN.digest(), reconstructed=True)
    return table, json.loads(document_bytes(table_document(table, source, plain["question"])))


@given(questions())
def test_both_faces_of_a_table_read_back_from_its_document(question):
    table, document = two_faced(*question)
    read = table_from_document(document, PLAN)
    assert read.counts.tolist() == table.counts.tolist()
    assert read.estimate.tolist() == table.estimate.tolist()
    assert read.standard_errors.tolist() == table.standard_errors.tolist()
    np.testing.assert_array_equal(read.interval()[0], table.interval()[0])
    np.testing.assert_array_equal(read.unbiased.standard_errors, table.unbiased.standard_errors)
    assert read.covariance is None
    np.testing.assert_allclose(read.unbiased.covariance.dense(), table.unbiased.covariance.dense())


def test_an_unbiased_face_needs_its_plan():
    _, document = two_faced()
    for given_plan in (None, ZEROS_PLAN):
        with pytest.raises(InvalidTable, match="Give exactly that plan"):
            table_from_document(document, given_plan)
    with pytest.raises(InvalidTable, match="one number under 'estimate' for each cell"):
        table_from_document(document | {"estimate": [1.0]}, PLAN)
