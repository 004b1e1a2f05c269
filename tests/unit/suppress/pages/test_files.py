"""`table.csv` and `table.json`: what is written is what is read, and what cannot be a table is refused."""

import csv
import json
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tabulary as tb
from tabulary.core.suppressed_table import SuppressedTable
from tabulary.errors import InvalidTable, UnreadableSource
from tabulary.suppress.pages.files import json_bytes, prior_of, read_table, table_csv_bytes
from tests.memory import at_most

DOMAIN = tb.Domain({"eye": ["blue", "brown"], "hair": ["fair", "dark", "red"]})
COUNTS = np.array([[6, np.nan, 2], [np.nan, 9, 0]])
SUMS = {
    ("eye",): np.array([14, np.nan]),
    ("hair",): np.array([12, 15, 2]),
    (): np.array(29),
}
TABLE = SuppressedTable(DOMAIN, COUNTS, SUMS, np.array([[20, 30, 10], [20, 40, 0]]))

FIGURE = """eye,hair,count
blue,blonde,[c]
blue,brown,[c]
other,blonde,[c]
other,brown,[c]
"""


@pytest.fixture
def refused(tmp_path):
    """What is said of a file that is no table."""

    def ask(text, words, name="table.csv", **options):
        (tmp_path / name).write_bytes(text if isinstance(text, bytes) else text.encode())
        with pytest.raises((InvalidTable, UnreadableSource), match=re.escape(words)) as caught:
            read_table(tmp_path / name, **options)
        return str(caught.value)

    return ask


@st.composite
def tables(draw):
    """Any table: one to three attributes, any cells and sums suppressed, people or not, counts or amounts."""
    shape = draw(st.lists(st.integers(1, 3), min_size=1, max_size=3))
    domain = tb.Domain({f"a{i}": [f"level {n}, {i}" for n in range(size)] for i, size in enumerate(shape)})
    whole = draw(st.booleans())
    number = st.integers(0, 10**6).map(float) if whole else st.floats(0, 1e6)

    def array(size):
        cells = draw(
            st.lists(number | st.just(np.nan), min_size=int(np.prod(size)), max_size=int(np.prod(size)))
        )
        return np.array(cells).reshape(size)

    margins = draw(st.sets(st.sampled_from([m for m in _margins(domain) if m != domain.attributes])))
    counts = array(domain.shape)
    people = np.where(np.isnan(counts), 7, np.ceil(counts)) if draw(st.booleans()) else None
    sums = {margin: array(domain.shape_of(margin)) for margin in margins}
    return SuppressedTable(domain, counts, sums, people, whole=whole)


def _margins(domain):
    names = domain.attributes
    return [tuple(a for i, a in enumerate(names) if chosen >> i & 1) for chosen in range(2 ** len(names))]


def _same(one, other):
    assert one.domain == other.domain
    np.testing.assert_array_equal(one.counts, other.counts)
    assert set(one.sums) == set(other.sums)
    for margin in one.sums:
        np.testing.assert_array_equal(one.sums[margin], other.sums[margin])
    if one.people is None:
        assert other.people is None
    else:
        np.testing.assert_array_equal(one.people, other.people)
    assert one.whole == other.whole


@given(tables())
def test_any_table_is_read_as_it_was_written(tmp_path_factory, table):
    folder = tmp_path_factory.mktemp("table")
    (folder / "table.json").write_bytes(json_bytes(table, {"method": "by hand"}))
    (folder / "table.csv").write_bytes(table_csv_bytes(table))
    found = read_table(folder)
    _same(found.table, table)
    assert found.facts == {"method": "by hand"}
    _same(read_table(folder / "table.csv", amounts=not table.whole).table, table)


