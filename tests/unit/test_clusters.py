import os
import re
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

import psutil
import pyarrow as pa
import pytest

from examples.spark import cluster as clusters
from examples.spark.cluster import ClusterFailed, LocalCluster, NoJava, check_java
from tests.clusters import GROUP, is_grouped, reaches_the_cluster, refuse_a_second
from tests.waiting import PATIENCE, has_ended, wait_until

PROJECT = Path(__file__).parents[2]


def test_one_process_has_all_tests_of_the_cluster(request, spark_cluster):
    # By its name too: a test that is called for Spark reaches it, by whatever way it asks for it.
    reaching = [
        item
        for item in request.session.items
        if re.search(r"[\[-]spark[\]-]", item.nodeid)
        or {"spark", "spark_cluster"} & {*getattr(item, "fixturenames", ())}
    ]
    assert request.node in reaching
    assert [item.nodeid for item in reaching if not is_grouped(item)] == []
    # Groups can be lost without a word; then each process starts a cluster of its own.
    grouped = request.config.getoption("loadgroup", default=False)
    assert {item.nodeid.endswith("@spark") for item in reaching} == {grouped}


def test_a_second_cluster_of_a_run_is_refused(tmp_path):
    refuse_a_second(tmp_path, "gw0")
    refuse_a_second(tmp_path, "gw0")
    with pytest.raises(
        pytest.fail.Exception, match="process gw0 of this run has a Spark cluster, and gw1 would"
    ):
        refuse_a_second(tmp_path, "gw1")


@pytest.mark.parametrize("place", [GROUP, "here"])
def test_a_parameter_that_names_the_cluster_puts_a_test_into_the_group(request, place):
    assert reaches_the_cluster(request.node) == is_grouped(request.node) == (place == GROUP)


def test_the_work_is_shared_by_the_executors_of_both_workers(spark, spark_cluster):
    def under_whom(batches):
        for _ in batches:
            yield pa.record_batch({"process": [each.pid for each in psutil.Process().parents()]})

    found = spark.range(4, numPartitions=4).mapInArrow(under_whom, "process long").toArrow()
    executors = {each.pid for each in spark_cluster.executors()}
    assert spark_cluster.registered == len(executors) == 2
    assert executors <= set(found["process"].to_pylist())


def test_nothing_of_a_cluster_listens_beyond_this_machine(spark, spark_cluster):
    spark.range(4, numPartitions=4).mapInArrow(_unchanged, "id long").toArrow()
    # A driver, a master, two workers and their executors.
    wait_until(lambda: _of_mine(psutil.Process.name).count("java") == 6, "six processes of Java")
    listening = [
        connection.laddr.ip
        for connections in _of_mine(psutil.Process.net_connections)
        for connection in connections
        if connection.status == psutil.CONN_LISTEN
    ]
    assert listening
    assert {address.removeprefix("::ffff:") for address in listening} == {"127.0.0.1"}


def test_what_a_session_writes_is_in_the_folder_of_its_cluster(spark, spark_cluster):
    before = set(Path.cwd().iterdir())
    spark.range(3).write.saveAsTable("kept")
    assert spark.table("kept").count() == 3
    assert list((spark_cluster.folder / "warehouse" / "kept").glob("*.parquet"))
    spark.sql("DROP TABLE kept")
    assert set(Path.cwd().iterdir()) == before


def test_what_a_function_says_on_the_cluster_is_in_the_logs(spark, spark_cluster):
    def speak(batches):
        print("the secret of batch 4711", file=sys.stderr)
        yield from batches

    spark.range(1).mapInArrow(speak, "id long").toArrow()
    wait_until(lambda: "the secret of batch 4711" in spark_cluster.logs(), "the words in the logs")


