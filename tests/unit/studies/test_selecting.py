"""Rows of a study's sheets."""

import pytest

from tabulary.studies.selecting import chosen, distinct, number, numbers

ROWS = [{"law": "laplace", "p": 0.5}, {"law": "normal", "p": None}, {"law": "laplace", "p": 0.25}]


def test_rows_are_chosen_by_all_values_and_keep_their_order():
    assert [row["p"] for row in chosen(ROWS, law="laplace")] == [0.5, 0.25]
    assert chosen(ROWS, law="laplace", p=0.25) == ROWS[2:]
    assert distinct(ROWS, "law") == [("laplace",), ("normal",)]


def test_what_is_missing_is_left_out_and_what_is_no_number_is_refused():
    assert numbers(ROWS, "p") == [0.5, 0.25]
    assert numbers(ROWS, "p", law="normal") == []
    for column in ("law", "p"):
        with pytest.raises(TypeError, match="holds no number"):
            number(ROWS[1], column)
