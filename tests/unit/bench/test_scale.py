import json
import sys
from dataclasses import astuple, replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench import scale, scale_page, spark
from bench.scale_model import FACTOR, Job, Run, ScaleModel, shuffled_bytes, tasks_of, uses, within
from tabulary.confidential.tally import Tally

PAGE = Path(__file__).parents[3] / "docs" / "explanation" / "scale.md"

jobs = st.builds(
    Job,
    records=st.integers(1, 10**10),
    attributes=st.integers(1, 100),
    margins=st.just(1),
    super_margins=st.integers(1, 2_000),
    cells=st.integers(1, 10**8),
    tasks=st.integers(1, 1_000),
)
rates = st.floats(1e-9, 1e-6)
models = st.builds(ScaleModel, rates, rates, rates, rates, rates, rates, rates, rates)

MODEL = ScaleModel(
    start=1.5, task=0.2, value=20e-9, count=1e-9, counter=6e-9, answer=40e-9, driver=5e8, driver_counter=30
)


def run_of(model: ScaleModel, job: Job, cores: int) -> Run:
    return Run(job, model.seconds(job, cores=cores), 0, 0, model.driver_bytes(job))


def test_a_fit_finds_the_rates_that_made_the_runs():
    runs = [
        run_of(MODEL, Job(records, attributes, 1, super_margins, cells, tasks), cores=2)
        for records in (500_000, 4_000_000)
        for attributes, super_margins, cells in ((20, 1, 6), (20, 29, 300_000), (40, 1_306, 16_000_000))
        for tasks in (2, 8)
    ]
    assert astuple(ScaleModel.fitted(runs, cores=2)) == pytest.approx(astuple(MODEL), rel=1e-6)


def test_a_fit_to_noisy_runs_has_no_rate_below_zero():
    job = Job(1_000, 2, 1, 1, 10, 2)
    slower_with_fewer = [Run(replace(job, records=n), s, 0, 0, 1e8) for n, s in ((1_000, 3.0), (9_000, 2.0))]
    assert min(astuple(ScaleModel.fitted(slower_with_fewer, cores=2))) >= 0


@given(models, jobs, st.integers(1, 500))
def test_more_cores_are_never_slower_and_more_work_is_never_faster(model, job, cores):
    seconds = model.seconds(job, cores=cores)
    assert model.seconds(job, cores=cores + 1) <= seconds
    for name in ("records", "attributes", "super_margins", "cells"):
        assert model.seconds(replace(job, **{name: 2 * getattr(job, name)}), cores=cores) >= seconds


@given(jobs)
def test_a_core_for_every_task_leaves_one_wave_and_no_core_more_helps(job):
    assert uses(job, cores=job.tasks) == uses(job, cores=10 * job.tasks)
    assert uses(job, cores=job.tasks)[1] == 1
    assert uses(job, cores=1)[1] == job.tasks
    assert uses(job, cores=1)[2] == pytest.approx(job.records * job.attributes)


@given(models, jobs)
def test_the_memory_of_the_driver_and_what_is_shuffled_do_not_depend_on_the_number_of_records(model, job):
    more = replace(job, records=1_000 * job.records)
    assert model.driver_bytes(more) == model.driver_bytes(job)
    assert shuffled_bytes(more) == shuffled_bytes(job)
    assert shuffled_bytes(replace(job, tasks=2 * job.tasks)) == 2 * shuffled_bytes(job)


def test_records_a_second_leave_aside_what_starts_and_ends_a_job():
    job = Job(10**12, 20, 254, 29, 300_000, 1_000)
    assert MODEL.records_a_second(job) == pytest.approx(10**12 / MODEL.seconds(job, cores=1), rel=0.01)


def test_there_are_as_many_tasks_as_cores_at_least_and_no_more_than_the_engine_makes():
    assert tasks_of(1_000, 8, 64) == 64
    assert tasks_of(10**10, 8, 16) == 200
    assert tasks_of(10**10, 8, 256) == 597
    assert tasks_of(10**12, 8, 256) == 1_024


@pytest.mark.parametrize("off", [1 / 1.6, 1 / 1.4, 1.4, 1.6])
def test_a_prediction_that_is_off_by_too_much_either_way_fails_the_run(off):
    job = Job(10**6, 20, 254, 29, 300_000, 2)
    right = run_of(MODEL, job, cores=spark.WORKERS)
    assert found(replace(right, seconds=off * right.seconds)).kept() == (1 / FACTOR < off < FACTOR)
    assert found(replace(right, driver_bytes=off * right.driver_bytes)).kept() == (1 / FACTOR < off < FACTOR)
    assert within(1, off) == within(off, 1)


