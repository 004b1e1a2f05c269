"""What counts records, wherever they lie: the port, and one module an engine."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from tabulary.confidential.weights import Weights
from tabulary.core.domain import Domain, Margin
from tabulary.core.progress import Progress

Counts = dict[Margin, NDArray[np.int64]]
"""Exact counts by margin, each in the margin's shape. Confidential."""


class Engine(Protocol):
    """The records of one source, as something that can be counted. Confidential.

    Two engines over the same data give the same counts: values are recoded, unknown ones treated and impossible ones
    refused as `coding` and `validation` say. Every error is one of ours, and holds neither a value nor a count nor a
    credential: another system's own error may quote a record, so it is never passed on, not even as a cause.
    """

    @property
    def name(self) -> str:
        """What a release calls it: public."""
        ...

    @property
    def domain(self) -> Domain:
        """The domain of the records."""
        ...

    @property
    def weights(self) -> Weights | None:
        """The survey weights; None where every record counts one."""
        ...

    @property
    def drops(self) -> tuple[str, ...]:
        """The attributes for which a record with an unknown value is left out: public."""
        ...

    def count(self, margins: Sequence[Margin], *, progress: Progress | None = None) -> Counts:
        """Return the exact counts of each margin, or the exact sums of the weights in units: all of them, or none.

        All margins are counted on the same records, even if the source changes meanwhile. `progress` is called from
        the caller's own thread; it counts hundredths, since a log of it must not hold the number of records.
        """
        ...

    def fingerprint(self, key: bytes) -> str:
        """Return 32 digits that name these records under a secret key; refuse where the engine cannot know them all."""
        ...

    def close(self) -> None:
        """Let go of the records, or of the connection to them."""
        ...
