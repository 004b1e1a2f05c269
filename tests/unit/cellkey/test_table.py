"""Perturbation by cell keys: one rule, one thing to publish, one thing to keep."""

import copy
import gc
import json
import pickle
import types

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tabulary.cellkey import CellKeyTable, KeyedRecords, PTable, RecordKeys, perturb, record_keys
from tabulary.cellkey.table import described_keys
from tabulary.core.domain import Domain
from tabulary.errors import ConfidentialError, InvalidArgument, InvalidDomain, InvalidTable
from tests.entropy import SeededEntropy
from tests.unit.cellkey.ptables import wide_ptable

DOMAIN = Domain({"sex": ["F", "M"], "age": ["0", "1", "2"], "region": ["N", "S"]})
SECRET = b"kept by the custodian for good"


def some_records(rows=500, modulus=256, seed=1, domain=DOMAIN):
    generator = np.random.default_rng(seed)
    columns = {
        a: [domain.levels_of(a)[c] for c in generator.integers(0, len(domain.levels_of(a)), rows)]
        for a in domain.attributes
    }
    keys = record_keys(rows, modulus, SeededEntropy(seed))
    return pa.table(columns | {"record_key": keys})


def read(table, domain=DOMAIN, modulus=256):
    return KeyedRecords.from_frame(table, domain, keys=RecordKeys(modulus=modulus))


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 2**32), st.sampled_from([256, 4096, 2**62]), st.sampled_from([0, 1]))
def test_what_is_published_is_the_count_plus_the_ptable_at_its_row_and_key(seed, modulus, first):
    ptable = wide_ptable(modulus, first)
    with read(some_records(60, modulus, seed), modulus=modulus) as records:
        published, custody = perturb(records, ["sex", "age"], ptable, secret=SECRET)
        counts, sums = records.sums(("sex", "age"))
    assert np.array_equal(custody.count, counts)
    assert np.array_equal(custody.ckey[counts > 0], sums[counts > 0])
    for cell in np.ndindex(counts.shape):
        expected = ptable.pvalue(int(counts[cell]), int(custody.ckey[cell]))
        assert custody.pvalue[cell] == expected
        assert published.counts[cell] == counts[cell] + expected
    assert published.counts.min() >= 0


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 2**32), st.integers(1, 200))
def test_the_same_participants_get_the_same_perturbation_in_every_table(seed, rows):
    """All F are in N and all M in S: a sex, a region and their combination are the same people."""
    table = some_records(rows, seed=seed)
    regions = ["N" if sex == "F" else "S" for sex in table.column("sex").to_pylist()]
    table = table.set_column(table.column_names.index("region"), "region", pa.array(regions))
    ptable = wide_ptable(256)
    with read(table) as records:
        by_sex = perturb(records, ["sex"], ptable)[0]
        by_region = perturb(records, ["region"], ptable)[0]
        by_both = perturb(records, ["region", "sex"], ptable)[0]
    for sex, region in (("F", "N"), ("M", "S")):
        assert by_sex[sex] == by_region[region] == by_both[sex, region]


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 2**32))
def test_other_words_for_the_same_people_change_nothing(seed):
    """The order of the records, of the attributes and of the levels, and what they are called, do not matter."""
    table = some_records(80, seed=seed)
    ptable = wide_ptable(256)
    with read(table) as records:
        plain = perturb(records, ["sex", "age"], ptable)[0]
    renamed = Domain({"age": ["2", "0", "1"], "sex": ["M", "F"]})
    shuffled = table.take(np.random.default_rng(seed).permutation(80))
    with read(shuffled, renamed) as records:
        other = perturb(records, ["sex", "age"], ptable)[0]
    for sex in "FM":
        for age in "012":
            assert plain[sex, age] == other[age, sex]


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 2**32))
def test_a_union_of_cells_has_the_key_and_the_perturbation_of_the_people_in_it(seed):
    """Levels merged into one, and that level asked for as a total: the same participants, the same answer."""
    table = some_records(80, seed=seed)
    merged = Domain({"age": ["young", "2"]})
    young = pa.array(["young" if a != "2" else "2" for a in table.column("age").to_pylist()])
    ptable = wide_ptable(256)
    with read(table.append_column("wide", young).drop_columns(["age"]).rename_columns(
        ["sex", "region", "record_key", "age"]), merged) as records:  # fmt: skip
        published, custody = perturb(records, ["age"], ptable)
    with read(table) as records:
        parts = perturb(records, ["age"], ptable)[1]
    assert custody.ckey[0] == (parts.ckey[0] + parts.ckey[1]) % 256
    alone = table.filter(pa.array([a != "2" for a in table.column("age").to_pylist()]))
    with read(alone) as records:
        assert perturb(records, [], ptable)[0][()] == published["young"]


