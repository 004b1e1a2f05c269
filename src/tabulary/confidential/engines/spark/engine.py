"""The engine that counts on a Spark cluster: one pass over the records for any number of margins.

Spark reads and recodes in its own compiled code and packs the codes of a record into few words. The Python process
of each executor unpacks, validates and counts them as the compiled engine does, and sends on only blocks of
counters.
"""

import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from tabulary.confidential.coding import Coding, resolve_all
from tabulary.confidential.cover import cover
from tabulary.confidential.dropping import dropping
from tabulary.confidential.engines import Counts
from tabulary.confidential.engines.spark.jobs import Jobs
from tabulary.confidential.engines.spark.sessions import check_spark, session_of
from tabulary.confidential.validation import RecordFaults, clipping_warning
from tabulary.confidential.weights import Weights
from tabulary.core.domain import Domain, Margin
from tabulary.core.progress import Progress
from tabulary.errors import InvalidAddress, UnreadableSource, WeightsClipped

if TYPE_CHECKING:
    import pyspark.sql

    from tabulary.confidential.engines.spark.worker import Count

# The number of frames from `count` to the caller of `Records.tally`, where the warning points.
_TO_THE_CALLER = 3

_ESCAPED = "spark.sql.parser.escapedStringLiterals"

_COUNTER_BYTES = 8

# What a task sends besides its counters.
TASK_BYTES = 1 << 10

# Every task has its own counters, so ten thousand small files must not make ten thousand tasks. This many tasks are
# always allowed, because a cluster may grow while it works; more are allowed as long as all counters fit in these
# bytes.
TASKS = 200
TASKS_A_CORE = 4
CLUSTER_BYTES = 1 << 32

# Up to this many bytes, the driver adds the counters of all tasks. More bytes are first added on the cluster, so
# that each counter comes to the driver once.
DRIVER_BYTES = 1 << 26


