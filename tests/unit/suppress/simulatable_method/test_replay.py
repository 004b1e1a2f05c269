"""Replay: a true record comes out the same, and no changed one does."""

import json
from copy import deepcopy

import numpy as np
import pytest

from tabulary.errors import TabularyError
from tabulary.suppress import SimulatableTable, replay, simulatable
from tabulary.table_samplers.partial_table import CellQuestion

PEOPLE = np.array([[40, 30, 8], [50, 60, 9], [45, 40, 60]])
COUNTS = np.array([[18, 13, 3], [25, 27, 4], [20, 19, 28]])


def made(**options) -> SimulatableTable:
    return simulatable(PEOPLE, COUNTS, 0.45, attributes=["eye", "hair"], **options)


@pytest.fixture(scope="module")
def table() -> SimulatableTable:
    table = made()
    assert 0 < table.suppressed.sum() < 9
    return table


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"rule": "sampled"},
        {"rule": "sampled", "seed": "mine"},
        {"bins": {"eye": 2}},
        {"order": [(i, j) for j in range(3) for i in range(3)]},
        {"epsilon": "0.05", "delta": "0.01"},
        {"epsilon": "0.2", "delta": "0.1"},
    ],
)
def test_a_published_record_replays_from_its_description_alone(options):
    text = json.dumps(made(**options).describe())
    again = replay(SimulatableTable.from_description(json.loads(text)))
    assert again.ok, again.difference
    assert again.difference is None
    assert again.derived_seed is ("seed" not in options)


def changed(table, change) -> SimulatableTable:
    description = deepcopy(table.describe())
    change(description)
    return SimulatableTable.from_description(description)


def decision_of(description, reason):
    return next(d for d in description["decisions"] if d["reason"].startswith(reason))


def cell(description, place):
    return next(d for d in description["decisions"] if d["question"] == {"of": "cell", "index": list(place)})


def first_cell(table, *, released):
    return next(
        d.question.index
        for d in table.decisions
        if isinstance(d.question, CellQuestion) and d.released is released and d.sampler != "none"
    )


def reveal(description, table):
    """A cell that should be left out is published, with a decision to match."""
    place = first_cell(table, released=False)
    description["counts"][place[0]][place[1]] = int(COUNTS[place])
    cell(description, place).update(released=True, value=int(COUNTS[place]))


def withhold(description, table):
    """A cell that should be published is left out, as if it had been unsafe."""
    place = first_cell(table, released=True)
    description["counts"][place[0]][place[1]] = None
    cell(description, place).update(
        released=False, value=None, reason="an unsafe answer is too likely", unsafe=0.5
    )


def misstate_the_decision(description, table):
    place = first_cell(table, released=True)
    cell(description, place)["value"] += 1


def misstate_the_grounds(description, table):
    cell(description, first_cell(table, released=False))["unsafe"] *= 2


def leave_a_decision_out(description, table):
    del description["decisions"][3]


def add_a_decision(description, table):
    description["decisions"].append(deepcopy(description["decisions"][-1]))


def end_the_record_early(description, table):
    del description["decisions"][-1]


def swap_two_decisions(description, table):
    decisions = description["decisions"]
    decisions[-1], decisions[-2] = decisions[-2], decisions[-1]


def claim_another_epsilon(description, table):
    description["terms"]["epsilon"] = "0.4"


def claim_a_smaller_delta(description, table):
    description["terms"]["delta"] = "0.1"
    description["promised_delta"] = 0.1


def claim_another_prior(description, table):
    description["people"]["probability"][0][0][0] = 0.5


def claim_more_people(description, table):
    description["people"]["number"][2][2][0] += 5


@pytest.mark.parametrize(
    "change",
    [
        reveal,
        withhold,
        misstate_the_decision,
        misstate_the_grounds,
        leave_a_decision_out,
        add_a_decision,
        end_the_record_early,
        swap_two_decisions,
        claim_another_epsilon,
        claim_a_smaller_delta,
        claim_another_prior,
        claim_more_people,
    ],
)
def test_a_record_that_was_changed_is_found_out(table, change):
    forged = changed(table, lambda description: change(description, table))
    again = replay(forged)
    assert not again.ok
    assert again.difference


def test_the_first_difference_is_named(table):
    place = first_cell(table, released=False)
    labels = ", ".join(str(level + 1) for level in place)
    again = replay(changed(table, lambda description: reveal(description, table)))
    assert again.difference == f"by the record {labels} is released, and made again it is not"


def test_a_changed_count_contradicts_the_sums_or_the_record(table):
    def change(description):
        place = first_cell(table, released=True)
        description["counts"][place[0]][place[1]] += 1

    try:
        forged = changed(table, change)
    except TabularyError:
        return
    assert not replay(forged).ok


def test_a_sampled_record_does_not_replay_with_another_seed():
    sampled = made(rule="sampled")
    assert any(decision.unsafe for decision in sampled.decisions)
    forged = changed(sampled, lambda description: description["terms"].update(seed="another"))
    assert not replay(forged).ok
    assert not replay(forged).derived_seed


def test_replaying_needs_the_published_table_only(table):
    # The description is the whole input, and holds no count of a suppressed cell.
    text = json.dumps(table.describe())
    assert SimulatableTable.from_description(json.loads(text)).counts[
        table.suppressed
    ].tolist() == pytest.approx([np.nan] * int(table.suppressed.sum()), nan_ok=True)


def test_progress_of_a_replay_is_told(table):
    steps = []
    replay(table, progress=lambda *step: steps.append(step))
    assert steps[-1] == ("deciding", len(table.decisions), len(table.decisions))
