"""`simulatable`: what it takes, what comes back, what is refused."""

import json

import numpy as np
import pandas
import polars
import pyarrow
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tabulary as tb
from tabulary.errors import (
    InvalidArgument,
    InvalidColumn,
    InvalidDomain,
    InvalidPrivacy,
    InvalidTable,
    PublicError,
    TabularyError,
    UnknownLevel,
)
from tabulary.suppress import People, SimulatableTable, SuppressedTable, replay, simulatable
from tabulary.suppress.simulatable_method.inputs import read_people
from tabulary.suppress.simulatable_method.suppressor import NO_SAFE_BINNING, TABLE
from tabulary.table_samplers.partial_table import CellQuestion
from tests.suppressed_tables import true_posteriors

DOMAIN = tb.Domain({"eye": ["blue", "brown"], "hair": ["fair", "dark"]})
PEOPLE = np.array([[60, 50], [70, 80]])
COUNTS = np.array([[25, 20], [31, 40]])
SECRET = 40


def same(one: People, other: People) -> bool:
    return one.domain == other.domain and all(
        one.count_law(block).people.tolist() == other.count_law(block).people.tolist()
        and one.count_law(block).probability.tolist() == other.count_law(block).probability.tolist()
        for block in (((i, i + 1), (j, j + 1)) for i, j in np.ndindex(2, 2))
    )


# ---- what comes back ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def table() -> SimulatableTable:
    return simulatable(tb.Table(DOMAIN, PEOPLE), tb.Table(DOMAIN, COUNTS), 0.45, title="Carriers")


@pytest.fixture(scope="module")
def partly() -> SimulatableTable:
    """A table some of whose cells are too small."""
    people = np.array([[40, 30, 8], [50, 60, 9], [45, 40, 60]])
    counts = np.array([[18, 13, 3], [25, 27, 4], [20, 19, 28]])
    return simulatable(people, counts, 0.45, attributes=["eye", "hair"])


def test_a_safe_table_is_published_whole_with_its_sums(table):
    assert isinstance(table, SuppressedTable)
    assert table.outcome == TABLE
    assert table.counts.tolist() == COUNTS.tolist()
    assert not table.suppressed.any()
    assert {margin: sums.tolist() for margin, sums in table.sums.items()} == {
        (): 116,
        ("eye",): [45, 71],
        ("hair",): [56, 60],
    }
    assert table.people.tolist() == PEOPLE.tolist()
    assert (table.epsilon, table.delta, table.rule, table.sampler) == (
        pytest.approx(0.5),
        pytest.approx(0.2),
        "computed",
        "auto",
    )
    assert table.title == "Carriers"
    assert repr(table) == "<SimulatableTable 2 × 2, 0 of 4 cells suppressed>"


def test_small_cells_are_left_out_and_released_ones_are_true(partly):
    assert partly.outcome == TABLE
    assert 0 < partly.suppressed.sum() < 9
    counts = np.array([[18, 13, 3], [25, 27, 4], [20, 19, 28]])
    assert (partly.counts[~partly.suppressed] == counts[~partly.suppressed]).all()
    assert partly.sums["eye",].tolist() == [34, 56, 67]
    decided = {
        decision.question.index: decision.released
        for decision in partly.decisions
        if isinstance(decision.question, CellQuestion)
    }
    assert {index: not partly.suppressed[index] for index in np.ndindex(3, 3)} == decided


def test_deviations_are_those_of_everyone_given_all_that_is_released(table, partly):
    share = COUNTS / PEOPLE
    np.testing.assert_allclose(table.deviations, np.abs(share - 0.45) / 0.45, atol=1e-9)
    small = simulatable(np.full((2, 2), 4), [[1, 1], [3, 2]], 0.5, epsilon="0.9", delta="0.8")
    assert small.suppressed.any()
    for index, posteriors in true_posteriors(small.known).items():
        assert small.deviations[index] == pytest.approx(np.abs(posteriors - 0.5).max() / 0.5, abs=1e-6)
    assert (partly.deviations <= 0.5 + 1e-6).all()


def test_promised_delta_is_delta_where_everything_is_computed(table):
    assert table.promised_delta == 0.2


def test_promised_delta_adds_the_error_of_simulated_decisions():
    sampled = simulatable([[60, 50, 80], [70, 80, 90]], [[25, 20, 40], [31, 40, 41]], 0.45, rule="sampled")
    added = sum(decision.error for decision in sampled.decisions if decision.released)
    assert added > 0
    assert sampled.promised_delta == pytest.approx(0.2 + added, abs=1e-15)


def test_where_not_even_the_total_is_safe_nothing_is_published():
    refused = simulatable([[1, 0], [1, 1]], [[1, 0], [1, 0]], 0.5)
    assert refused.outcome == NO_SAFE_BINNING
    assert refused.sums == {}
    assert refused.known is None
    assert refused.suppressed.all()
    assert [decision.value for decision in refused.decisions] == [None]
    assert (refused.deviations == 0).all()
    assert repr(refused) == "<SimulatableTable: no safe binning>"


def test_where_a_sum_is_not_safe_what_was_committed_is_published_and_no_cell():
    refused = simulatable([[1, 0], [60, 70]], [[1, 0], [30, 33]], 0.5)
    assert refused.outcome == NO_SAFE_BINNING
    assert refused.sums[()] == 64
    assert refused.domain.shape == (1, 1)
    assert refused.suppressed.all()


def test_binned_attributes_have_parts_for_levels():
    ages = tb.Domain({"age": range(20, 26), "sex": ["F", "M"]})
    people, counts = np.full((6, 2), 20), np.arange(12).reshape(6, 2) % 5 + 7
    binned = simulatable(people, tb.Table(ages, counts), 0.45, bins={"age": 2})
    assert binned.domain == tb.Domain({"age": ["20-22", "23-25"], "sex": ["F", "M"]})
    assert binned.people.tolist() == [[60, 60], [60, 60]]
    assert binned.counts.tolist() == counts.reshape(2, 3, 2).sum(axis=1).tolist()
    assert binned.people_by_kind.domain == ages


@pytest.mark.parametrize("which", ["table", "partly"])
def test_a_table_comes_back_from_its_description_byte_by_byte(which, request):
    published = request.getfixturevalue(which)
    text = json.dumps(published.describe(), allow_nan=False)
    back = SimulatableTable.from_description(json.loads(text))
    assert json.dumps(back.describe()) == text
    assert back.terms == published.terms
    assert back.decisions == published.decisions


def test_the_description_names_no_number_that_is_not_released(partly):
    released = {d.value for d in partly.decisions if d.released}
    described = partly.describe()
    shown = {value for row in described["counts"] for value in row if value is not None}
    assert shown <= released


def test_the_same_inputs_give_the_same_bytes(table):
    again = simulatable(tb.Table(DOMAIN, PEOPLE), tb.Table(DOMAIN, COUNTS), 0.45, title="Carriers")
    assert json.dumps(again.describe()) == json.dumps(table.describe())


def test_a_seed_may_be_given():
    given_seed = simulatable(PEOPLE, COUNTS, 0.45, seed="mine", rule="sampled")
    assert given_seed.seed == "mine"
    assert given_seed.terms.derived_seed(given_seed.people_by_kind) != "mine"


def test_an_order_may_be_given_by_position_or_by_labels():
    by_position = simulatable(tb.Table(DOMAIN, PEOPLE), COUNTS, 0.45, order=[(1, 1), (0, 1), (1, 0), (0, 0)])
    by_labels = simulatable(
        tb.Table(DOMAIN, PEOPLE),
        COUNTS,
        0.45,
        order=[("brown", "dark"), ("blue", "dark"), ("brown", "fair"), ("blue", "fair")],
    )
    assert by_position.terms.order == by_labels.terms.order == ((1, 1), (0, 1), (1, 0), (0, 0))
    with pytest.raises(InvalidDomain, match="no level 'red'"):
        simulatable(tb.Table(DOMAIN, PEOPLE), COUNTS, 0.45, order=[("red", "dark")])
    with pytest.raises(InvalidArgument, match="one level of each of 'eye', 'hair'"):
        simulatable(tb.Table(DOMAIN, PEOPLE), COUNTS, 0.45, order=[("blue",)])