def test_other_participants_of_the_same_number_are_perturbed_otherwise():
    ptable = wide_ptable(256)
    answers = set()
    for seed in range(40):
        with read(some_records(50, seed=seed)) as records:
            answers.add(perturb(records, [], ptable)[0][()])
    assert answers == {48, 49, 50, 51, 52}


def test_zeros_stay_zero_where_the_ptable_has_no_row_for_them():
    domain = Domain({"age": [str(a) for a in range(50)]})
    table = pa.table({"age": ["7", "7"], "record_key": [1, 2]})
    with read(table, domain) as records:
        published, custody = perturb(records, ["age"], wide_ptable(256))
    assert published.counts.sum() == published["7"]
    assert custody.pvalue[custody.count == 0].tolist() == [0] * 49


def test_zero_cells_are_perturbed_each_by_a_key_of_its_own_description():
    domain = Domain({"age": [str(a) for a in range(2000)], "sex": ["F", "M"]})
    table = pa.table({"age": ["7", "7"], "sex": ["F", "M"], "record_key": [1, 2]})
    ptable = wide_ptable(256, first=0)
    with read(table, domain) as records:
        published, custody = perturb(records, ["age", "sex"], ptable, secret=SECRET)
        again = perturb(records, ["age", "sex"], ptable, secret=SECRET)[0]
        other = perturb(records, ["age", "sex"], ptable, secret=SECRET + b"!")[0]
    empty = custody.count == 0
    shares = np.bincount(np.asarray(published.counts)[empty]) / empty.sum()
    # No constant key: the law of row 0 is 1/2, 1/4, 1/4.
    assert np.abs(shares - [0.5, 0.25, 0.25]).max() < 0.04
    assert len(set(custody.ckey[empty].tolist())) == 256
    assert np.array_equal(again.counts, published.counts)
    assert not np.array_equal(other.counts, published.counts)


def test_the_key_of_a_description_does_not_depend_on_the_order_of_the_attributes():
    here, there = Domain({"a": "xy", "b": "uvw"}), Domain({"b": "uvw", "a": "xy"})
    keys = described_keys(here, np.ones((2, 3), dtype=bool), 2**62, SECRET)
    assert np.array_equal(keys, described_keys(there, np.ones((3, 2), dtype=bool), 2**62, SECRET).T)
    assert len(set(keys.reshape(-1).tolist())) == 6
    glued = Domain({"ax": ["b"]}), Domain({"a": ["xb"]})
    one, two = (described_keys(domain, np.ones(1, dtype=bool), 2**62, SECRET) for domain in glued)
    assert one != two


def test_an_impossible_cell_stays_zero_even_where_zeros_are_perturbed():
    domain = Domain({"age": [str(a) for a in range(40)], "job": ["none", "paid"]}, [{"job": "paid"}])
    with read(pa.table({"age": ["1"], "job": ["none"], "record_key": [5]}), domain) as records:
        published = perturb(records, ["age", "job"], wide_ptable(256, first=0), secret=SECRET)[0]
    assert published.counts[:, 1].tolist() == [0] * 40
    assert published.counts[:, 0].sum() > 5


@pytest.mark.parametrize("secret", [None, b"short", "text of more than 16 letters"])
def test_zeros_are_perturbed_with_a_secret_or_not_at_all(secret):
    with read(some_records()) as records:
        with pytest.raises(InvalidArgument, match="secret"):
            perturb(records, ["sex"], wide_ptable(256, first=0), secret=secret)
        perturb(records, ["sex"], wide_ptable(256), secret=None)


