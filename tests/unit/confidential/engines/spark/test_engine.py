"""The engine on Spark, on a real cluster; what every engine promises is in tests/promises/test_counting.py."""

import logging
import re
import sys
import threading
import time
import traceback
from itertools import combinations, pairwise
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tabulary.confidential.coding import Coding
from tabulary.confidential.engines.spark import engine
from tabulary.confidential.engines.spark import worker as spark_worker
from tabulary.confidential.engines.spark.engine import SparkEngine
from tabulary.confidential.engines.spark.jobs import PATIENCE
from tabulary.confidential.records import Records
from tabulary.confidential.weights import Weights
from tabulary.core.domain import Domain
from tabulary.errors import (
    ImpossibleRecord,
    InvalidAddress,
    InvalidColumn,
    UnknownLevel,
    UnreadableSource,
    WeightsClipped,
)
from tests.pages import blocks
from tests.waiting import wait_until

PAGE = "docs/how-to/count-on-spark.md"
DOMAIN = Domain({"sex": ["F", "M"], "age": ["0-14", "15-64", "65+"], "job": ["none", "paid", "?"]})
CODINGS = {
    "age": Coding(column="years", bins=[0, 15, 65], unknown="drop"),
    "job": Coding(mapping={"n": "none", 1: "paid", "1.5": "paid"}, unknown="level:?"),
}
MARGINS = [(), ("sex",), ("age", "job"), ("sex", "age", "job")]
TELLING = "Wildmoser-Szczepkowska"

# What Python runs when it starts, and from where on it is one into which nobody has installed Tabulary.
WITHOUT_TABULARY = """
import sys

class Nowhere:
    def find_spec(self, name, *_):
        if name == "tabulary":
            raise ModuleNotFoundError("No module named 'tabulary'", name=name)

sys.meta_path.insert(0, Nowhere())
"""


def people(rows=500):
    generator = np.random.default_rng(7)
    return pa.table(
        {
            "name": [f"{TELLING} {i}" for i in range(rows)],
            "job": generator.choice(["n", "1", "1.5", "", "other"], rows),
            "years": [None if i % 50 == 0 else i % 97 + 0.5 for i in range(rows)],
            "sex": generator.choice(["F", "M"], rows),
            "w": generator.choice([0.25, 1.5, 2.0, 0.125], rows),
        }
    )


def same(spark, table, domain, codings=None, margins=None, *, weights=None, parts=3):
    """Count on Spark and here, and compare."""
    margins = margins or [m for k in range(3) for m in combinations(domain.attributes, k)]
    frame = spark.createDataFrame(table).repartition(parts)
    ours = Records.from_spark(frame, domain, codings, weights=weights).tally(margins)
    with Records.from_arrow(table, domain, codings, weights=weights) as records:
        theirs = records.tally(margins)
    for margin in map(domain.margin, margins):
        assert np.array_equal(ours.exact(margin), theirs.exact(margin)), margin
        assert ours.exact(margin).dtype == np.int64


def refusal(kind, words, action):
    """Return what an error of ours says, once it is sure that nothing of another error hangs on it."""
    with pytest.raises(kind, match=re.escape(words)) as caught:
        action()
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    told = "".join(traceback.format_exception(caught.value))
    assert "Py4J" not in told
    assert TELLING not in told
    return str(caught.value)


@pytest.fixture
def frame(spark):
    return spark.createDataFrame(people())


@pytest.mark.parametrize("driver_bytes", [0, 1 << 26], ids=["on the cluster", "by the driver"])
def test_counts_are_those_of_the_compiled_engine_wherever_they_are_added_up(spark, monkeypatch, driver_bytes):
    monkeypatch.setattr(engine, "DRIVER_BYTES", driver_bytes)
    monkeypatch.setattr(engine, "CLUSTER_BYTES", 0)
    same(spark, people(), DOMAIN, CODINGS, MARGINS)


