from dataclasses import replace

import numpy as np
import pytest

import tabulary as tb
from tabulary import datasets
from tabulary.errors import InvalidArgument, NotCertified
from tabulary.infer import loglinear
from tabulary.noise import ExactSampler
from tabulary.studies.study import Lab
from tabulary_papers.sparse_tables import GRID, SparseTables, methods
from tabulary_papers.sparse_tables import trials as trials_module
from tabulary_papers.sparse_tables.methods import Perturbed, plan_for, prepared, wanted
from tabulary_papers.sparse_tables.report import sections
from tabulary_papers.sparse_tables.trials import measured, trials
from tabulary_papers.sparse_tables.verdict import averages, thresholds
from tests.entropy import SeededEntropy

FUNGUS = datasets.describe("fungus")


def test_the_planned_table_has_the_tables_that_a_release_has_with_the_same_words():
    # Little noise: the errors of the release are simulated, which takes longer where more cells are cut off.
    made = plan_for(FUNGUS, "20", reconstruct="least-squares")
    released = tb.release(FUNGUS.table, made, entropy=SeededEntropy(3))
    found = prepared("least squares", FUNGUS, "20")(ExactSampler(SeededEntropy(3))).table
    for margin in wanted(FUNGUS):
        assert found.project(margin).counts.tolist() == released[margin].counts.tolist()


def test_a_plan_for_replaced_records_hardly_disturbs_their_number_and_pays_nothing_for_it():
    made = plan_for(FUNGUS, "0.005", reconstruct="least-squares")
    total = next(part for part in made.measured if part.margin == ())
    others = min(part.noise.scale for part in made.measured if part.margin)
    assert total.noise.scale <= others / 1000


def test_an_empty_table_has_no_fit_and_says_so():
    nobody = tb.Table(FUNGUS.table.domain, np.zeros(FUNGUS.table.shape, dtype=int))
    row = measured("fungus", FUNGUS.table, Perturbed(nobody, True, 2.0))
    assert row["unfitted"] == 1
    assert row["sample_size"] == 0
    assert row["max_l1"] == 70
    assert (row["g2"], row["g2_change"], row["mle_l1"]) == (None, None, None)


def test_a_likelihood_without_a_proved_maximum_leaves_its_repetition_blank():
    row = measured("fungus", FUNGUS.table, Perturbed(None, None, None))
    assert (row["unfitted"], row["infeasible"]) == (1, None)
    assert {row[column] for column in ("sample_size", "max_l1", "g2", "g2_change", "mle_l1")} == {None}


def test_a_fit_that_fails_ends_a_repetition_and_not_the_study(monkeypatch):
    def refuse(*_, **__):
        raise NotCertified("no maximum")

    monkeypatch.setattr(methods, "loglinear", refuse)
    monkeypatch.setattr(methods, "solve_program", refuse)
    for method in ("noise-aware", "least squares"):
        found = methods.prepared(method, FUNGUS, "1")(Lab(1, ("test",)).sampler())
        assert found.table is None
    monkeypatch.setattr(trials_module, "loglinear", refuse)
    assert measured("fungus", FUNGUS.table, Perturbed(FUNGUS.table, False, 0.0))["unfitted"] == 1


def test_the_truth_itself_has_no_distance():
    row = measured("fungus", FUNGUS.table, Perturbed(FUNGUS.table, False, 0.0))
    assert (row["sample_size"], row["max_l1"], row["g2_change"], row["mle_l1"]) == (70, 0, 0, 0)


def test_cells_are_fitted_with_their_noise_known():
    (row,) = trials(Lab(1, ("x",)), "fungus", "noise-aware", "1", 1)["trials"]
    made = tb.plan(
        FUNGUS.table.domain, "[ABCDEF]", privacy=tb.PureDP(1), neighbours="replace", mechanism="cells"
    )
    released = tb.release(FUNGUS.table, made, sampler=Lab(1, ("x",)).sampler())
    fit = loglinear(released["A", "B", "C", "D", "E", "F"], FUNGUS.model, method="noise-aware")
    assert row["g2"] == fit.g2
    # No program is solved, so that none can be infeasible.
    assert row["infeasible"] is None