class SparkEngine:
    """The records of a Spark frame, counted on its cluster; see `Engine`.

    Every tally reads the frame again, each part once: faults of the records are found then. If an executor is lost,
    its part is counted again from the beginning and its earlier counts are lost, so every record counts once. A
    frame that changes when it is read again, for example one with `rand`, is not a set of records.
    """

    name = "spark"

    def __init__(
        self,
        frame: "pyspark.sql.DataFrame",
        domain: Domain,
        codings: Mapping[str, Coding] | None = None,
        *,
        weights: Weights | None = None,
    ) -> None:
        check_spark()
        from pyspark.sql import DataFrame

        if not isinstance(frame, DataFrame):
            raise UnreadableSource(f"from_spark reads a Spark DataFrame, not {type(frame).__name__}.")
        self._open(Jobs(frame.sparkSession, "the Spark frame"), frame, domain, codings, weights)

    @classmethod
    def connect(
        cls,
        url: str,
        table: str,
        domain: Domain,
        codings: Mapping[str, Coding] | None = None,
        *,
        weights: Weights | None = None,
    ) -> Self:
        """Return the records of a table, by its name in Spark's catalog, or of Parquet files, by their path.

        `url` is spark://host:7077. If the process already has a session on that master, it is used; otherwise one
        is started, and `close` stops it.
        """
        check_spark()
        resolve_all(domain, codings)
        session, started = session_of(url)
        engine = cls.__new__(cls)
        try:
            jobs = Jobs(session, f"{table!r} on Spark")
            by_path = "/" in table or table.endswith(".parquet")
            frame = jobs.do(lambda: session.read.parquet(table) if by_path else session.table(table))
            engine._open(jobs, frame, domain, codings, weights, stops=started)
        except BaseException:
            if started:
                session.stop()
            raise
        return engine

    def _open(
        self,
        jobs: Jobs,
        frame: "pyspark.sql.DataFrame",
        domain: Domain,
        codings: Mapping[str, Coding] | None,
        weights: Weights | None,
        *,
        stops: bool = False,
    ) -> None:
        # Ibis takes a moment to load.
        from tabulary.confidential.engines.spark.codes import Packed

        self.domain = domain
        self.weights = weights
        self._recodings = resolve_all(domain, codings)
        self.drops = dropping(codings)
        self._jobs = jobs
        self._stops = stops
        schema, streaming, escaped = jobs.do(lambda: _seen(frame))
        if streaming:
            raise UnreadableSource("a stream of records has no end. Write it to a table, and count that.")
        if escaped == "true":
            raise InvalidAddress(
                f"the setting {_ESCAPED} makes Spark misread a level with a backslash. Nothing was counted. "
                "Set it to false, which is the default, in the session that counts."
            )
        records = Packed(schema, self._recodings, weights)
        self._records: Any = jobs.do(lambda: records.of(frame))

    def count(self, margins: Sequence[Margin], *, progress: Progress | None = None) -> Counts:
        """Return the exact counts of each margin, or the exact sums of the weights; see `Engine.count`."""
        from tabulary.confidential.counting import project, split
        from tabulary.confidential.engines.spark.worker import Count

        if self._records is None:
            raise UnreadableSource("these records were closed. Open them again to count them.")
        covering = cover(self.domain, margins)
        counted = tuple(larger.margin for larger in covering)
        cells = sum(map(self.domain.cells, counted))
        frame = self._counted(Count(self.domain, self._recodings, self.weights, counted), cells)
        found, totals = gathered(self._jobs.do(frame.toArrow, progress), cells)
        found.check(self.domain, self._recodings, self.weights)
        if progress is not None:
            progress("counting", 100, 100)
        if self.weights is not None and found.clipped:
            warnings.warn(clipping_warning(self.weights), WeightsClipped, stacklevel=_TO_THE_CALLER)
        return project(self.domain, covering, margins, split(self.domain, counted, totals))

    def fingerprint(self, key: bytes) -> str:
        """Refuse: the records are not here."""
        raise InvalidAddress(
            "records on Spark have no fingerprint: it needs all records, and they do not leave their "
            "cluster. Nothing was read. Write them to Parquet files, and open those with "
            "Records.from_file(...)."
        )

    def close(self) -> None:
        """Release the frame; stop the session if it was started for these records."""
        self._records = None
        if self._stops:
            self._stops = False
            self._jobs.session.stop()

    def _counted(self, work: "Count", cells: int) -> Any:
        """Return a frame of findings and of blocks of counters, not yet added up."""
        from tabulary.confidential.engines.spark.worker import SCHEMA, Merge, SparkTask

        bytes_a_task = TASK_BYTES + _COUNTER_BYTES * cells
        tasks = max(TASKS, TASKS_A_CORE * self._jobs.cores)
        by_the_driver = tasks * bytes_a_task <= DRIVER_BYTES
        tasks = max(tasks, (DRIVER_BYTES if by_the_driver else CLUSTER_BYTES) // bytes_a_task)

        def planned() -> Any:
            blocks = self._records.coalesce(tasks).mapInArrow(SparkTask(work), SCHEMA)
            return (
                blocks
                if by_the_driver
                else blocks.repartition("block").mapInArrow(SparkTask(Merge()), SCHEMA)
            )

        return self._jobs.do(planned)


def _seen(frame: Any) -> tuple[Any, bool, str]:
    """Return what must be known about a frame before counting: nothing about its records."""
    return frame.schema, frame.isStreaming, frame.sparkSession.conf.get(_ESCAPED, "false")


def gathered(results: Any, cells: int) -> tuple[RecordFaults, NDArray[np.int64]]:
    """Return the findings of all parts, and their counters added up, one margin after the other."""
    from tabulary.confidential.engines.spark.worker import BLOCK_CELLS, blocks_of

    found = RecordFaults()
    totals = np.zeros(cells, dtype=np.int64)
    for batch in results.to_batches():
        for number, block in blocks_of(batch):
            if isinstance(block, RecordFaults):
                found |= block
            else:
                start = number * BLOCK_CELLS
                totals[start : start + len(block)] += block
    return found, totals