def test_counts_below_the_minimum_are_not_published():
    with read(some_records(60)) as records:
        open_table = perturb(records, DOMAIN.attributes, wide_ptable(256))[0]
        published = perturb(records, DOMAIN.attributes, wide_ptable(256), minimum=5)[0]
    low = np.asarray(open_table.counts) < 5
    assert low.any()
    assert not low.all()
    assert published.minimum == 5
    assert np.array_equal(np.ma.getmaskarray(published.counts), low)
    # What is withheld is gone, not hidden.
    assert not published.counts.data[low].any()
    assert published.counts.tolist() == np.where(low, None, np.asarray(open_table.counts)).tolist()
    for minimum in (-1, 1.5, True, "10"):
        with pytest.raises(InvalidArgument, match="smallest published count"):
            perturb(records, ["sex"], wide_ptable(256), minimum=minimum)


def test_a_count_above_the_last_row_is_refused_without_the_count_or_the_cell():
    ptable = PTable.from_array(np.zeros((20, 256), dtype=int))
    with (
        read(some_records(500)) as records,
        pytest.raises(ConfidentialError, match="last row, 20") as refused,
    ):
        perturb(records, ["sex"], ptable)
    assert not {"500", "'F'", "'M'"} & set(str(refused.value).split())
    assert refused.value.__context__ is None


def test_keys_and_ptable_must_have_the_same_modulus():
    with (
        read(some_records()) as records,
        pytest.raises(InvalidArgument, match="256 keys and the ptable has 4096"),
    ):
        perturb(records, ["sex"], wide_ptable(4096))


def test_a_margin_that_is_not_there_is_refused():
    with read(some_records()) as records:
        with pytest.raises(InvalidDomain, match="no attribute 'colour'"):
            perturb(records, ["colour"], wide_ptable(256))
        with pytest.raises(InvalidArgument, match="KeyedRecords"):
            perturb(some_records(), ["sex"], wide_ptable(256))


def reachable(thing, seen):
    """Every object that can be reached from one, as far as the garbage collector and the fields tell."""
    if id(thing) in seen or isinstance(thing, types.ModuleType | type | types.FunctionType):
        return
    seen[id(thing)] = thing
    inner = [*gc.get_referents(thing), *getattr(thing, "__dict__", {}).values()]
    inner += [
        getattr(thing, name, None) for kind in type(thing).__mro__ for name in vars(kind).get("__slots__", ())
    ]
    if isinstance(thing, np.ndarray):
        inner += [thing.base, *([thing.data] if thing.size else [])]
    for each in inner:
        reachable(each, seen)


def test_nothing_that_can_be_reached_from_the_published_table_holds_an_exact_count_or_a_key():
    ptable = PTable.from_array(np.tile([1, 2, 1, 2], (400, 64)))
    with read(some_records(500)) as records:
        published, custody = perturb(records, DOMAIN.attributes, ptable, minimum=45)
    hidden = {name: getattr(custody, name) for name in ("count", "ckey", "pcv", "pvalue")}
    seen = {}
    reachable(published, seen)
    found = [thing for thing in seen.values() if isinstance(thing, np.ndarray) and thing.size > 1]
    assert any(np.array_equal(thing, published.counts) for thing in found)
    for array in found:
        for name, secret in hidden.items():
            assert not np.array_equal(np.asarray(array).reshape(-1), secret.reshape(-1)), name
    assert not any(isinstance(thing, type(custody) | PTable | KeyedRecords) for thing in seen.values())
    # The same walk does find them from the custodian's side.
    seen = {}
    reachable(custody, seen)
    assert any(thing is hidden["count"] for thing in seen.values())


def test_the_custody_shows_its_shape_and_cannot_be_copied_pickled_or_changed():
    with read(some_records()) as records:
        _, custody = perturb(records, ["sex", "age"], wide_ptable(256))
    assert repr(custody) == str(custody) == f"{custody}" == "<Custody of sex 2 × age 3, confidential>"
    for action in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="confidential"):
            action(custody)
    with pytest.raises(AttributeError, match="cannot be changed"):
        custody.count = np.zeros(6)
    with pytest.raises(ValueError, match="read-only"):
        custody.count[0, 0] = 7