TABLE = {"table": "fungus", "n": 70}


def trial(epsilon, size, *, method="as published", empty=0, distance=0.1, infeasible=0):
    return {
        "table": "fungus",
        "method": method,
        "epsilon": epsilon,
        "true_epsilon": epsilon,
        "repetition": 1,
        "sample_size": size,
        "max_l1": 1.0,
        "infeasible": infeasible,
        "b": 0.0,
        "unfitted": empty,
        "g2": None if empty else 17.0,
        "g2_change": None if empty else 0.2,
        "mle_l1": None if empty else distance,
    }


def reached(found, measure):
    return next(
        row["epsilon"] for row in thresholds(averages(found, [TABLE]), [TABLE]) if row["measure"] == measure
    )


def test_a_threshold_is_where_all_larger_epsilons_are_good_enough():
    sizes = {0.1: 70, 0.2: 90, 0.5: 75, 1.0: 70}
    found = [trial(epsilon, size) for epsilon, size in sizes.items() for _ in range(2)]
    assert reached(found, "sample size") == 0.5
    assert reached([trial(1.0, 90)] * 2, "sample size") is None


def test_an_error_to_both_sides_is_an_error_although_the_mean_is_right():
    assert reached([trial(1.0, 30), trial(1.0, 110)], "sample size") is None


def test_an_average_without_the_empty_tables_is_not_good_enough():
    assert reached([trial(1.0, 70)] * 2, "distance between MLEs") == 1.0
    with_empty = [trial(1.0, 70), trial(1.0, 0, empty=1)]
    assert reached(with_empty, "distance between MLEs") is None
    (row,) = averages(with_empty, [TABLE])
    assert (row["unfitted"], row["repetitions"], row["mle_l1"]) == (1, 2, 0.1)


def test_the_sentences_follow_the_numbers():
    study = SparseTables(tables=("fungus",))
    about = study.tasks()[0].work(Lab(1, ("x",)), ("fungus",))
    good, bad = {"distance": 0.1}, {"distance": 1.9}

    def words(published, planned):
        found = [trial(0.5, 70, **published)] * 2
        found += [trial(0.5, 70, method="least squares", **planned)] * 2
        return " ".join(sections(None, {**about, "trials": found})[0].words)

    here = "distance between MLEs of fungus"
    moved, stands = words(bad, good), words(bad, bad)
    assert f"and not as published: {here}." in moved
    assert "verdict stands" not in moved
    assert f"verdict stands: {here}." in stands
    assert "and not as published" not in stands
    assert "and not as published" not in words(good, good)


def test_a_method_without_a_program_has_no_threshold_for_it():
    found = [trial(1.0, 70, method=method, infeasible=share) for method, share in (("a", 0), ("b", None))] * 2
    rows = thresholds(averages(found, [TABLE]), [TABLE])
    assert [row["method"] for row in rows if row["measure"] == "infeasible programs"] == ["a"]
    assert [row["method"] for row in rows if row["measure"] == "sample size"] == ["a", "b"]


def test_a_method_that_never_has_a_fit_is_never_good_enough():
    found = [trial(1.0, 70, empty=1)] * 2
    assert reached(found, "distance between MLEs") is None


def test_sentences_name_the_largest_epsilon_of_the_grid_up_to_one():
    about = SparseTables(tables=("fungus",)).tasks()[0].work(Lab(1, ("x",)), ("fungus",))
    trials = [trial(epsilon, 70) for epsilon in (0.5, 0.995, 1.5)] * 2
    assert (
        "from some ε ≤ 0.995 on: as published 5 of 5."
        in sections(None, {**about, "trials": trials})[0].words[0]
    )
    assert {"0.1", "1"} <= set(GRID)


@pytest.mark.parametrize("wrong", [{"tables": ("adult",)}, {"tables": ()}, {"repetitions": 1}])
def test_a_study_that_cannot_be_is_refused(wrong):
    with pytest.raises(InvalidArgument, match="Nothing was done"):
        replace(SparseTables.quick(), **wrong)
