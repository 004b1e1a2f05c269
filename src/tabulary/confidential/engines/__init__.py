"""The engines that count records in any place: the port, and one module per engine."""

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
    """The records of one source, which the engine can count. Confidential.

    Two engines over the same data give the same counts: `coding` and `validation` say how values are recoded, how
    unknown values are treated and which records are refused. Every error is one of ours and contains no value, no
    count and no credential: the error of another system may quote a record, so it is never passed on, not even as a
    cause.
    """

    @property
    def name(self) -> str:
        """The engine's name in a release: public."""
        ...

    @property
    def domain(self) -> Domain:
        """The domain of the records."""
        ...

    @property
    def weights(self) -> Weights | None:
        """The survey weights; None if every record counts one."""
        ...

    @property
    def drops(self) -> tuple[str, ...]:
        """The attributes for which a record with an unknown value is left out: public."""
        ...

    def count(self, margins: Sequence[Margin], *, progress: Progress | None = None) -> Counts:
        """Return the exact counts of each margin, or the exact sums of the weights in units: all margins or none.

        All margins are counted on the same records, even if the source changes in the meantime. `progress` is
        called from the caller's thread, in hundredths, because a log must not show the number of records.
        """
        ...

    def fingerprint(self, key: bytes) -> str:
        """Return 32 digits that identify these records under a secret key, or refuse."""
        ...

    def close(self) -> None:
        """Release the records, or the connection to them."""
        ...