def test_the_csv_file_has_a_row_for_each_cell_and_its_sums_after_it():
    rows = list(csv.reader(table_csv_bytes(TABLE).decode().splitlines()))
    assert rows[:5] == [
        ["eye", "hair", "count", "people"],
        ["blue", "fair", "6", "20"],
        ["blue", "dark", "[c]", "30"],
        ["blue", "red", "2", "10"],
        ["blue", "total", "14", "60"],
    ]
    assert rows[8:] == [
        ["brown", "total", "[c]", "60"],
        ["total", "fair", "12", "40"],
        ["total", "dark", "15", "70"],
        ["total", "red", "2", "10"],
        ["total", "total", "29", "120"],
    ]


def test_what_is_suppressed_is_null_in_the_json_file_and_nothing_is_nan():
    text = json_bytes(TABLE).decode()
    assert "NaN" not in text
    assert json.loads(text)["table"]["counts"] == [[6, None, 2], [None, 9, 0]]


def test_a_simulatable_table_comes_back_with_its_decisions_and_its_prior(tmp_path):
    table = tb.suppress.simulatable([[60, 50], [70, 80]], [[25, 20], [31, 40]], [[0.4, 0.45], [0.5, 0.5]])
    (tmp_path / "table.json").write_bytes(json_bytes(table))
    found = read_table(tmp_path)
    assert isinstance(found.table, tb.suppress.SimulatableTable)
    assert found.table.describe() == table.describe()
    assert tb.suppress.replay(found.table).ok
    np.testing.assert_array_equal(found.probability, [[0.4, 0.45], [0.5, 0.5]])
    (tmp_path / "table.csv").write_bytes(table_csv_bytes(table, prior_of(table)))
    np.testing.assert_array_equal(read_table(tmp_path / "table.csv").probability, [[0.4, 0.45], [0.5, 0.5]])


def test_a_cell_with_people_of_different_priors_has_no_single_one():
    people = tb.suppress.People.of(
        tb.Domain({"eye": ["blue", "brown"]}), [[60, 40], [80, 20]], np.array([0.4, 0.5])
    )
    assert prior_of(tb.suppress.simulatable(people, [40, 44])) is None


@pytest.mark.parametrize("mark", ["[c]", "c", "C", "x", "X", "*", ""])
def test_a_suppressed_cell_may_be_marked_in_several_ways(tmp_path, mark):
    (tmp_path / "table.csv").write_text(FIGURE.replace("[c]", mark))
    assert read_table(tmp_path / "table.csv").table.suppressed.all()


def test_the_label_of_sums_and_the_order_of_the_levels_are_those_of_the_file(tmp_path):
    (tmp_path / "table.csv").write_text("size,count\nsmall,3\nmedium,[c]\nlarge,4\nSum,9\n")
    table = read_table(tmp_path / "table.csv", total="Sum").table
    assert table.domain.levels == (("small", "medium", "large"),)
    assert table.sums[()] == 9


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "no rows"),
        ("eye,count\n", "no rows"),
        ("eye,hair\nblue,fair\n", "no column 'count'"),
        ("count\n3\n", "no attributes"),
        ("eye,eye,count\nblue,blue,3\n", "the same name"),
        ("eye,count\nblue,3,4\n", "more or fewer fields"),
        ("eye,count\nblue,many\n", "'many' is no number"),
        ("eye,count\nblue,nan\n", "'nan' is no number"),
        ("eye,count\nblue,inf\n", "'inf' is no number"),
        ("eye,count\nblue,-3\n", "below zero"),
        ("eye,count\nblue,3.5\n", "not whole"),
        ("eye,count\nblue,3\nblue,4\n", "eye blue has two rows"),
        ("eye,count\ntotal,3\n", "no level"),
        ("eye,count\n,3\n", "a level must be printable"),
        ("eye,hair,count\nblue,fair,3\nbrown,dark,4\n", "not every combination"),
        ("eye,count,people\nblue,3,2\n", "above the number of people"),
        ("eye,count,people\nblue,3,\n", "is no number"),
        ("eye,count,people\nblue,3,7.5\n", "not whole"),
        ("eye,count,probability\nblue,3,0\n", "strictly between 0 and 1"),
        ("eye,count,probability\nblue,3,\n", "is no number"),
        ('eye,count\n"blue,3\n', "quote"),
    ],
)
def test_a_csv_file_that_is_no_table_is_refused_with_its_reason(refused, text, words):
    assert "table.csv" in refused(text, words)