@pytest.mark.sample
def test_survey_weights_are_summed_exactly_and_clipping_is_told_where_the_tally_was_asked_for(spark):
    table = people()
    same(spark, table, DOMAIN, CODINGS, MARGINS, weights=Weights("w", 2, unit="1/4"))
    weights = Weights("w", 1, unit="1/4")
    records = Records.from_spark(spark.createDataFrame(table), DOMAIN, CODINGS, weights=weights)
    with pytest.warns(WeightsClipped, match="'w'") as told:
        records.tally(MARGINS)
    assert told[0].filename == __file__


@pytest.mark.parametrize("wrong", [None, float("nan"), -1.0])
def test_a_weight_that_is_none_refuses_the_records(spark, wrong):
    table = people(4).set_column(4, "w", pa.array([1.0, wrong, 1.0, 1.0]))
    records = Records.from_spark(
        spark.createDataFrame(table), DOMAIN, CODINGS, weights=Weights("w", 2, unit="1/4")
    )
    refusal(InvalidColumn, "column 'w' has a weight that is", lambda: records.tally(MARGINS))


def test_three_hundred_attributes_are_counted(spark):
    generator = np.random.default_rng(0)
    domain = Domain({f"a{i}": range(2 + i % 3) for i in range(300)})
    table = pa.table({a: generator.integers(0, len(domain.levels_of(a)), 200) for a in domain.attributes})
    same(spark, table, domain, margins=[("a0", "a299"), ("a7",), *pairwise(domain.attributes)])


def test_seventy_thousand_levels_and_a_million_cells_are_counted(spark):
    generator = np.random.default_rng(0)
    domain = Domain({"place": range(70_000), "sex": ["F", "M"], "a": range(1000), "b": range(1000)})
    rows = 3000
    table = pa.table(
        {
            "place": generator.integers(0, 70_000, rows),
            "sex": generator.choice(["F", "M"], rows),
            "a": generator.integers(0, 1000, rows),
            "b": generator.integers(0, 1000, rows),
        }
    )
    same(spark, table, domain, margins=[("place", "sex"), ("a", "b"), ("sex", "a")])


def test_columns_are_told_apart_by_every_character_of_their_names(spark):
    names = ["sex", "Sex", "a.b", "we`ird", "é"]
    domain = Domain({name: ["x", "y"] for name in names})
    table = pa.table({name: ["x"] * (i + 1) + ["y"] * (5 - i) for i, name in enumerate(names)})
    frame = spark.createDataFrame(table.rename_columns([f"c{i}" for i in range(5)])).toDF(*names)
    ours = Records.from_spark(frame, domain).tally([(name,) for name in names])
    assert [ours.exact((name,)).tolist() for name in names] == [[i + 1, 5 - i] for i in range(5)]


def test_only_wanted_columns_are_read(spark, tmp_path):
    table = people()
    numbered = table.append_column("unwanted", pa.array(range(len(table))))
    pq.write_table(numbered, tmp_path / "one.parquet")
    pq.write_table(numbered.set_column(5, "unwanted", numbered["name"]), tmp_path / "two.parquet")
    frame = spark.read.schema(spark.read.parquet(str(tmp_path / "one.parquet")).schema).parquet(str(tmp_path))
    assert Records.from_spark(frame, DOMAIN, CODINGS).tally([()]).exact(()) == 980
    # The two files do not agree about the column, so that it cannot be read.
    refusal(
        UnreadableSource,
        "a file of it is damaged",
        lambda: Records.from_spark(frame, Domain({"unwanted": range(500)})).tally([()]),
    )


def test_each_part_is_read_once_however_many_margins_there_are(spark, tmp_path, monkeypatch):
    monkeypatch.setattr(engine, "DRIVER_BYTES", 0)
    log = tmp_path / "reads"

    def told(batches):
        with log.open("a") as reads:
            reads.write("read\n")
        yield from batches

    source = spark.createDataFrame(people()).repartition(4)
    frame = source.mapInArrow(told, source.schema)
    records = Records.from_spark(frame, DOMAIN, CODINGS)
    assert not log.exists()
    records.tally([m for k in range(4) for m in combinations(DOMAIN.attributes, k)])
    assert log.read_text().count("read") == 4


