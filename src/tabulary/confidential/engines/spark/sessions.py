"""A session on the Spark master at an address."""

import os
import re
import signal
import socket
import threading
from importlib.util import find_spec
from typing import TYPE_CHECKING

from tabulary.confidential.engines.spark.errors import trouble_of, unheard
from tabulary.errors import InvalidAddress, MissingExtra, UnreadableSource

if TYPE_CHECKING:
    import pyspark.sql

_SECONDS_TO_CONNECT = 10.0

# One master, or several masters with one leader. No user and no password: a standalone master knows neither.
_MASTER = r"(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+):([0-9]{1,5})"
_ADDRESS = re.compile(rf"spark://{_MASTER}(,{_MASTER})*")

_JAVA = "Install Java 17 or newer, and set JAVA_HOME to its folder if it is not on the path."


def check_spark() -> None:
    """Refuse where the packages for Spark are not installed."""
    if any(find_spec(package) is None for package in ("ibis", "pyspark")):
        raise MissingExtra(
            "Spark's package for Python is not installed. Install it: pip install 'tabulary[spark]'."
        )


def masters(url: str) -> tuple[tuple[str, int], ...]:
    """Return host and port of each master that an address names.

    >>> masters("spark://one:7077,two:7077")
    (('one', 7077), ('two', 7077))
    """
    if not _ADDRESS.fullmatch(url):
        # The address is not repeated: the part before an @ may be a password.
        raise InvalidAddress(
            "the address of a Spark master is spark://host:7077, without user, password or path. Nothing "
            "was read. For records on another kind of cluster, count a frame of your own session: "
            "Records.from_spark(frame, ...)."
        )
    return tuple((host.strip("[]"), int(port)) for host, port in re.findall(_MASTER, url))


def session_of(url: str) -> tuple["pyspark.sql.SparkSession", bool]:
    """Return a session on the master, and whether it was started here: a process has one session at a time.

    Its settings are those of `spark-defaults.conf` in SPARK_CONF_DIR, as for every program that uses Spark.
    """
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    places = masters(url)
    shown = ", ".join(f"{host}:{port}" for host, port in places)
    there = SparkContext._active_spark_context
    if there is not None:
        if there.master != url:
            raise UnreadableSource(
                f"this process already has a Spark session on another master than {shown}, and can have "
                "only one. Nothing was counted. Stop that session, or count a frame of it: "
                "Records.from_spark(frame, ...)."
            )
        return SparkSession(there), False
    # Spark itself would try for a minute.
    if not any(_answers(host, port) for host, port in places):
        raise UnreadableSource(
            f"no Spark master answers at {shown}. Nothing was counted. Check that one runs there, and that "
            "this machine may reach it."
        )
    return _started(url, shown), True


def _started(url: str, shown: str) -> "pyspark.sql.SparkSession":
    from pyspark import SparkContext
    from pyspark.errors import PySparkRuntimeError
    from pyspark.sql import SparkSession

    builder = (
        SparkSession.builder.master(url).appName("tabulary").config("spark.ui.showConsoleProgress", "false")
    )
    interrupted = signal.getsignal(signal.SIGINT)
    no_java = False
    remedy = ""
    try:
        with unheard():
            return _with_its_python(builder.getOrCreate())
    except PySparkRuntimeError as problem:
        no_java = problem.getCondition() in ("JAVA_GATEWAY_EXITED", "JAVA_HOME_NOT_SET")
    except Exception as problem:
        remedy = trouble_of(problem).remedy
    finally:
        # Spark's reaction to Ctrl-C cancels everything and fails after the end of the session; here the waiting
        # caller cancels its own job.
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, interrupted)
    if SparkContext._active_spark_context is not None:
        # The remains of the session would block the next one.
        SparkContext._active_spark_context.stop()
    if no_java:
        raise MissingExtra(f"Spark needs Java, and none could be started. Nothing was counted. {_JAVA}")
    raise UnreadableSource(
        f"no session could be started on the Spark master at {shown}. Nothing was counted. {remedy}".rstrip()
    )


def _with_its_python(session: "pyspark.sql.SparkSession") -> "pyspark.sql.SparkSession":
    """Let the workers run the Python of the settings: without spark-submit, Spark looks only at the environment."""
    context = session.sparkContext
    if "PYSPARK_PYTHON" not in os.environ:
        context.pythonExec = context.getConf().get("spark.pyspark.python", context.pythonExec)
    return session


def _answers(host: str, port: int) -> bool:
    try:
        socket.create_connection((host, port), _SECONDS_TO_CONNECT).close()
    except (OSError, OverflowError, UnicodeError):
        return False
    return True
