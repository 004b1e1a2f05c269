"""`tabulary.studies.own_data`: risk and utility of a custodian's own plan."""

import json
import os
from fractions import Fraction
from importlib import import_module

import numpy as np
import pytest

import tabulary as tb
from tabulary.core.budget import scaled
from tabulary.errors import (
    InvalidArgument,
    InvalidNoise,
    InvalidPrivacy,
    InvalidWorkload,
    NotCertified,
    UnknownMargin,
    UnreadableSource,
)
from tabulary.reconstruct import reconstruct
from tabulary.studies.own_data import PlanStudy
from tabulary.studies.own_data.counting import counted_margins, counts_of_records, summed
from tabulary.studies.own_data.grid import Asked, amounts
from tabulary.studies.own_data.judging import Judge
from tabulary.studies.own_data.measures import Measures
from tabulary.studies.running import run
from tabulary.workflows import read_plan_file
from tests.own_plans import (
    COUNTS,
    PLAN,
    compared_once,
    leave_undrawn,
    sheet,
    words,
    write_people,
    write_plan,
)

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True, scope="module")
def compared():
    with compared_once():
        yield


@pytest.fixture
def undrawn(monkeypatch):
    leave_undrawn(monkeypatch)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("own-data")
    write_people(folder)
    return folder


@pytest.fixture(scope="module")
def planned(place):
    return write_plan(place)


def test_a_study_that_was_interrupted_goes_on_where_it_was(planned, tmp_path, undrawn):
    study = PlanStudy.of(planned, quick=True, mechanisms=["margins", "cells"])

    def stop(what, done, total):
        if what == "working" and done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(study, tmp_path / "out", processes=1, progress=stop)
    begun = (tmp_path / "out" / "journal.jsonl").read_text()
    run(study, tmp_path / "out", processes=1)
    assert (tmp_path / "out" / "journal.jsonl").read_text().startswith(begun)
    run(study, tmp_path / "whole", processes=1)
    for name in ("all", "tables", "expected"):
        own, other = (tmp_path / each / "numbers" / f"{name}.csv" for each in ("out", "whole"))
        assert own.read_text() == other.read_text()


def test_another_plan_and_other_records_are_another_study(tmp_path):
    write_people(tmp_path)
    settings = PlanStudy.of(write_plan(tmp_path), quick=True).settings
    assert PlanStudy.of(write_plan(tmp_path), quick=True).settings == settings
    others = [
        write_plan(tmp_path, privacy="epsilon = 2"),
        write_plan(tmp_path, margins="[sex age][job]"),
        write_plan(tmp_path, source="other.parquet"),
    ]
    for other in others:
        assert PlanStudy.of(other, quick=True).settings != settings
    write_people(tmp_path, counts=COUNTS + 1)
    assert PlanStudy.of(write_plan(tmp_path), quick=True).settings != settings


@pytest.mark.parametrize("source", ["people", "people/*.parquet", "**/*.parquet"])
def test_a_file_that_was_changed_added_or_removed_makes_another_study(source, tmp_path):
    (tmp_path / "people").mkdir()
    for part in ("north.parquet", "south.parquet"):
        write_people(tmp_path / "people", part)
    study = PlanStudy.of(write_plan(tmp_path, source=source), quick=True)
    seen = [study.settings]
    assert study.settings == seen[0]
    write_people(tmp_path / "people", "south.parquet", COUNTS + 1)
    seen.append(study.settings)
    # As many bytes as before, a moment later.
    south = tmp_path / "people" / "south.parquet"
    os.utime(south, ns=(0, south.stat().st_mtime_ns + 1))
    seen.append(study.settings)
    write_people(tmp_path / "people", "west.parquet")
    seen.append(study.settings)
    (tmp_path / "people" / "north.parquet").unlink()
    seen.append(study.settings)
    assert len({json.dumps(settings) for settings in seen}) == 5


def test_the_settings_name_the_source_without_its_password(tmp_path):
    pytest.importorskip("ibis")
    text = PLAN.format(
        privacy="epsilon = 1",
        margins="[sex age]",
        mechanism="",
        source="postgresql://reader:hunter2@db/census",
    ).replace("[domain.sex]", 'table = "people"\n\n[domain.sex]', 1)
    (tmp_path / "census.toml").write_text(text)
    planned = read_plan_file(tmp_path / "census.toml")
    settings = json.dumps(PlanStudy.of(planned, quick=True).settings)
    assert "postgresql://db/census" in settings
    assert "hunter2" not in settings