def test_many_small_parts_become_few_tasks(spark, monkeypatch):
    monkeypatch.setattr(engine, "TASKS", 3)
    monkeypatch.setattr(engine, "TASKS_A_CORE", 0)
    # Room for the counters of three tasks: two cells of "sex", and what a task sends besides.
    monkeypatch.setattr(engine, "DRIVER_BYTES", 3 * (engine.TASK_BYTES + 16))
    parts = []
    gather = engine.gathered

    def seen(results, cells):
        parts.extend(number for number in results.column("block").to_pylist() if number < 0)
        return gather(results, cells)

    monkeypatch.setattr(engine, "gathered", seen)
    frame = spark.createDataFrame(people()).repartition(30)
    assert Records.from_spark(frame, DOMAIN, CODINGS).tally([("sex",)]).exact(("sex",)).sum() == 490
    assert len(parts) == 3


def test_what_refuses_the_records_is_found_in_every_part_of_them(spark):
    domain = Domain({"sex": ["F"], "years": [1]})
    table = pa.table({"sex": ["F", "X", "F", "F"], "years": [1, 1, 1, 2]})
    records = Records.from_spark(spark.createDataFrame(table).repartition(4), domain)
    refusal(
        UnknownLevel,
        "outside their domain in at least one record: 'sex', 'years'",
        lambda: records.tally([("sex",)]),
    )


def test_an_impossible_record_refuses_the_records(spark):
    domain = Domain({"sex": ["F", "M"], "job": ["n", "1"]}, structural_zeros=[{"sex": "F", "job": "1"}])
    for sexes, fine in ((["M", "M", "F"], True), (["M", "F", "F"], False)):
        frame = spark.createDataFrame(pa.table({"sex": sexes, "job": ["1", "1", "n"]}))
        records = Records.from_spark(frame, domain)
        if fine:
            assert records.tally([("sex",)]).exact(("sex",)).tolist() == [1, 2]
        else:
            refusal(ImpossibleRecord, "declares impossible", lambda given=records: given.tally([("sex",)]))


def test_a_frame_without_a_record_is_counted(spark, frame):
    for empty in (frame.where("1 = 0"), frame.limit(0)):
        tally = Records.from_spark(empty, DOMAIN, CODINGS).tally(MARGINS)
        assert not any(tally.exact(margin).any() for margin in MARGINS)


@pytest.mark.parametrize(
    ("column", "kind"),
    [
        ("struct(1 AS x)", "struct"),
        ("array('F')", "array"),
        ("map('F', 1)", "map"),
        ("CAST('F' AS BINARY)", "binary"),
        ("parse_json('1')", "variant"),
        ("INTERVAL '1' DAY", "daytimeinterval"),
        ("INTERVAL '1' YEAR", "yearmonthinterval"),
        ("make_interval(1)", "interval"),
        ("CAST('2024-01-01' AS TIMESTAMP)", "timestamp"),
        ("NULL", "void"),
    ],
)
def test_a_column_of_a_type_without_levels_is_refused_by_its_type(spark, column, kind):
    frame = spark.range(1).selectExpr(f"{column} AS sex")
    words = f"column 'sex' of the Spark frame has the type {kind},"
    refusal(InvalidColumn, words, lambda: Records.from_spark(frame, Domain({"sex": ["F"]})))


def test_weights_that_are_no_numbers_are_refused(spark):
    frame = spark.range(1).selectExpr("'F' AS sex", "DATE'2024-01-01' AS w")
    weights = Weights("w", 2, unit=1)
    refusal(
        InvalidColumn,
        "a type whose values are not numbers",
        lambda: Records.from_spark(frame, Domain({"sex": ["F"]}), weights=weights),
    )


def test_a_missing_and_a_doubled_column_are_refused(spark, frame):
    refusal(InvalidColumn, "no column 'age'", lambda: Records.from_spark(frame, DOMAIN))
    twice = frame.selectExpr("sex", "sex")
    domain = Domain({"sex": ["F", "M"]})
    refusal(InvalidColumn, "more than one column 'sex'", lambda: Records.from_spark(twice, domain))