def test_a_job_outlives_an_executor_that_is_killed(spark, spark_cluster, tmp_path):
    def waiting(batches):
        from pyspark import TaskContext

        task = TaskContext.get()
        (tmp_path / f"{task.partitionId()}-{task.attemptNumber()}").touch()
        while not (tmp_path / "go").exists():
            time.sleep(0.02)
        yield from batches

    found = []
    frame = spark.range(100, numPartitions=2).mapInArrow(waiting, "id long")
    job = threading.Thread(target=lambda: found.extend(frame.toArrow()["id"].to_pylist()))
    job.start()
    # Each of the two has one core: when both tasks have begun, whichever is killed has one.
    wait_until(lambda: len(list(tmp_path.iterdir())) == 2, "both tasks to begin")
    killed = spark_cluster.kill_executor()
    (tmp_path / "go").touch()
    job.join(PATIENCE)
    assert sorted(found) == list(range(100))
    assert len(list(tmp_path.glob("*-1"))) == 1
    wait_until(lambda: len(spark_cluster.executors()) == 2, "another executor")
    assert killed not in {each.pid for each in spark_cluster.executors()}


def test_a_process_has_one_session(spark, spark_cluster):
    with pytest.raises(RuntimeError, match="Stop it first"):
        spark_cluster.session()
    assert spark.range(2).count() == 2


@pytest.mark.audit
def test_a_worker_that_is_killed_leaves_the_others(tmp_path):
    with LocalCluster(workers=2, folder=tmp_path) as cluster:
        killed = cluster.kill_worker()
        wait_until(lambda: not psutil.pid_exists(killed), "the worker to end")
        wait_until(lambda: cluster.registered == 1, "the master to notice")
        with pytest.raises(ClusterFailed, match="a session starts them"):
            cluster.kill_executor()
    # A folder that was given stays, with all that was written.
    assert "Registering worker" in cluster.logs()


@pytest.mark.audit
def test_a_cluster_that_stops_leaves_the_session_of_another(spark):
    with LocalCluster(workers=1) as other:
        folder = other.folder
    assert not folder.exists()
    assert spark.range(2).count() == 2


@pytest.mark.slow
def test_a_cluster_ends_with_the_process_that_started_it(tmp_path):
    command = [sys.executable, "-m", "examples.spark.cluster", "--workers", "1"]
    place = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen(command, cwd=PROJECT, env=place, stdout=subprocess.PIPE, text=True) as keeper:
        assert keeper.stdout.readline().startswith("spark://127.0.0.1:")
        started = psutil.Process(keeper.pid).children(recursive=True)
        assert sum(each.name() == "java" for each in started) == 2
        keeper.send_signal(signal.SIGKILL)
        wait_until(lambda: all(map(has_ended, started)), "the cluster to end")


def test_a_missing_java_is_an_error_that_says_what_to_install(monkeypatch):
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setattr(clusters.shutil, "which", lambda name: None)
    with pytest.raises(NoJava, match="apt-get install --yes openjdk-17-jre-headless"):
        check_java()


@pytest.mark.parametrize(
    "said", ['openjdk version "11.0.21" 2023-10-17', 'java version "1.8.0_392"', "what?"]
)
def test_an_old_java_is_an_error_that_says_what_to_install(monkeypatch, tmp_path, said):
    _java(tmp_path, said)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(NoJava, match="apt-get install --yes openjdk-17-jre-headless"):
        check_java()


def test_a_cluster_that_does_not_start_says_what_its_processes_said(monkeypatch, tmp_path):
    _java(tmp_path, 'openjdk version "17.0.1"')
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    before = set(psutil.Process().children())
    with pytest.raises(ClusterFailed, match=r"the master is running(.|\n)*version .17"):
        LocalCluster(folder=tmp_path / "cluster").start()
    assert all(map(has_ended, set(psutil.Process().children()) - before))


def _java(home, said):
    program = home / "bin" / "java"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\necho '{said}' >&2\nexit 1\n")
    program.chmod(0o755)


def _of_mine(told):
    """Return what is told of each process that this one has started and that does not end meanwhile."""
    found = []
    for each in psutil.Process().children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            found.append(told(each))
    return found


def _unchanged(batches):
    yield from batches