@pytest.mark.slow
def test_a_three_way_table_is_decided_with_the_chain_where_three_attributes_are_parted():
    people, counts = np.full((2, 2, 2), 60), np.array([[[27, 21], [23, 21]], [[25, 26], [31, 26]]])
    three_way = simulatable(people, counts, 0.45)
    assert three_way.counts.tolist() == counts.tolist()
    assert list(three_way.sums) == [(), ("row",), ("column",), ("layer",)]
    samplers = {decision.asked: decision.sampler for decision in three_way.decisions}
    assert samplers["column: 1 apart from 2"] == "exact"
    assert samplers["layer: 1 apart from 2"] == "chain"
    simulated = [decision for decision in three_way.decisions if decision.sampler == "chain"]
    draws = three_way.terms.draws(27)
    assert {decision.draws for decision in simulated} == {draws} == {663}
    assert all(decision.error > 0 for decision in simulated)
    assert any("r_hat" in decision.diagnostics for decision in simulated)
    assert three_way.promised_delta == pytest.approx(0.2 + sum(decision.error for decision in simulated))
    text = json.dumps(three_way.describe(), allow_nan=False)
    assert replay(SimulatableTable.from_description(json.loads(text))).ok


def test_the_chain_may_be_asked_for():
    chained = simulatable([[60, 50, 55], [70, 80, 60]], [[25, 20, 25], [31, 40, 30]], 0.45, sampler="chain")
    assert {decision.sampler for decision in chained.decisions} == {"exact", "chain", "none"}
    assert [d.asked for d in chained.decisions if d.sampler == "exact"] == ["the total"]
    assert not chained.suppressed.any()


def test_the_exact_program_alone_refuses_a_three_way_table():
    with pytest.raises(InvalidTable, match="chain"):
        simulatable(np.full((2, 2, 2), 60), np.full((2, 2, 2), 27), 0.45, sampler="exact")


# ---- what it takes --------------------------------------------------------------------------------------------------

EXPECTED = People.of(DOMAIN, PEOPLE, 0.45)


def persons(library):
    rows = []
    for index in np.ndindex(2, 2):
        for number in range(PEOPLE[index]):
            eye, hair = DOMAIN.levels[0][index[0]], DOMAIN.levels[1][index[1]]
            rows.append({"hair": hair, "gene": number < COUNTS[index], "p": 0.45, "eye": eye})
    if library == "pandas":
        return pandas.DataFrame(rows)
    frame = pyarrow.Table.from_pylist(rows)
    return polars.from_arrow(frame) if library == "polars" else frame


@pytest.mark.parametrize(
    ("people", "counts", "probability", "options"),
    [
        (tb.Table(DOMAIN, PEOPLE), tb.Table(DOMAIN, COUNTS), 0.45, {}),
        (PEOPLE, tb.Table(DOMAIN, COUNTS), 0.45, {}),
        (tb.Table(DOMAIN, PEOPLE), COUNTS.tolist(), np.full((2, 2), 0.45), {}),
        (PEOPLE.tolist(), COUNTS, "0.45", {"domain": DOMAIN}),
        (EXPECTED, COUNTS, None, {}),
        (EXPECTED, tb.Table(DOMAIN, COUNTS), None, {}),
        (PEOPLE, tb.Table(DOMAIN, COUNTS), tb.Table(DOMAIN.project(["hair"]), [0.45, 0.45]), {}),
        (np.stack([PEOPLE - 9, PEOPLE * 0 + 9], -1), COUNTS, [0.45, 0.45], {"domain": DOMAIN}),
        (np.stack([PEOPLE - 9, PEOPLE * 0 + 9], -1), tb.Table(DOMAIN, COUNTS), 0.45, {}),
        (
            np.stack([PEOPLE - 9, PEOPLE * 0 + 9], -1),
            np.stack([COUNTS - 5, COUNTS * 0 + 5], -1),
            np.full((2, 2, 2), 0.45),
            {"domain": DOMAIN},
        ),
    ],
)
def test_people_and_counts_are_read_in_many_forms(people, counts, probability, options):
    read, values = read_people(people, counts, probability, **options)
    assert same(read, EXPECTED)
    assert values.tolist() == COUNTS.tolist()


@pytest.mark.parametrize("library", ["pandas", "polars", "arrow"])
@pytest.mark.parametrize("probability", [0.45, "p", [0.45] * 260, [[0.45, 0.45]] * 2])
def test_persons_are_counted_in_frames_of_any_library(library, probability):
    read, values = read_people(persons(library), "gene", probability, domain=DOMAIN)
    assert same(read, EXPECTED)
    assert values.tolist() == COUNTS.tolist()