def test_text_is_compared_by_its_characters_whatever_the_collation(spark):
    frame = spark.createDataFrame(pa.table({"sex": ["F", "f", "M"]}))
    collated = frame.selectExpr("sex COLLATE UTF8_LCASE AS sex")
    records = Records.from_spark(
        collated, Domain({"sex": ["F", "M", "?"]}), {"sex": Coding(unknown="level:?")}
    )
    assert records.tally([("sex",)]).exact(("sex",)).tolist() == [1, 1, 1]


def test_a_stream_and_what_is_no_frame_are_refused(spark):
    stream = spark.readStream.format("rate").load().selectExpr("CAST(value AS STRING) AS sex")
    domain = Domain({"sex": ["F"]})
    refusal(UnreadableSource, "a stream of records has no end", lambda: Records.from_spark(stream, domain))
    refusal(UnreadableSource, "not list", lambda: Records.from_spark([], domain))


def test_a_setting_that_changes_what_levels_mean_is_refused(spark, frame):
    spark.conf.set("spark.sql.parser.escapedStringLiterals", "true")
    try:
        words = "the setting spark.sql.parser.escapedStringLiterals"
        refusal(InvalidAddress, words, lambda: Records.from_spark(frame, DOMAIN, CODINGS))
    finally:
        spark.conf.unset("spark.sql.parser.escapedStringLiterals")


def test_progress_is_told_in_hundredths_from_the_callers_thread(spark, frame, monkeypatch):
    monkeypatch.setattr("tabulary.confidential.engines.spark.jobs.SECONDS_BETWEEN_LOOKS", 0.0)
    told = []
    Records.from_spark(frame.repartition(6), DOMAIN, CODINGS).tally(
        MARGINS, progress=lambda *step: told.append((*step, threading.current_thread()))
    )
    assert {(doing, all_) for doing, _, all_, _ in told} == {("counting", 100)}
    hundredths = [done for _, done, _, _ in told]
    assert hundredths == sorted(hundredths)
    assert hundredths[-1] == 100
    assert {thread for *_, thread in told} == {threading.current_thread()}


def waiting(frame, folder):
    """Return a frame of which each part says that it has begun, and gives its records once there is a gate."""

    def wait(batches):
        for batch in batches:
            (folder / f"began-{uuid4()}").touch()
            while not (folder / "gate").exists():
                time.sleep(0.02)
            yield batch

    return frame.mapInArrow(wait, frame.schema)


def test_an_interrupt_cancels_the_job_and_leaves_the_session(spark, frame, tmp_path, monkeypatch):
    monkeypatch.setattr("tabulary.confidential.engines.spark.jobs.SECONDS_BETWEEN_LOOKS", 0.0)
    records = Records.from_spark(waiting(frame, tmp_path), DOMAIN, CODINGS)
    tracker = spark.sparkContext.statusTracker()

    def interrupted(doing, done, all_):
        if tracker.getActiveJobsIds():
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        records.tally(MARGINS, progress=interrupted)
    assert not tracker.getActiveJobsIds()
    (tmp_path / "gate").touch()
    assert records.tally([("sex",)]).exact(("sex",)).sum() == 490


def test_a_cluster_that_does_not_come_to_it_is_given_up_after_a_while(spark, frame, tmp_path):
    busy = waiting(spark.range(0, 2, 1, numPartitions=2), tmp_path)
    occupant = threading.Thread(target=busy.count)
    occupant.start()
    try:
        # Both cores are taken.
        wait_until(lambda: len(list(tmp_path.glob("began-*"))) == 2, "two parts that wait")
        spark.conf.set(PATIENCE, "1")
        records = Records.from_spark(frame, DOMAIN, CODINGS)
        told = refusal(UnreadableSource, "for 1 seconds", lambda: records.tally(MARGINS))
    finally:
        spark.conf.unset(PATIENCE)
        (tmp_path / "gate").touch()
        occupant.join()
    assert PATIENCE in told
    assert Records.from_spark(frame, DOMAIN, CODINGS).tally([()]).exact(()) == 490


