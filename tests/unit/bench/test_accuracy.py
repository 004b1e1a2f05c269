import json
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench import accuracy
from bench.peers.environment import last_words
from bench.peers.opendp_loss import zcdp_loss
from bench.peers.opendp_noise import common_total, nearest_in_simplex
from bench.peers.question import Answer, CannotAnswer, Question

ADULT = {
    "age": 85,
    "workclass": 9,
    "fnlwgt": 100,
    "education-num": 16,
    "marital-status": 7,
    "occupation": 15,
    "relationship": 6,
    "race": 5,
    "sex": 2,
    "capital-gain": 100,
    "capital-loss": 100,
    "hours-per-week": 99,
    "native-country": 42,
    "income>50K": 2,
}
QUESTION = Question(
    {"a": 2, "b": 3}, np.array([[0, 2], [0, 2], [1, 0]]), (("a",), ("a", "b")), 1.0, 1e-9, seed=2
)


def test_adult_has_105_margins_of_two_attributes_or_fewer():
    assert len(accuracy.up_to_two_way(ADULT)) == 105


def test_64_are_drawn_from_the_244_small_three_way_margins_of_adult():
    small = accuracy.small_three_way(ADULT)
    assert len(small) == 244
    assert small == sorted(small, key=lambda margin: [list(ADULT).index(name) for name in margin])
    drawn = accuracy.sampled_three_way(ADULT)
    assert len(set(drawn)) == 64
    assert set(drawn) <= set(small)


def test_exact_tables_have_no_error():
    exact = [QUESTION.counts(margin) for margin in QUESTION.margins]
    assert accuracy.errors_of(exact, exact) == accuracy.Errors(0, 0, 0)


def test_errors_are_averaged_over_margins_and_squared_over_cells():
    exact = [np.array([6, 4]), np.array([[1, 2], [3, 4]])]
    found = [np.array([9, 4]), np.array([[1, 2], [3, 3]])]
    errors = accuracy.errors_of(exact, found)
    assert errors.l1 == pytest.approx((3 + 1) / 2 / 10)
    assert errors.rmse == pytest.approx(np.sqrt((9 + 1) / 6))
    assert errors.worst == pytest.approx(3 / 10)


def test_runs_are_averaged():
    exact = [np.array([6, 4])]
    answers = [Answer((np.array([6, 4]),), 1.0, 3.0), Answer((np.array([8, 4]),), 2.0, 5.0)]
    result = accuracy.averaged(exact, answers)
    assert result.errors.l1 == pytest.approx(0.1)
    assert (result.seconds, result.cpu_seconds) == (1.5, 4.0)


def test_a_missed_target_is_printed_and_returned(capsys):
    assert accuracy.compared("tables", "peer", 2.0, 3.0, 1, unit="people")
    assert not accuracy.compared("tables", "peer", 3.0, 2.0, 1, unit="people")
    told = [json.loads(text) for text in capsys.readouterr().out.splitlines()]
    assert [t["met"] for t in told] == [True, False]


def test_a_peer_without_pure_privacy_says_so():
    peer = accuracy.Peer("peer", lambda _: pytest.fail("it was asked"), pure=False)
    with pytest.raises(CannotAnswer, match="pure"):
        peer.ask(Question(QUESTION.levels, QUESTION.codes, QUESTION.margins, 1.0, 0, seed=0))


def test_without_the_records_the_benchmark_is_skipped_with_a_word(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(accuracy, "DATA", tmp_path)
    monkeypatch.setattr(sys, "argv", ["accuracy"])
    assert accuracy.main() == 0
    assert capsys.readouterr().out.startswith("Skipped: ")


def test_a_question_and_its_answer_pass_through_a_folder(tmp_path):
    QUESTION.write(tmp_path)
    read = Question.read(tmp_path)
    assert np.array_equal(read.codes, QUESTION.codes)
    assert (read.levels, read.margins, read.seed) == (QUESTION.levels, QUESTION.margins, 2)
    assert (read.epsilon, read.delta) == (1.0, 1e-9)
    given = Answer(tuple(map(read.counts, read.margins)), 1.5, 2.5)
    given.write(tmp_path)
    kept = Answer.read(tmp_path)
    assert (kept.seconds, kept.cpu_seconds) == (1.5, 2.5)
    assert [t.tolist() for t in kept.tables] == [[2, 1], [[0, 0, 2], [1, 0, 0]]]


def test_the_last_error_is_what_a_failed_program_is_quoted_with():
    assert last_words("Traceback\nERROR: no such version\na hint\n") == "ERROR: no such version"
    assert last_words("") == "it said nothing"


def test_opendp_converts_as_we_do():
    assert zcdp_loss(1.0, 1e-9) == pytest.approx(0.014973, rel=1e-3)


def test_the_total_rests_mostly_on_the_smallest_table():
    assert common_total((np.array([10.0]), np.array([6.0, 0.0, 0.0]))) == pytest.approx(9.0)


cells = st.lists(st.floats(-100, 100), min_size=1, max_size=6)


@given(cells, st.floats(0, 200), st.lists(st.integers(1, 1000), min_size=6, max_size=6))
def test_no_table_of_the_total_is_nearer_than_the_projection(noisy, total, weights):
    table = np.array(noisy)
    nearest = nearest_in_simplex(table, total)
    assert nearest.min() >= 0
    assert nearest.sum() == pytest.approx(total, abs=1e-9)
    other = total * np.array(weights[: table.size]) / sum(weights[: table.size])
    # In every direction that stays inside, the distance does not fall.
    toward = nearest + 1e-3 * (other - nearest)
    assert np.sum((toward - table) ** 2) >= np.sum((nearest - table) ** 2) - 1e-6
    assert np.sum((other - table) ** 2) >= np.sum((nearest - table) ** 2) - 1e-6