def test_levels_of_persons_are_their_values_in_order():
    frame = pandas.DataFrame({"age": [30, 4, 30], "sex": ["M", "F", "F"], "ill": [1, 0, 1]})
    read, values = read_people(frame, "ill", 0.5, attributes=["sex", "age"])
    assert read.domain == tb.Domain({"sex": ["F", "M"], "age": ["4", "30"]})
    assert read.in_cells.tolist() == [[1, 1], [0, 1]]
    assert values.tolist() == [[0, 1], [0, 1]]


@settings(deadline=None, max_examples=50)
@given(
    st.lists(
        st.tuples(
            st.sampled_from("ab"), st.sampled_from("xy"), st.sampled_from([0.1, 0.2, 0.7]), st.booleans()
        ),
        min_size=1,
        max_size=20,
    )
)
def test_persons_of_one_cell_and_prior_are_of_one_kind(rows):
    a, b, p, has = zip(*rows, strict=True)
    frame = pyarrow.table({"a": a, "b": b, "p": p, "has": has})
    domain = tb.Domain({"a": "ab", "b": "xy"})
    read, values = read_people(frame, "has", "p", domain=domain)
    for index in np.ndindex(2, 2):
        here = [row for row in rows if ("ab".index(row[0]), "xy".index(row[1])) == index]
        count_law = read.count_law(tuple((level, level + 1) for level in index))
        kinds = dict(zip(count_law.probability.tolist(), count_law.people.tolist(), strict=True))
        assert kinds == {prior: sum(row[2] == prior for row in here) for prior in {row[2] for row in here}}
        assert values[index] == sum(row[3] for row in here)


def test_a_prior_of_each_person_reaches_the_decisions():
    frame = persons("pandas")
    frame["p"] = np.where(np.arange(260) % 2, 0.4, 0.5)
    published = simulatable(frame, "gene", "p", attributes=["eye", "hair"])
    assert {float(p) for p in published.people_by_kind.count_law(((0, 2), (0, 2))).probability} == {0.4, 0.5}
    assert not published.suppressed.any()


def test_probabilities_by_some_attributes_are_spread_over_the_others():
    by_hair = tb.Table(tb.Domain({"hair": ["fair", "dark"]}), [0.3, 0.6])
    read, _ = read_people(PEOPLE, tb.Table(DOMAIN, COUNTS), by_hair)
    assert read.probability[..., 0].tolist() == [[0.3, 0.6], [0.3, 0.6]]
    turned = tb.Table(
        tb.Domain({"hair": ["fair", "dark"], "eye": ["blue", "brown"]}), [[0.1, 0.2], [0.3, 0.4]]
    )
    read, _ = read_people(PEOPLE, tb.Table(DOMAIN, COUNTS), turned)
    assert read.probability[..., 0].tolist() == [[0.1, 0.3], [0.2, 0.4]]


def test_arrays_without_labels_have_numbers_for_levels():
    read, _ = read_people(PEOPLE, COUNTS, 0.5)
    assert read.domain == tb.Domain({"row": ["1", "2"], "column": ["1", "2"]})
    read, _ = read_people(np.ones((2, 3, 2)), np.zeros((2, 3)), [0.5, 0.4])
    assert read.domain.shape == (2, 3)
    read, _ = read_people(np.ones((2, 3, 2)), np.zeros((2, 3, 2)), 0.5)
    assert read.domain.attributes == ("row", "column", "layer")
    read, _ = read_people(np.ones((1, 2, 1, 2)), np.zeros((1, 2, 1, 2)), 0.5)
    assert read.domain.attributes == ("row", "column", "layer", "axis 4")