@pytest.mark.parametrize("asked", ["soon", "0", "-1", "nan"])
def test_a_patience_that_is_no_time_is_refused(spark, frame, asked):
    spark.conf.set(PATIENCE, asked)
    try:
        words = f"the setting {PATIENCE} must be a number of seconds above zero"
        refusal(InvalidAddress, words, lambda: Records.from_spark(frame, DOMAIN, CODINGS))
    finally:
        spark.conf.unset(PATIENCE)


def test_an_error_of_spark_is_not_passed_on_in_any_way(spark, frame, capfd, caplog):
    """The value that cannot be cast is quoted by Spark's error, in ANSI mode."""
    bad = frame.selectExpr("* EXCEPT (sex)", "CAST(CAST(name AS INT) AS STRING) AS sex")
    records = Records.from_spark(bad, DOMAIN, CODINGS)
    with caplog.at_level(logging.DEBUG):
        refusal(
            UnreadableSource, "Spark could not do it. Nothing was counted", lambda: records.tally(MARGINS)
        )
    written = capfd.readouterr()
    assert TELLING not in written.out + written.err + caplog.text


def test_executors_of_another_version_are_refused(spark, frame, monkeypatch):
    records = Records.from_spark(frame.coalesce(1), DOMAIN, CODINGS)
    monkeypatch.setattr(spark_worker, "version", lambda package: "0.0.0")
    told = refusal(UnreadableSource, "another version of Tabulary", lambda: records.tally(MARGINS))
    assert "spark.pyspark.python" in told


def test_executors_without_tabulary_are_refused(spark, frame, monkeypatch, tmp_path):
    python = tmp_path / "python"
    (tmp_path / "sitecustomize.py").write_text(WITHOUT_TABULARY)
    python.write_text(f'#!/bin/sh\nPYTHONPATH="{tmp_path}:$PYTHONPATH" exec {sys.executable} "$@"\n')
    python.chmod(0o755)
    monkeypatch.setattr(spark.sparkContext, "pythonExec", str(python))
    records = Records.from_spark(frame.coalesce(1), DOMAIN, CODINGS)
    told = refusal(UnreadableSource, "lacks Tabulary", lambda: records.tally(MARGINS))
    assert "spark.pyspark.python" in told


def test_a_python_that_is_not_there_is_told(spark, frame, monkeypatch, tmp_path):
    monkeypatch.setattr(spark.sparkContext, "pythonExec", str(tmp_path / "nowhere"))
    records = Records.from_spark(frame, DOMAIN, CODINGS)
    refusal(
        UnreadableSource,
        "Python has another version than this one, or is missing",
        lambda: records.tally(MARGINS),
    )


def test_a_python_out_of_memory_is_told_and_the_session_lives_on(spark, frame, monkeypatch):
    domain = Domain({"sex": ["F", "M"], "a": range(5000), "b": range(8000)})
    coded = frame.selectExpr("sex", "1 AS a", "1 AS b").coalesce(1)
    records = Records.from_spark(coded, domain)
    with monkeypatch.context() as limited:
        # What the setting spark.executor.pyspark.memory makes of itself on an executor.
        limited.setitem(spark.sparkContext.environment, "PYSPARK_EXECUTOR_MEMORY_MB", "1100")
        told = refusal(
            UnreadableSource, "out of memory", lambda: records.tally([("a", "b")], max_cells=10**8)
        )
    assert "spark.executor.pyspark.memory" in told
    assert Records.from_spark(frame, DOMAIN, CODINGS).tally([()]).exact(()) == 490


def test_counts_that_the_driver_may_not_collect_are_told(spark, frame):
    conf = spark.sparkContext._jsc.sc().conf()
    conf.set("spark.driver.maxResultSize", "1")
    try:
        records = Records.from_spark(frame, DOMAIN, CODINGS)
        refusal(UnreadableSource, "Raise spark.driver.maxResultSize", lambda: records.tally(MARGINS))
    finally:
        conf.remove("spark.driver.maxResultSize")


