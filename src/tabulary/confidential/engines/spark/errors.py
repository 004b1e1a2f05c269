"""Our messages for Spark's errors: the kind of problem and the remedy, never Spark's own text."""

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from threading import get_ident

from tabulary.confidential.engines.spark.worker import FAILED, OTHER_VERSION, OUT_OF_MEMORY


@dataclass(frozen=True)
class Trouble:
    """What stood in the way, what to do about it, and the pattern that identifies it in Spark's text."""

    said: str
    remedy: str
    shown_by: str


_INSTALL = (
    "Install the same version of tabulary[spark] on every worker, and name that Python in the setting "
    "spark.pyspark.python."
)
_MEMORY = (
    "Give executors more memory (spark.executor.memory for Spark, spark.executor.memoryOverhead and "
    "spark.executor.pyspark.memory for Python), or ask for fewer or smaller margins at a time."
)

ENDED = Trouble(
    "the Spark session has ended, or its cluster is no longer available",
    "Start a session on a cluster that is running, and count again.",
    "SparkContext was shut down|stopped SparkContext|SparkContext is stopped|Answer from Java side|Master removed|"
    "Connection refused|Py4JNetworkError|masters are unresponsive|SESSION_CLOSED|"
    "'NoneType' object has no attribute 'sc'",
)

# The first match is used, so a cause must come before its consequences.
_TROUBLES = (
    Trouble(
        "the executors' Python has another version of Tabulary than this one",
        _INSTALL,
        f"{OTHER_VERSION}|Can't get attribute 'Task'|No module named 'tabulary\\.",
    ),
    Trouble(
        "the executors' Python lacks Tabulary, or a package that it needs",
        _INSTALL,
        "ModuleNotFoundError|PackageNotFoundError|No module named",
    ),
    Trouble(
        "the executors' Python has another version than this one, or is missing",
        _INSTALL,
        "PYTHON_VERSION_MISMATCH|Cannot run program",
    ),
    Trouble(
        "an executor ran out of memory",
        _MEMORY,
        f"{OUT_OF_MEMORY}|OutOfMemory|MemoryError|UNABLE_TO_ACQUIRE_MEMORY|code 52\\b|code 137\\b|malloc of size|"
        "Container killed",
    ),
    Trouble(
        "the counts are larger than Spark lets its driver collect",
        "Raise spark.driver.maxResultSize and spark.driver.memory, or ask for fewer margins at a time.",
        "maxResultSize",
    ),
    Trouble(
        "executors, or their Python processes, were lost more often than Spark tries again. A common cause "
        "is too little memory",
        f"The logs of the executors say why. {_MEMORY}",
        "ExecutorLostFailure|RejectedExecution|worker exited unexpectedly|[Ww]orker lost|FetchFailed",
    ),
    Trouble(
        "Spark's catalog has no table or view of that name",
        "Name it as Spark's SQL does, as in 'census.people', or give the path of Parquet files.",
        "TABLE_OR_VIEW_NOT_FOUND|SCHEMA_NOT_FOUND|REQUIRES_SINGLE_PART_NAMESPACE|PARSE_SYNTAX_ERROR|PARSE_EMPTY",
    ),
    Trouble(
        "the cluster finds nothing at that path",
        "Give the path of Parquet files that this machine and the workers can both read.",
        "PATH_NOT_FOUND|UNABLE_TO_INFER_SCHEMA|FileNotFound|No such file",
    ),
    Trouble(
        "Spark is not allowed to read it",
        "Give the account that Spark runs under the right to read it.",
        "AccessControlException|AccessDenied|Permission denied|INSUFFICIENT_PERMISSIONS",
    ),
    Trouble(
        "a file of it is damaged, or is not a Parquet file",
        "Repair or remove that file; the log of Spark's driver names it.",
        "FAILED_READ_FILE|CANNOT_READ_FILE|is not a Parquet file|Could not read footer",
    ),
    Trouble(
        "Spark reads the names of two of its columns as the same",
        "Set spark.sql.caseSensitive to true, or rename one of them.",
        "COLUMN_ALREADY_EXISTS|AMBIGUOUS_",
    ),
    ENDED,
    Trouble(
        "it was cancelled on the cluster",
        "Count again, unless somebody had a reason to cancel it.",
        "cancelled|CANCELED|CANCELLED",
    ),
    Trouble("the counting code failed on an executor", "Please report it, with the plan.", FAILED),
)

_OTHER = Trouble("Spark could not do it", "The logs of Spark's driver and executors say why.", "")

# PySpark writes the text of errors to standard error under these names, and everything from Java, results and
# errors, to the log handlers of these other names.
_LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
_LISTENERS = ("py4j.clientserver", "py4j.java_gateway")


def trouble_of(problem: BaseException) -> Trouble:
    """Return what may be said about an error; the error itself is then forgotten."""
    text = type(problem).__name__
    # To show an error, PySpark asks a Java process that may have ended.
    with suppress(Exception):
        text += f" {problem}"
    return next((each for each in _TROUBLES if re.search(each.shown_by, text)), _OTHER)


@contextmanager
def unheard() -> Iterator[None]:
    """Stop PySpark from logging what this thread receives from Java: an error may quote a record."""
    from pyspark.logger import PySparkLogger

    here = get_ident()

    def elsewhere(record: logging.LogRecord) -> bool:
        return record.thread != here

    loggers = [*map(PySparkLogger.getLogger, _LOGGERS), *map(logging.getLogger, _LISTENERS)]
    for logger in loggers:
        logger.addFilter(elsewhere)
    try:
        yield
    finally:
        for logger in loggers:
            logger.removeFilter(elsewhere)
