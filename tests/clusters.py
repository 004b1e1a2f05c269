"""A real Spark cluster of two workers on this machine, and a session on it, for all tests of one process.

A cluster takes gigabytes, so a run of the tests has one, whatever the number of processes. All tests that reach it are
therefore in one group, which pytest-xdist sends to one process: see `reaches_the_cluster` and `refuse_a_second`.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from examples.spark.cluster import LocalCluster, NoJava, check_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SETTINGS = {
    # Where the cluster's own processes find the functions of a test.
    "spark.executorEnv.PYTHONPATH": str(Path(__file__).parents[1]),
    # A test is over before code that is compiled twice pays: half the processor time of a start.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
    "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1",
}


GROUP = "spark"
"""The group of all tests that reach the cluster, and the value of the parameter that sends a test there."""


def reaches_the_cluster(item: pytest.Item) -> bool:
    """Whether a test reaches the cluster: it has the fixture, or a parameter that names the cluster.

    The second kind asks for the fixture while it runs, where only that parameter says so beforehand.
    """
    parameters = item.callspec.params if hasattr(item, "callspec") else {}
    return "spark_cluster" in getattr(item, "fixturenames", ()) or any(
        isinstance(value, str) and value == GROUP for value in parameters.values()
    )


def is_grouped(item: pytest.Item) -> bool:
    """Whether a test is in the group that one process runs."""
    return [mark.args for mark in item.iter_markers("xdist_group")] == [(GROUP,)]


def refuse_a_second(place: Path, process: str) -> None:
    """Note in a folder that all processes of a run share that this one starts the cluster; fail if another one did."""
    note = place / "spark-cluster"
    try:
        with note.open("x") as file:
            file.write(process)
    except FileExistsError:
        starter = note.read_text()
        if starter != process:
            pytest.fail(
                f"process {starter} of this run has a Spark cluster, and {process} would start a second one. The test "
                f'that asks for it is outside the group: give it the fixture `spark`, or a parameter "{GROUP}".'
            )


@pytest.fixture(scope="session")
def spark_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    """A cluster for all tests of one run. One that loses an executor has another; a lost worker stays lost."""
    if worker := os.environ.get("PYTEST_XDIST_WORKER"):
        # Each process has a folder of its own inside that of the run.
        refuse_a_second(tmp_path_factory.getbasetemp().parent, worker)
    try:
        check_java()
    except NoJava as missing:
        pytest.skip(str(missing))
    with LocalCluster(**_SETTINGS) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def spark(spark_cluster: LocalCluster) -> Iterator["SparkSession"]:
    """The session on that cluster, and the only one of this process: a test that needs another starts a process."""
    with pytest.MonkeyPatch.context() as patch:
        _close_what_pyspark_leaves_open(patch)
        with spark_cluster.session() as session:
            yield session


def _close_what_pyspark_leaves_open(patch: pytest.MonkeyPatch) -> None:
    # Results come over a socket that is left to the garbage collector, whose warning would fail a test. One that is
    # closed while a file reads from it closes with the file.
    from pyspark import util

    connect = util.local_connect_and_auth

    def connect_and_close(*arguments):
        file, socket = connect(*arguments)
        socket.close()
        return file, socket

    patch.setattr(util, "local_connect_and_auth", connect_and_close)