def test_closed_records_are_not_counted_and_the_session_of_others_goes_on(spark, frame):
    records = Records.from_spark(frame, DOMAIN, CODINGS)
    records.close()
    refusal(UnreadableSource, "these records were closed", lambda: records.tally(MARGINS))
    assert spark.range(3).count() == 3


def test_records_on_spark_have_no_fingerprint(frame):
    records = Records.from_spark(frame, DOMAIN, CODINGS)
    refusal(InvalidAddress, "no fingerprint", lambda: records.fingerprint(b"key"))


def test_an_address_and_a_path_or_a_table_name_the_records(spark, spark_cluster, tmp_path):
    pq.write_table(people(), tmp_path / "people.parquet")
    path = str(tmp_path / "people.parquet")
    spark.read.parquet(path).createOrReplaceTempView("people")
    for table in (path, str(tmp_path), "people"):
        with Records.from_database(spark_cluster.url, table, DOMAIN, CODINGS) as records:
            assert records.engine == "spark"
            assert records.tally([()]).exact(()) == 490
    assert spark.range(3).count() == 3


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ("census.nobody", "no table or view"),
        ("nobody", "no table or view"),
        ("/nowhere/at/all", "nothing at that path"),
    ],
)
def test_a_table_that_is_not_there_is_told(spark, spark_cluster, table, said):
    told = refusal(UnreadableSource, said, lambda: SparkEngine.connect(spark_cluster.url, table, DOMAIN))
    assert table in told


@pytest.fixture
def page_session(spark):
    """The session, with the table that the how-to page names in its catalog until the end."""
    spark.sql("CREATE DATABASE census")
    people = pa.table({"sex": ["F", "M", "F"], "AGE_YEARS": [3, 40, None]})
    spark.createDataFrame(people).write.saveAsTable("census.people")
    yield spark
    spark.sql("DROP DATABASE census CASCADE")


def test_the_program_of_the_page_releases_the_tables_of_its_frame(page_session):
    (program,) = (text for text in blocks(PAGE, "python") if "from_spark" in text)
    names = {"spark": page_session}
    exec(compile(program, PAGE, "exec"), names)
    assert names["records"].tally([("age",)]).exact(("age",)).tolist() == [1, 1, 0]
    assert names["release"]["sex", "age"].shape == (2, 3)


def test_a_file_that_is_no_parquet_file_is_told(spark, spark_cluster, tmp_path):
    (tmp_path / "people.parquet").write_text(TELLING)
    refusal(
        UnreadableSource,
        "not a Parquet file",
        lambda: SparkEngine.connect(spark_cluster.url, str(tmp_path), DOMAIN),
    )


@pytest.mark.parametrize(
    "url",
    [
        "spark://local[2]",
        "spark://host",
        "spark://host:7077/path",
        "spark://user:secret@host:7077",
        "spark://host:7077?password=secret",
        "spark://",
        "local[2]",
    ],
)
def test_an_address_that_is_no_master_is_refused_and_not_repeated(url):
    told = refusal(
        InvalidAddress,
        "a Spark master is spark://host:7077",
        lambda: SparkEngine.connect(url, "people", DOMAIN),
    )
    assert "secret" not in told


def test_another_master_than_that_of_the_session_is_refused(spark):
    told = refusal(
        UnreadableSource,
        "on another master than elsewhere:7077",
        lambda: SparkEngine.connect("spark://elsewhere:7077", "people", DOMAIN),
    )
    assert "from_spark" in told


def test_a_master_that_does_not_answer_is_told_at_once(monkeypatch):
    monkeypatch.setattr("pyspark.SparkContext._active_spark_context", None)
    refusal(
        UnreadableSource,
        "no Spark master answers at 127.0.0.1:1",
        lambda: SparkEngine.connect("spark://127.0.0.1:1", "people", DOMAIN),
    )