def test_no_record_is_read_before_the_study_runs(tmp_path):
    study = PlanStudy.of(write_plan(tmp_path, source="nowhere.parquet"), quick=True)
    assert len(study.tasks()) == 6
    with pytest.raises(UnreadableSource, match="there is no file or folder"):
        run(study, tmp_path / "out", processes=1)


# What is compared


def test_by_default_an_eighth_to_eight_times_the_amount_of_the_plan():
    assert [str(each) for each in amounts(tb.PureDP(1))][::3] == ["ε = 0.125", "ε = 1", "ε = 8"]
    assert len(amounts(tb.ApproxDP(1, 1e-9))) == 7
    assert {each.delta for each in amounts(tb.ApproxDP(1, 1e-9))} == {Fraction(1, 10**9)}


def test_rho_is_scaled_by_the_square():
    assert scaled(tb.ZCDP("1/8"), Fraction(2)) == tb.ZCDP("1/2")
    assert [each.rho for each in amounts(tb.ZCDP(1))][::6] == [Fraction(1, 64), 64]


def test_the_plans_own_amount_is_always_compared():
    assert amounts(tb.PureDP(1), epsilons=["1/2", "2", "2"]) == (tb.PureDP("1/2"), tb.PureDP(1), tb.PureDP(2))


@pytest.mark.parametrize("wrong", ["0", "-1", "much", "nan"])
def test_an_epsilon_that_cannot_be_is_refused(wrong, planned):
    with pytest.raises(InvalidPrivacy, match="epsilon"):
        PlanStudy.of(planned, epsilons=[wrong])


def test_amounts_are_of_the_kind_that_the_plan_promises(planned):
    with pytest.raises(
        InvalidArgument, match=r"amounts of ρ are given, but the plan promises ε = 1.*amounts of ε"
    ):
        PlanStudy.of(planned, rhos=["0.1"])
    with pytest.raises(
        InvalidArgument, match=r"amounts of ε are given, but the plan promises ρ = 1.*amounts of ρ"
    ):
        amounts(tb.ZCDP(1), epsilons=["0.1"])


def test_the_plans_own_mechanism_comes_first_and_all_that_can_follow(planned):
    study = PlanStudy.of(planned)
    assert [each.own for each in study.series] == [True] + [False] * (len(study.series) - 1)
    assert study.series[0].name == "margins"
    assert {each.name for each in study.series} == {
        "cells",
        "margins",
        "fourier",
        "efron-stein",
        "residual",
        "residual, shrunk",
    }
    assert not study.refusals
    assert len(study.tasks()) == 6 * 7


def test_named_mechanisms_alone_are_compared(planned):
    study = PlanStudy.of(planned, mechanisms=["cells", "shrunk"])
    assert [each.name for each in study.series] == ["cells", "residual, shrunk"]


def test_an_unknown_mechanism_and_one_that_cannot_are_refused_with_the_reason(planned, tmp_path):
    with pytest.raises(
        InvalidArgument, match=r"'laplace' is not known. Nothing was done. Choose among .*'cells'"
    ):
        PlanStudy.of(planned, mechanisms=["laplace"])
    program = write_plan(tmp_path, mechanism='name = "margins"\nreconstruct = "lp"')
    with pytest.raises(InvalidArgument, match=r"'cells' cannot answer this plan: .*linear program"):
        PlanStudy.of(program, mechanisms=["cells"])


@pytest.mark.parametrize(
    ("privacy", "mechanism"),
    [
        ("epsilon = 1", ""),
        ("rho = 0.1", 'reconstruct = "shrink"\nrounding = "controlled"\nrecords = 5000'),
        ("epsilon = 1\ndelta = 1e-9", 'name = "residual"\nobjective = "max"'),
        ('epsilon = 0.5\nneighbours = "replace"', 'reconstruct = "least-squares"\nrounding = "controlled"'),
    ],
)
def test_the_plans_own_mechanism_at_its_own_amount_is_the_plan(privacy, mechanism, tmp_path):
    planned = write_plan(tmp_path, privacy=privacy, mechanism=mechanism)
    own = next(each for each in PlanStudy.of(planned).series if each.own)
    assert Asked.of(planned).planned(own, planned.plan.privacy).digest() == planned.plan.digest()


