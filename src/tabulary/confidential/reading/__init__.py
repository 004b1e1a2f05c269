"""The readers of records: the port, and one module per reader."""

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

from numpy.typing import NDArray

from tabulary.confidential.coding import Recoding

Batch = tuple[NDArray[Any], ...]
"""Some records, one array per column."""


class Reader(Protocol):
    """A source of records that can be recoded."""

    def batches(self, recodings: Sequence[Recoding], weights: str | None = None) -> Iterator[Batch]:
        """Yield the records in batches: one array of codes per recoding, all of the same length.

        A value that is not a level has the code `recoding.unknown`. If `weights` names a column, one more array
        comes last: its numbers as doubles, with NaN for anything that is not a finite number. Batches are small
        compared with memory. Other columns are not read. Every error is one of ours and contains no value and no
        count: a database's own error may quote a record, so it is never passed on, not even as a cause.
        """
        ...
