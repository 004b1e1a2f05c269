"""A real Spark cluster of two workers on this machine, and a session on it, for all tests of one process."""

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


@pytest.fixture(scope="session")
def spark_cluster() -> Iterator[LocalCluster]:
    """A cluster for all tests of one worker. One that loses an executor has another; a lost worker stays lost."""
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
