"""What reads records into this process: the port, and one module a reader."""

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

from numpy.typing import NDArray

from tabulary.confidential.coding import Recoding

Batch = tuple[NDArray[Any], ...]
"""Some records, an array a column."""


class Reader(Protocol):
    """A source of records that can be recoded."""

    def batches(self, recodings: Sequence[Recoding], weights: str | None = None) -> Iterator[Batch]:
        """Yield the records in batches: one array of codes a recoding, all of the same length.

        A value that is no level has the code `recoding.unknown`. If a column of `weights` is named, one array
        more comes last: its numbers as doubles, with NaN for what is no finite number. Batches are small
        against memory. Columns that are not named are not read. Every error is one of ours, and holds neither
        a value nor a count: a database's own error may quote a record, so it is never passed on, not even as
        a cause.
        """
        ...
