"""What reads records: the port, and one module an engine."""

from collections.abc import Iterator, Sequence
from typing import Protocol

from tabulary.confidential.coding import Recoding
from tabulary.confidential.store import Codes


class Engine(Protocol):
    """A source of records that can be recoded."""

    def batches(self, recodings: Sequence[Recoding]) -> Iterator[tuple[Codes, ...]]:
        """Yield the records in batches: one array of codes a recoding, all of the same length.

        A value that is no level has the code `recoding.unknown`. Batches are small against memory. Columns
        that no recoding names are not read. Every error is one of ours, and holds neither a value nor a
        count: a database's own error may quote a record, so it is never passed on, not even as a cause.
        """
        ...