# ---- what is refused ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("people", "counts", "probability", "options", "error", "message"),
    [
        (PEOPLE, COUNTS * 3, 0.45, {}, InvalidTable, "above the number of people"),
        (PEOPLE, -COUNTS, 0.45, {}, InvalidTable, "below zero"),
        (PEOPLE, COUNTS + 0.5, 0.45, {}, InvalidTable, "not a whole number"),
        (PEOPLE, np.where(COUNTS == SECRET, np.nan, COUNTS), 0.45, {}, InvalidTable, "not a whole number"),
        (PEOPLE, np.where(COUNTS == SECRET, np.inf, COUNTS), 0.45, {}, InvalidTable, "not a whole number"),
        (PEOPLE, COUNTS[:1], 0.45, {}, InvalidTable, "cells but the counts have 1 × 2"),
        (PEOPLE, COUNTS.ravel(), 0.45, {}, InvalidTable, "counts|kinds|axes"),
        (PEOPLE, [["many", "few"], ["some", "none"]], 0.45, {}, InvalidTable, "not an array of numbers"),
        (PEOPLE, [[1, 2], [3]], 0.45, {}, InvalidTable, "not an array of numbers"),
        (-PEOPLE, COUNTS, 0.45, {}, InvalidTable, "below zero"),
        (PEOPLE + 0.5, COUNTS, 0.45, {}, InvalidTable, "not whole"),
        (np.full((2, 2), np.nan), COUNTS, 0.45, {}, InvalidTable, "not whole"),
        (PEOPLE, COUNTS, 0, {}, InvalidTable, "strictly between 0 and 1"),
        (PEOPLE, COUNTS, 1, {}, InvalidTable, "strictly between 0 and 1"),
        (PEOPLE, COUNTS, 1.2, {}, InvalidTable, "strictly between 0 and 1"),
        (PEOPLE, COUNTS, float("nan"), {}, InvalidTable, "strictly between 0 and 1"),
        (PEOPLE, COUNTS, [[0.5, 0.5], [0.5, -0.1]], {}, InvalidTable, "strictly between 0 and 1"),
        (PEOPLE, COUNTS, "likely", {}, InvalidTable, "not a number"),
        (PEOPLE, COUNTS, [0.5, 0.5, 0.5], {}, InvalidTable, "Give one probability"),
        (PEOPLE, COUNTS, None, {}, InvalidArgument, "`probability` is missing"),
        (EXPECTED, COUNTS, 0.5, {}, InvalidArgument, "Leave `probability`"),
        (
            PEOPLE,
            tb.Table(DOMAIN, COUNTS),
            0.5,
            {"attributes": ["a", "b"]},
            InvalidArgument,
            "does not name the attributes",
        ),
        (PEOPLE, COUNTS, 0.5, {"attributes": "ab"}, InvalidArgument, "a list of names"),
        (
            PEOPLE,
            COUNTS,
            0.5,
            {"attributes": ["a", "b", "c"]},
            InvalidTable,
            "does not fit a table of 3 attributes",
        ),
        (
            tb.Table(DOMAIN, PEOPLE),
            tb.Table(tb.Domain({"a": "xy", "b": "xy"}), COUNTS),
            0.5,
            {},
            InvalidTable,
            "same",
        ),
        (EXPECTED, tb.Table(tb.Domain({"a": "xy", "b": "xy"}), COUNTS), None, {}, InvalidTable, "same"),
        (
            tb.Table(DOMAIN, PEOPLE),
            COUNTS,
            tb.Table(tb.Domain({"age": "xy"}), [0.1, 0.2]),
            {},
            InvalidTable,
            "'age', but the table does not have",
        ),
        (PEOPLE, COUNTS, 0.45, {"epsilon": 0}, InvalidPrivacy, "epsilon"),
        (PEOPLE, COUNTS, 0.45, {"delta": 1}, InvalidPrivacy, "delta"),
        (PEOPLE, COUNTS, 0.45, {"rule": "guess"}, InvalidArgument, "unknown rule"),
        (PEOPLE, COUNTS, 0.45, {"bins": {"age": 2}}, InvalidArgument, "'age'"),
        (
            np.stack([PEOPLE - 9, PEOPLE * 0 + 9], -1),
            np.stack([COUNTS * 0 + 5, COUNTS - 5], -1),
            0.5,
            {"domain": DOMAIN},
            InvalidTable,
            "cell and kind",
        ),
    ],
)
def test_what_cannot_be_is_refused_and_says_no_count(people, counts, probability, options, error, message):
    with pytest.raises(error, match=message) as caught:
        simulatable(people, counts, probability, **options)
    assert isinstance(caught.value, PublicError)
    assert str(SECRET) not in str(caught.value)