def test_the_published_table_shows_its_shape_and_can_be_pickled():
    with read(some_records()) as records:
        published = perturb(records, ["sex", "age"], wide_ptable(256), minimum=1)[0]
    assert repr(published) == "<CellKeyTable sex 2 × age 3, not differentially private>"
    again = pickle.loads(pickle.dumps(published))
    assert again.counts.tolist() == published.counts.tolist()
    with pytest.raises(ValueError, match="read-only"):
        published.counts[0, 0] = 7


def test_the_published_table_says_that_it_is_not_differentially_private():
    with read(some_records()) as records:
        published = perturb(records, ["sex"], wide_ptable(256), minimum=3)[0]
    assert "NOT differentially private" in published.promise.statement
    assert any("differencing attack" in line for line in published.promise.not_promised)
    told = published.describe()
    assert told["differentially_private"] is False
    assert told["minimum"] == 3
    assert told["ptable"] == wide_ptable(256).describe()
    assert json.loads(json.dumps(told)) == told


def test_the_table_goes_to_frames_and_files_with_withheld_counts_missing(tmp_path):
    domain = Domain({"sex": ["F", "M"], "count": ["a, b", "c"]})
    counts = np.ma.MaskedArray([[12, 3], [40, 0]], [[False, True], [False, True]])
    table = CellKeyTable(domain, counts, {}, 10)
    frame = table.to_pandas()
    assert list(frame.columns) == ["sex", "count", "count_"]
    assert frame["count_"].dtype == "Int64"
    assert frame["count_"].isna().tolist() == [False, True, False, True]
    assert table.to_polars()["count_"].to_list() == [12, None, 40, None]
    assert table.to_arrow().column("count_").to_pylist() == [12, None, 40, None]
    table.to_csv(tmp_path / "t.csv")
    assert (tmp_path / "t.csv").read_text() == 'sex,count,count_\nF,"a, b",12\nF,c,\nM,"a, b",40\nM,c,\n'
    assert pd.read_csv(tmp_path / "t.csv")["count_"].isna().tolist() == [False, True, False, True]
    assert table["F", "a, b"] == 12
    assert table["F", "c"] is None


def test_a_table_of_another_shape_or_a_cell_without_all_labels_is_refused():
    with pytest.raises(InvalidTable, match=r"array's is \(2,\)"):
        CellKeyTable(DOMAIN, np.ma.MaskedArray([1, 2]), {})
    with read(some_records()) as records:
        published = perturb(records, ["sex", "age"], wide_ptable(256))[0]
    with pytest.raises(InvalidTable, match="2 labels"):
        published["F"]


def test_a_part_of_the_table_keeps_what_is_withheld_and_what_is_known_about_it():
    domain = Domain(
        {"sex": ["F", "M"], "age": ["0-14", "15-64", "65+"]},
        structural_zeros=[{"sex": "F", "age": "65+"}],
    )
    counts = np.ma.masked_less([[12, 3, 0], [11, 14, 9]], 10)
    table = CellKeyTable(domain, counts, {"keys": 256}, 10)
    turned, men, some = (
        table.transpose(["age", "sex"]),
        table.slice(sex="M"),
        table.select({"age": ["15-64", "0-14"]}),
    )
    assert turned.counts.tolist() == [[12, 11], [None, 14], [None, None]]
    assert turned["15-64", "M"] == 14
    assert men.margin == ("age",)
    assert men.counts.tolist() == [11, 14, None]
    assert some.counts.tolist() == [[None, 12], [14, 11]]
    assert table.slice(sex="F", age="0-14").counts.tolist() == 12
    for part in (turned, men, some):
        assert (part.minimum, part.ptable) == (10, {"keys": 256})
        # Nothing lies under the mask of a part either.
        assert not part.counts.data[np.ma.getmaskarray(part.counts)].any()
    with pytest.raises(InvalidDomain, match="no attribute 'job'"):
        table.select({"job": ["paid"]})


def test_counts_are_withheld_later_as_they_are_at_once():
    with read(some_records(60)) as records:
        ptable = wide_ptable(256, 1)
        at_once, _ = perturb(records, ["sex", "age"], ptable, minimum=9)
        later = perturb(records, ["sex", "age"], ptable)[0].withheld_below(9)
    assert later.counts.tolist() == at_once.counts.tolist()
    assert later.describe() == at_once.describe()
    assert later.withheld_below(3).minimum == 9