def refuse(monkeypatch, refused):
    plan_of = Asked.planned

    def planned(self, series, privacy):
        if refused(privacy):
            raise InvalidNoise("there is no such noise.")
        return plan_of(self, series, privacy)

    monkeypatch.setattr(Asked, "planned", planned)


def test_a_mechanism_that_fails_at_one_amount_is_named_on_the_page(planned, tmp_path, monkeypatch, undrawn):
    refuse(monkeypatch, lambda privacy: privacy == tb.PureDP(2))
    study = PlanStudy.of(planned, epsilons=[2], mechanisms=["margins", "cells"], repetitions=2)
    run(study, tmp_path / "out", processes=1)
    said = words(tmp_path / "out")
    assert "Margins at ε = 2: there is no such noise." in said
    assert "margins not up to ε = 2" not in said
    assert "margins from ε = 1 on, the smallest compared, and was not measured beyond ε = 1;" in said
    assert sheet(tmp_path / "out", "all")["epsilon"].unique().tolist() == [1]


def test_a_study_that_is_refused_everything_says_that_and_nothing_of_the_cells(
    planned, tmp_path, monkeypatch, undrawn
):
    refuse(monkeypatch, lambda privacy: True)
    study = PlanStudy.of(planned, epsilons=[1], mechanisms=["margins"], repetitions=2, tests=["[sex age]"])
    run(study, tmp_path / "out", processes=1)
    said = words(tmp_path / "out")
    assert "Nothing could be measured, at any amount or by any mechanism" in said
    assert "Margins at ε = 1: there is no such noise." in said
    assert "No cell" not in said
    assert "are reconstructed" not in said


def test_repetitions_that_cannot_be_reconstructed_are_counted_out(planned, tmp_path, monkeypatch, undrawn):
    calls = []

    def fails_at_first(*arguments, **options):
        calls.append(1)
        if len(calls) == 1:
            raise NotCertified("no.")
        return reconstruct(*arguments, **options)

    monkeypatch.setattr("tabulary.studies.own_data.work.reconstruct", fails_at_first)
    study = PlanStudy.of(planned, epsilons=[1], mechanisms=["margins"], repetitions=3)
    run(study, tmp_path / "out", processes=1)
    assert "In 1 of 3 repetitions the reconstruction of margins did not come to an end" in words(
        tmp_path / "out"
    )


@pytest.mark.parametrize(
    ("wrong", "error", "said"),
    [
        (
            {"margins": ["[sex job]"]},
            UnknownMargin,
            r"the margin \[sex job\]: no table of the plan holds \[sex job\]",
        ),
        ({"margins": ["[sex colour]"]}, InvalidWorkload, r"the margin .*no attribute 'colour'"),
        ({"margins": ["sex"]}, InvalidWorkload, "the margin sex: cannot read"),
        (
            {"tests": ["[sex job]"]},
            UnknownMargin,
            r"the test .*Add \[sex job\] to \[tables\] of the plan file",
        ),
        ({"tests": ["[sex]"]}, InvalidArgument, "between two attributes, and these are 1"),
        ({"models": ["[sex job][age]"]}, UnknownMargin, r"no table of the plan holds \[sex job\]"),
        ({"models": ["[]"]}, InvalidArgument, "nothing to fit"),
        ({"target": 0}, InvalidArgument, "between 0 and 1"),
        ({"repetitions": 1}, InvalidArgument, "at least 2 repetitions"),
    ],
)
def test_what_the_tables_of_the_plan_cannot_answer_is_refused(wrong, error, said, planned):
    with pytest.raises(error, match=said) as problem:
        PlanStudy.of(planned, **wrong)
    assert "Nothing was done." in str(problem.value)


# The measures


@pytest.fixture(scope="module")
def counts(planned):
    return counts_of_records(planned, counted_margins(planned.plan.workload, ["cells"], max_cells=100))


def judge_of(planned, counts, **measures):
    return Judge(planned.plan, Measures.read(planned.plan.workload, **measures), counts)


def test_records_are_counted_as_they_are(counts):
    assert (summed(counts, ("age",)) == COUNTS.sum(axis=(0, 2))).all()
    assert (counts["sex", "age", "job"] == COUNTS).all()