def test_values_that_are_not_whole_are_amounts_if_that_is_said(tmp_path, refused):
    text = "eye,count\nblue,3.5\nbrown,[c]\n"
    refused(text, "read them as amounts")
    (tmp_path / "table.csv").write_text(text)
    table = read_table(tmp_path / "table.csv", amounts=True).table
    assert not table.whole
    assert table.counts[0] == 3.5


def test_a_file_that_is_absent_or_no_text_is_refused(refused, tmp_path):
    refused(b"\xff\xfe\x00", "not a UTF-8 text")
    with pytest.raises(UnreadableSource, match="there is no table"):
        read_table(tmp_path / "absent.csv")
    with pytest.raises(UnreadableSource, match="there is no table"):
        read_table(tmp_path)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{}", "not a table.json that Tabulary wrote"),
        ("[1]", "not a table.json that Tabulary wrote"),
        ("no json", "not a JSON file"),
        (
            '{"schema": "tabulary-suppressed-table/2", "method": "suppressed", "facts": {}, "table": {}}',
            "its schema is not 'tabulary-suppressed-table/1'",
        ),
        (
            '{"schema": "tabulary-suppressed-table/1", "method": "magic", "facts": {}, "table": {}}',
            "does not know its method 'magic'",
        ),
        (
            '{"schema": "tabulary-suppressed-table/1", "method": "suppressed", "facts": {}, "table": {}}',
            "not in the form that Tabulary writes",
        ),
    ],
)
def test_a_json_file_that_is_no_table_is_refused(refused, text, words):
    assert refused(text, words, "table.json").startswith("table.json: ")


def test_a_json_file_with_a_changed_part_is_refused(refused):
    for change, words in (
        (lambda table: table.update(counts=[[1, 2], [3]]), "not an array of numbers"),
        (lambda table: table.update(counts="many"), "not an array of numbers"),
        (lambda table: table["sums"][0].update(by=["nose"]), "the sums by ('nose',)"),
        (lambda table: table["sums"].append(5), "the description of a sum"),
        (lambda table: table.update(more=1), "not in the form that Tabulary writes"),
        (lambda table: table["domain"].update(attributes=[]), "the labels say ()"),
    ):
        content = json.loads(json_bytes(TABLE))
        change(content["table"])
        assert refused(json.dumps(content), words, "table.json").startswith("table.json: ")


def test_names_that_would_be_read_as_something_else_are_not_written():
    with pytest.raises(InvalidTable, match="the name of a column of every table"):
        table_csv_bytes(SuppressedTable(tb.Domain({"people": ["a"]}), np.array([1])))
    with pytest.raises(InvalidTable, match="which marks the rows of sums"):
        table_csv_bytes(SuppressedTable(tb.Domain({"eye": ["total"]}), np.array([1])))


def test_a_file_without_end_is_not_read_to_its_end(tmp_path):
    (tmp_path / "table.csv").symlink_to("/dev/zero")
    with at_most(200), pytest.raises(UnreadableSource, match="too large for a table"):
        read_table(tmp_path / "table.csv")


@pytest.mark.parametrize(
    "text", ["[" * 200_000, '{"a":' * 200_000, '{"a": ' + "1" * 100_000 + "}"], ids=range(3)
)
def test_json_that_is_nested_or_counts_without_end_is_refused(refused, text):
    refused(text, "it is not a JSON file", "table.json")


def test_a_few_rows_that_claim_a_table_beyond_memory_are_refused(refused):
    names = [f"a{i}" for i in range(8)]
    rows = "\n".join(",".join([*(str(r) for _ in names), "1"]) for r in range(1_000))
    with at_most(64):
        refused(",".join([*names, "count"]) + "\n" + rows, "not every combination")