@pytest.mark.parametrize(
    ("change", "options", "error", "message"),
    [
        ({"gene": [2, 1, 0]}, {}, InvalidColumn, "other than true, false"),
        ({"gene": ["yes", "no", "no"]}, {}, InvalidColumn, "other than true, false"),
        ({"gene": [1, None, 0]}, {}, InvalidColumn, "'gene' has no value"),
        ({"eye": ["blue", None, "blue"]}, {}, InvalidColumn, "'eye' has no value"),
        ({"eye": ["blue", "green", "blue"]}, {"domain": DOMAIN}, UnknownLevel, "outside its domain"),
        ({"p": [0.5, 0.5, 1.0]}, {}, InvalidTable, "strictly between"),
        ({"p": ["a", "b", "c"]}, {}, InvalidTable, "not a number"),
        ({}, {"private": "illness"}, InvalidColumn, "no column 'illness'"),
        ({}, {"private": [1, 0]}, InvalidTable, "one value for each row"),
        ({}, {"probability": [[0.5, 0.4, 0.3]]}, InvalidTable, "do not fit"),
        ({}, {"attributes": None}, InvalidArgument, r"attributes=\[...\]"),
        ({}, {"attributes": ["eye"], "domain": DOMAIN}, InvalidArgument, "different attributes"),
    ],
)
def test_persons_that_cannot_be_read_are_refused(change, options, error, message):
    columns = {
        "eye": ["blue", "brown", "blue"],
        "hair": ["fair", "dark", "dark"],
        "gene": [1, 0, 1],
        "p": [0.5, 0.4, 0.3],
        **change,
    }
    given_options = {"private": "gene", "probability": "p", **options}
    private, probability = given_options.pop("private"), given_options.pop("probability")
    if "domain" not in given_options:
        given_options = {"attributes": ["eye", "hair"], **given_options}
    with pytest.raises(error, match=message):
        simulatable(pyarrow.table(columns), private, probability, **given_options)


NOT_OURS = "description of a simulatable table is not in the form"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"kind": "something else"}, NOT_OURS),
        ({"version": 2}, NOT_OURS),
        ({"outcome": "perhaps"}, NOT_OURS),
        ({"more": 1}, NOT_OURS),
        ({"counts": [[1, 2], [3]]}, "holds an array that cannot be read"),
        ({"counts": [[25, 20], [31, 4000]]}, "above the number of people"),
        ({"counts": [[25, 20], [31, 41]]}, "a sum of attribute 'eye' contradicts its cells"),
        ({"counts": [["25", "x"], [31, 40]]}, "holds an array that cannot be read"),
        ({"groups": [[[0, 1], [1, 2]], [[0, 1]]]}, "the groups of levels do not follow"),
        ({"groups": [[[0, 1], [1, 2]]]}, "the groups of levels do not follow"),
        ({"groups": [[0, 1], [0, 1]]}, "the groups of levels do not follow"),
        ({"sums": []}, "published but the sums are not"),
        ({"outcome": "no safe binning"}, "published but the sums are not"),
        (
            {
                "sums": [
                    {"attributes": [], "sums": 116},
                    {"attributes": ["eye"], "sums": [45, None]},
                    {"attributes": ["hair"], "sums": [56, 60]},
                ]
            },
            "only cells may be suppressed",
        ),
        ({"sums": [{"attributes": [], "sums": 117}]}, "the sums of each attribute, or no sum at all"),
        (
            {"sums": [{"attributes": [], "sums": 116}, {"attributes": ["eye"], "sums": [45, 71]}]},
            "the sums of each attribute, or no sum at all",
        ),
        (
            {
                "sums": [
                    {"attributes": [], "sums": 117},
                    {"attributes": ["eye"], "sums": [45, 71]},
                    {"attributes": ["hair"], "sums": [56, 60]},
                ]
            },
            "do not add up to its total",
        ),
        (
            {
                "sums": [
                    {"attributes": [], "sums": 116},
                    {"attributes": ["eye"], "sums": [46, 70]},
                    {"attributes": ["hair"], "sums": [56, 60]},
                ]
            },
            "a sum of attribute 'eye' contradicts its cells",
        ),
        ({"deviations": [[0.1, 0.2]]}, "the deviations of a table"),
        ({"promised_delta": 0.1}, "the promised δ"),
        ({"decisions": [{"question": {"of": "total"}}]}, "the description of a decision"),
        ({"people": {"domain": 3}}, "the description of the people"),
        ({"terms": {}}, "the description of the terms"),
    ],
)
def test_a_description_that_contradicts_itself_is_refused(table, change, reason):
    with pytest.raises(TabularyError, match=reason):
        SimulatableTable.from_description({**table.describe(), **change})