@pytest.mark.parametrize("rate", ["value", "count"])
def test_a_model_in_which_records_cost_nothing_fails_the_run_however_near_it_is(rate):
    free = replace(MODEL, **{rate: 0.0})
    right = replace(found(run_of(free, Job(10**6, 20, 254, 29, 300_000, 2), cores=spark.WORKERS)), model=free)
    assert not right.kept()
    assert "not found" in scale_page.markdown(replace(right, model=replace(MODEL, value=0.0, count=0.0)))


def test_the_wide_domain_has_ten_thousand_margins_and_the_narrow_one_those_of_the_other_benches():
    assert len(scale.WIDE.attributes) == 40
    assert len(scale.wanted_of(scale.WIDE)) == 9_880
    assert len(scale.wanted_of(scale.DOMAIN)) == 254


@pytest.mark.parametrize("domain", [scale.DOMAIN, scale.WIDE])
def test_records_are_written_in_files_of_one_size_and_none_is_lost(tmp_path, domain):
    import pyarrow.parquet as pq

    folder = scale.write(tmp_path / "people", domain, 1_001)
    rows = [pq.read_metadata(file).num_rows for file in sorted(folder.iterdir())]
    assert rows == [500, 501]
    assert tuple(pq.read_table(folder).column_names) == domain.attributes
    assert scale.bytes_of(tmp_path) == sum(file.stat().st_size for file in folder.iterdir())


def test_a_single_count_that_differs_stops_the_comparison():
    margin = ("a00", "a10")
    tally = Tally(scale.DOMAIN, {margin: np.array([[1, 2], [3, 4]])})
    spark.check(tally, [margin], [np.array([[1, 2], [3, 4]])])
    with pytest.raises(AssertionError, match="a10"):
        spark.check(tally, [margin], [np.array([[1, 2], [4, 3]])])


def found(run: Run) -> scale_page.Findings:
    cover = {
        "margins": 254,
        "cap": 14,
        "super_margins": 29,
        "cells": 306_904,
        "seconds": 0.01,
        "a_record": 3e-8,
    }
    release = {
        "margins": 84, "cells": 19_467, "mechanism": "residual", "reconstruct": "none",
        "bytes": 3_000_000, "peak": 300_000_000,
        "cover": 0.1, "plan": 0.4, "noise": 0.2, "answers": 0.1, "files": 2.0,
    }  # fmt: skip
    return scale_page.Findings(0.5, MODEL, [run], [run], {20: 7.5, 40: 15.0}, [cover], [release])


def test_a_run_beside_other_work_says_that_its_times_mean_nothing():
    run = run_of(MODEL, Job(10**6, 20, 254, 29, 300_000, 2), cores=2)
    assert "at rest" not in scale_page.markdown(found(run))
    assert "at rest" in scale_page.markdown(replace(found(run), load=spark.QUIET))


def test_the_page_shows_the_tables_that_the_benches_print():
    page = PAGE.read_text("utf-8")
    printed = scale_page.markdown(found(run_of(MODEL, Job(10**6, 20, 254, 29, 300_000, 2), cores=2)))
    assert heads(between(page, "bench.scale")) == heads(printed)
    line = {"bench": "spark: x", "peer": "y", "ours": 1.0, "theirs": 30.0, "ratio": 30.0, "cores": 2, "margins": 254,
            "records": 10**7, "cold_seconds": 9.0, "bytes_shuffled": 10**6, "bytes_collected": 10**6}  # fmt: skip
    assert heads(between(page, "bench.spark")) == heads(spark.markdown([line], 0.5))


def between(page: str, name: str) -> str:
    return page.split(f"<!-- {name} -->\n")[1].split(f"<!-- end of {name} -->")[0]


def heads(text: str) -> list[str]:
    """The titles and the first line of each table."""
    lines = [*text.splitlines(), ""]
    return [line for line, after in pairwise(lines) if line.startswith("#") or after.startswith("| ---")]


@pytest.mark.audit
def test_a_quick_run_prints_a_line_for_every_check_and_every_cluster(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["scale", "--quick", "--records", "100000"])
    with pytest.raises(SystemExit, match=r"^(True|False)$"):
        scale.main()
    lines = [json.loads(text) for text in capsys.readouterr().out.splitlines()]
    checks = [line for line in lines if line.get("peer") == "the model's prediction"]
    assert [line["margins"] for line in checks] == [254, 254, 9_880, 9_880]
    extrapolated = [line for line in lines if line["bench"] == "scale: extrapolated"]
    assert {(line["records"], line["cores"]) for line in extrapolated} == {
        (records, cores) for records in scale_page.EXTRAPOLATED for cores in scale_page.CLUSTERS
    }
