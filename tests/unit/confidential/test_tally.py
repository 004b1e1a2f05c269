"""A tally shows its shape, and lets its counts out one way only."""

import copy
import pickle

import numpy as np
import pytest

from tabulary.confidential.tally import Tally
from tabulary.core.domain import Domain
from tabulary.core.table import Table
from tabulary.errors import InvalidTable, InvalidWorkload, TooManyCells

DOMAIN = Domain({"sex": ["F", "M"], "age": ["0-14", "15-64", "65+"]})

COUNTS = [[7013, 7019, 7027], [7039, 7043, 7057]]


def tally() -> Tally:
    return Tally.from_table(Table(DOMAIN, COUNTS), [["age", "sex"], ["sex"], []])


def test_the_margins_of_a_table_are_its_sums() -> None:
    counted = tally()
    assert counted.domain is DOMAIN
    assert counted.margins == (("sex", "age"), ("sex",), ())
    assert counted.exact(("age", "sex")).tolist() == COUNTS
    assert counted.exact(["sex"]).tolist() == [21059, 21139]
    assert counted.exact([]).tolist() == 42198
    assert counted.exact(["sex"]).dtype == np.int64


def test_the_counts_cannot_be_changed() -> None:
    with pytest.raises(ValueError, match="read-only"):
        tally().exact(["sex"])[0] = 0


def test_whole_numbers_in_a_table_of_floats_are_counts() -> None:
    assert Tally.from_table(Table(DOMAIN, np.array(COUNTS, float)), [[]]).exact([]) == 42198


@pytest.mark.parametrize(
    ("cell", "word"),
    [(-7001, "negative"), (7001.5, "whole"), (1e300, "64 bits"), (2**63 - 1, "64 bits")],
)
def test_a_table_that_is_not_one_of_counts_is_refused_without_telling_a_cell(cell: float, word: str) -> None:
    with pytest.raises(InvalidTable, match=word) as caught:
        Tally.from_table(Table(Domain({"a": "xy"}), [cell, 7003]), [["a"]])
    assert "700" not in str(caught.value)


def test_a_margin_that_was_not_counted_is_refused() -> None:
    with pytest.raises(
        InvalidWorkload, match=r"\[age\] was not counted\. The counted margins are \[sex age\]\[sex\]\[\]"
    ):
        tally().exact(["age"])


def test_a_margin_above_the_cap_is_refused() -> None:
    with pytest.raises(TooManyCells, match="more than the cap of 5"):
        Tally.from_table(Table(DOMAIN, COUNTS), [["sex", "age"]], max_cells=5)


def test_counts_of_another_shape_are_refused() -> None:
    with pytest.raises(InvalidTable, match="shape"):
        Tally(DOMAIN, {("sex",): np.zeros(3, np.int64)})
    with pytest.raises(InvalidTable, match="shape"):
        Tally(DOMAIN, {("age", "sex"): np.zeros((3, 2), np.int64)})


def test_what_is_printed_is_the_shape() -> None:
    shown = "<Tally of 3 margins, 9 cells: [sex age][sex][]>"
    assert repr(tally()) == str(tally()) == f"{tally()}" == f"{tally():>9}" == shown


@pytest.mark.parametrize("action", [pickle.dumps, copy.copy, copy.deepcopy])
def test_a_tally_is_not_copied_or_pickled(action) -> None:
    with pytest.raises(TypeError, match="confidential"):
        action(tally())


def test_a_tally_is_not_read_by_accident() -> None:
    with pytest.raises(TypeError, match="not iterable"):
        iter(tally())
    with pytest.raises(TypeError, match="__dict__"):
        vars(tally())
    with pytest.raises(TypeError, match=r"has no len\(\)"):
        len(tally())
    with pytest.raises(TypeError, match="not 'Tally'"):
        np.asarray(tally(), dtype=np.int64)
    # Whether two tallies agree is an answer about the records.
    assert tally() != tally()
