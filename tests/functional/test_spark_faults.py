"""What becomes of a count when parts of a Spark cluster are lost, and what is left of the records in its logs."""

import os
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tabulary.confidential.coding import Coding
from tabulary.confidential.records import Records
from tabulary.core.domain import Domain
from tabulary.errors import UnknownLevel, UnreadableSource
from tests.waiting import wait_until

pytestmark = pytest.mark.slow

PROJECT = Path(__file__).parents[2]
DOMAIN = Domain({"sex": ["F", "M"], "age": ["0-14", "15-64", "65+"]})
CODINGS = {"age": Coding(bins=[0, 15, 65])}
MARGINS = [(), ("sex",), ("sex", "age")]
EXPECTED = [[150, 500, 350], [150, 500, 350]]


def people(spark):
    """A thousand of each sex, in four parts."""
    ages = pa.array([age for age, many in ((10, 150), (20, 500), (70, 350)) for _ in range(many)])
    sexes = pa.table({"sex": ["F"] * 1000 + ["M"] * 1000, "age": pa.concat_arrays([ages, ages])})
    return spark.createDataFrame(sexes).repartition(4)


def gated(frame, folder):
    """Return a frame of which each part says that it has begun to be read, gives half of it, and waits for a gate."""

    def wait(batches):
        for batch in batches:
            half = batch.num_rows // 2
            yield batch.slice(0, half)
            (folder / f"began-{uuid4()}").touch()
            while not (folder / "gate").exists():
                time.sleep(0.02)
            yield batch.slice(half)

    return frame.mapInArrow(wait, frame.schema)


def when(condition, action):
    """Do something in another thread as soon as a condition holds."""

    def run():
        try:
            wait_until(condition, "what the job was to do")
        finally:
            action()

    thread = threading.Thread(target=run)
    thread.start()
    return thread


def test_an_executor_lost_in_the_middle_changes_no_count(spark, spark_cluster, tmp_path):
    killed = []

    def kill():
        killed.append(spark_cluster.kill_executor())
        (tmp_path / "gate").touch()

    began = lambda: len(list(tmp_path.glob("began-*"))) >= 2  # noqa: E731
    killer = when(began, kill)
    with Records.from_spark(gated(people(spark), tmp_path), DOMAIN, CODINGS) as records:
        tally = records.tally(MARGINS)
    killer.join()
    assert killed
    assert killed[0] not in [executor.pid for executor in spark_cluster.executors()]
    # Parts that had begun on the lost executor began again.
    assert len(list(tmp_path.glob("began-*"))) > 4
    assert tally.exact(("sex", "age")).tolist() == EXPECTED
    assert tally.exact(()) == 2000


def test_no_value_of_a_record_is_in_the_logs_of_the_cluster(spark, spark_cluster):
    telling = "Hrdlickova-Quist"
    frame = people(spark).selectExpr(f"'{telling}' AS name", "sex", "age")
    with Records.from_spark(frame, DOMAIN, CODINGS) as records:
        records.tally(MARGINS)
    for column in ("name", "name || sex"):
        # Neither a level nor a number, where both are wanted.
        strange = frame.selectExpr(f"{column} AS sex", f"{column} AS age", "name")
        with (
            Records.from_spark(strange, DOMAIN, CODINGS) as records,
            pytest.raises(UnknownLevel, match="'sex', 'age'"),
        ):
            records.tally(MARGINS)
    assert "tabulary" in spark_cluster.logs()
    # The driver of a test names its own literals in plans; executors and workers see records.
    written = [*spark_cluster.folder.glob("work/*/*/*/std*"), *spark_cluster.folder.glob("logs/worker-*")]
    assert written
    assert not any(telling in path.read_text(errors="replace") for path in written)