def test_exact_tables_have_no_error_and_every_test_decides_alike(planned, counts):
    judge = judge_of(planned, counts, models=["[age][job]", "[sex age][age job]"], tests=["[age job]"])
    exact = {margin: summed(counts, margin) for margin in planned.plan.workload}
    for row in (*judge.tables(exact), judge.together(judge.tables(exact))):
        assert row["rmse"] == row["l1_share"] == row["largest_relative_error"] == 0
    assert [row["fit_l1"] for row in judge.models(exact)] == [0, 0]
    assert judge.models(exact)[0]["g2_ratio_change"] == 0
    (test,) = judge.tests(exact)
    assert test["naive_agrees"]
    assert test["aware_agrees"]
    assert test["naive_v_error"] == 0


def test_errors_are_what_one_reckons_by_hand(planned, counts):
    judge = judge_of(planned, counts)
    off = {margin: summed(counts, margin).copy() for margin in planned.plan.workload}
    off["sex", "age"][0, 0] += 60
    off["age", "job"][2, 2] -= 194
    first, second = judge.tables(off)
    people = COUNTS.sum()
    assert first["rmse"] == pytest.approx(60 / np.sqrt(6))
    assert first["l1_share"] == pytest.approx(60 / people)
    assert first["largest_relative_error"] == pytest.approx(60 / COUNTS.sum(axis=2)[0, 0])
    # The cell that is wrong holds less than 1 % of the people: nobody quotes its relative error.
    assert second["largest_relative_error"] == 0
    together = judge.together([first, second])
    assert together["rmse"] == pytest.approx(np.sqrt((60**2 + 194**2) / 15))
    assert (together["worst_table"], together["worst_rmse"]) == ("[age job]", pytest.approx(194 / 3))
    assert together["l1_share"] == pytest.approx((60 + 194) / people / 2)


def test_a_model_is_fitted_from_its_margins_where_no_table_holds_it(planned, counts):
    exact = tb.Table(planned.plan.domain, COUNTS)
    judge = judge_of(planned, counts, models=["[sex age][age job]"])
    published = {margin: summed(counts, margin).copy() for margin in planned.plan.workload}
    published["age", "job"][0, 0] += 500
    moved = COUNTS.copy().astype(float)
    moved[:, 0, 0] += 250
    # The published tables disagree about the young; the last to be fitted is [age job].
    (row,) = judge.models(published)
    assert row["g2_ratio_change"] is None
    wanted = tb.infer.utility.fit_l1(exact, tb.Table(exact.domain, moved), "[sex age][age job]")
    assert row["fit_l1"] == pytest.approx(wanted, rel=1e-3)


def test_a_test_knows_the_noise_only_of_tables_that_are_as_they_were_measured(tmp_path, counts):
    linear = write_plan(tmp_path, mechanism='name = "residual"\nreconstruct = "none"')
    for planned, known in ((linear, True), (write_plan(tmp_path, mechanism='reconstruct = "shrink"'), False)):
        judge = judge_of(planned, counts, tests=["[age job]"])
        (row,) = judge.tests({margin: summed(counts, margin) for margin in planned.plan.workload})
        assert (row["aware_agrees"] is not None) == known
        assert (row["aware_v_error"] is not None) == known


def test_the_law_of_a_summed_table_is_that_of_all_its_noise(tmp_path, counts):
    planned = write_plan(tmp_path, margins="[sex age job]")
    judge = judge_of(planned, counts, margins=["[sex age]"], tests=["[sex age]"])
    (row,) = judge.expected()
    scale_one = planned.plan.error_of(("sex", "age", "job")).standard_errors[0, 0, 0]
    assert row["rmse"] == pytest.approx(scale_one * np.sqrt(3))
    (test,) = judge.tests({("sex", "age", "job"): COUNTS})
    # Sex has no say: independence is not rejected, in either way.
    assert test["counts_reject"] is False
    assert test["aware_agrees"]


# The public variant


@pytest.fixture(scope="module")
def released(place):
    planned = write_plan(place, mechanism='reconstruct = "shrink"', name="earlier.toml")
    with planned.records() as records:
        release = tb.release(records, planned.plan, title="People of 2025")
    release.save(place / "census-2025")
    return place / "census-2025"


def test_a_twin_of_a_release_needs_no_record_and_its_page_may_be_shown(
    released, tmp_path, undrawn, monkeypatch
):
    planned = write_plan(
        tmp_path,
        margins="[sex age][age job][sex job]",
        source="nowhere.parquet",
        mechanism='name = "margins"',
    )
    study = PlanStudy.of(
        planned, quick=True, public=released, mechanisms=["margins", "cells"], tests=["[age job]"]
    )
    assert not study.confidential
    monkeypatch.setattr(import_module("tabulary.release.drawing"), "svg", lambda chart: chart.to_json())
    run(study, tmp_path / "out", processes=1)
    page, said = (tmp_path / "out" / "index.html").read_text(), words(tmp_path / "out")
    assert "CONFIDENTIAL" not in page
    assert "nowhere" not in page
    digest = tb.Release.load(released).digest
    assert f"“People of 2025”, digest {digest}, made with the promise ε = 1 (add-remove)" in said
    assert "No record was opened for this page, and it spends nothing" in said
    assert "not what happens to the people who were counted" in said
    assert "The release holds no table on [sex job]." in said
    assert "It may be shown to whoever may see the release and the plan." in said
    assert (
        "shrunk tables look better here than on the records, the more so with less privacy than the ε = 1"
        in said
    )
    # Nobody was counted.
    assert "On the made-up people, independence in [age job] is rejected." in said
    assert "as on the made-up people" in said
    assert "the same made-up people, fresh noise" in said
    assert "the counts" not in said
    pictures = [file.read_text() for file in (tmp_path / "out" / "figures").glob("*.svg")]
    assert len(pictures) == 5
    assert any("decide as on the made-up people" in each for each in pictures)
    assert all("the counts" not in each for each in pictures)
    assert all("CONFIDENTIAL" not in each and "People made up from a release" in each for each in pictures)
    # The twin resembles the release, and so do the errors as shares.
    assert sheet(tmp_path / "out", "all")["l1_share"].between(0, 0.1).all()
    first, again = study.material(), study.material()
    assert all((again[margin] == counted).all() for margin, counted in first.items())


def test_people_made_up_from_tables_that_were_not_shrunk_flatter_none(tmp_path, undrawn):
    earlier = write_plan(tmp_path, mechanism='reconstruct = "least-squares"', name="earlier.toml")
    tb.release(tb.Table(earlier.plan.domain, COUNTS), earlier.plan).save(tmp_path / "earlier")
    study = PlanStudy.of(
        write_plan(tmp_path), quick=True, public=tmp_path / "earlier", mechanisms=["margins"]
    )
    run(study, tmp_path / "out", processes=1)
    assert "look better here" not in words(tmp_path / "out")


def test_a_release_of_another_domain_cannot_stand_in(released, tmp_path):
    planned = write_plan(tmp_path)
    text = (tmp_path / "census.toml").read_text().replace('"young", "middle", "old"', '"young", "old"')
    (tmp_path / "census.toml").write_text(text)
    with pytest.raises(InvalidArgument, match=r"differs from that of census.toml in 'age'. Nothing was done"):
        PlanStudy.of(read_plan_file(tmp_path / "census.toml"), public=released)
    assert planned.plan.domain.shape == (2, 3, 3)


def test_a_release_without_an_attribute_of_the_plan_cannot_stand_in(place, tmp_path):
    earlier = write_plan(tmp_path, margins="[sex age]", mechanism='reconstruct = "shrink"')
    table = tb.Table(earlier.plan.domain, COUNTS)
    tb.release(table, earlier.plan).save(tmp_path / "earlier")
    with pytest.raises(InvalidArgument, match=r"no table of the release .* holds 'job'"):
        PlanStudy.of(write_plan(tmp_path), public=tmp_path / "earlier")


def test_a_damaged_release_is_refused(released, planned, tmp_path):
    import shutil

    shutil.copytree(released, tmp_path / "damaged")
    file = next((tmp_path / "damaged").rglob("*.csv"))
    file.write_text(file.read_text().replace("F", "M", 1))
    with pytest.raises(tb.errors.ReleaseDamaged, match=r"\.csv has been changed"):
        PlanStudy.of(planned, public=tmp_path / "damaged")