def test_a_session_that_has_been_given_no_executor_says_so(spark, spark_cluster, tmp_path):
    """All cores are taken by the session of this process; another one gets none."""
    pq.write_table(pa.table({"sex": ["F"]}), tmp_path / "people.parquet")
    (tmp_path / "spark-defaults.conf").write_text(
        "spark.tabulary.patience 2\nspark.driver.host 127.0.0.1\nspark.driver.bindAddress 127.0.0.1\n"
        f"spark.ui.enabled false\nspark.local.dir {tmp_path}\nspark.sql.warehouse.dir {tmp_path}\n"
    )
    told = ran(
        """
        from tabulary import Domain, Records, errors
        try:
            Records.from_database(sys.argv[1], sys.argv[2], Domain({"sex": ["F"]}))
        except errors.UnreadableSource as refused:
            print(refused, refused.__cause__, refused.__context__)
        from pyspark import SparkContext
        print(SparkContext._active_spark_context)
        """,
        spark_cluster.url,
        str(tmp_path),
        environment=spark_cluster.environment | {"SPARK_CONF_DIR": str(tmp_path)},
    )
    assert "for 2 seconds" in told
    assert told.endswith("None None\nNone\n")


@pytest.mark.audit
def test_an_executor_out_of_memory_is_told_and_the_session_lives_on(spark):
    hungry = people(spark).selectExpr(
        "CAST(size(sequence(1, 400000000 + length(sex))) AS STRING) AS sex", "age"
    )
    with (
        Records.from_spark(hungry, DOMAIN, CODINGS) as records,
        pytest.raises(UnreadableSource, match=r"out of memory|too little memory") as caught,
    ):
        records.tally(MARGINS)
    assert caught.value.__cause__ is None
    assert "spark.executor.memory" in str(caught.value)
    with Records.from_spark(people(spark), DOMAIN, CODINGS) as records:
        assert records.tally(MARGINS).exact(("sex", "age")).tolist() == EXPECTED


@pytest.mark.audit
def test_a_worker_lost_in_the_middle_changes_no_count(tmp_path):
    """On a cluster of its own, since no worker follows the lost one."""
    told = ran(
        """
        from pathlib import Path
        from examples.spark.cluster import LocalCluster
        from tests.functional.test_spark_faults import *

        folder = Path(sys.argv[1])
        with LocalCluster(**{"spark.executorEnv.PYTHONPATH": sys.argv[2]}) as cluster, cluster.session() as spark:
            def kill():
                cluster.kill_worker()
                (folder / "gate").touch()
            killer = when(lambda: len(list(folder.glob("began-*"))) >= 2, kill)
            with Records.from_spark(gated(people(spark), folder), DOMAIN, CODINGS) as records:
                tally = records.tally(MARGINS)
            killer.join()
            assert cluster.registered == 1 or len(cluster.executors()) == 1
            print(tally.exact(("sex", "age")).tolist(), int(tally.exact(())))
        """,
        str(tmp_path),
        str(PROJECT),
    )
    assert told == f"{EXPECTED} 2000\n"


@pytest.mark.audit
def test_a_session_that_was_started_for_the_records_is_stopped_with_them(tmp_path):
    pq.write_table(pa.table({"sex": ["F", "M", "F"]}), tmp_path / "people.parquet")
    told = ran(
        """
        import os, signal
        from examples.spark.cluster import LocalCluster
        from pyspark import SparkContext
        from tabulary import Domain, Records

        with LocalCluster() as cluster:
            os.environ.update(cluster.environment)
            # As on any cluster, the settings name the workers' Python.
            python = os.environ.pop("PYSPARK_PYTHON")
            with open(os.path.join(os.environ["SPARK_CONF_DIR"], "spark-defaults.conf"), "a") as settings:
                settings.write(f"spark.pyspark.python {python}\\n")
            before = signal.getsignal(signal.SIGINT)
            domain = Domain({"sex": ["F", "M"]})
            for _ in range(2):
                with Records.from_database(cluster.url, sys.argv[1], domain) as records:
                    print(records.tally([["sex"]]).exact(("sex",)).tolist())
                assert SparkContext._active_spark_context is None
            assert signal.getsignal(signal.SIGINT) is before
        """,
        str(tmp_path),
    )
    assert told == "[2, 1]\n[2, 1]\n"


def ran(program, *arguments, environment=None):
    """Return what a program prints in a process of its own: a process has one session at a time."""
    done = subprocess.run(
        [sys.executable, "-c", "import sys\n" + textwrap.dedent(program), *arguments],
        cwd=PROJECT,
        env=os.environ | (environment or {}) | {"PYTHONPATH": str(PROJECT)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout
