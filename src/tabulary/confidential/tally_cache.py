"""Exact counts on demand: each margin is counted once, and kept while there is room."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, NoReturn, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from tabulary.confidential.records import Records
from tabulary.confidential.weights import Weights
from tabulary.core.array_cache import BoundedCache
from tabulary.core.domain import Domain, Margin
from tabulary.core.workload import maximal_margins

if TYPE_CHECKING:
    from tabulary.core.progress import Progress

MEMORY_BYTES = 256 * 1024 * 1024
"""How many bytes of counts are kept, unless told otherwise: 33 million cells."""

_CELL_BYTES = 8


class TallyCache:
    """The exact counts of whatever margins are asked for, at most so many bytes of them at a time. Confidential.

    A margin is counted once, however many threads ask for it together; one inside a margin that is held is summed from
    it. What it prints is the domain, never a count, and it cannot be copied or pickled: `exact` is the one way in.

    >>> import pyarrow
    >>> domain = Domain({"sex": ["F", "M"], "job": ["none", "paid"]})
    >>> people = pyarrow.table({"sex": ["F", "M", "F"], "job": ["paid", "paid", "none"]})
    >>> with Records.from_arrow(people, domain) as records:
    ...     tallies = TallyCache(records)
    ...     tallies.exact(("sex",)).tolist()
    ...     print(tallies)
    [2, 1]
    <TallyCache of sex 2 × job 2>
    """

    def __init__(self, records: Records, *, memory_bytes: int = MEMORY_BYTES) -> None:
        self._records = records
        self._memory_bytes = memory_bytes
        self._held: BoundedCache[Margin, np.int64] = BoundedCache(memory_bytes)

    @property
    def domain(self) -> Domain:
        """The domain of the records."""
        return self._records.domain

    @property
    def weights(self) -> Weights | None:
        """The weights that are summed; None where every record counts one, and has a sensitivity of one."""
        return self._records.weights

    @property
    def drops(self) -> tuple[str, ...]:
        """The attributes for which a record with an unknown value was left out: see `confidential.dropping`."""
        return self._records.drops

    def exact(self, margin: Margin) -> NDArray[np.int64]:
        """Return the exact counts of one margin, read-only, its attributes in the domain's order.

        Confidential: for a mechanism, which adds noise before anything leaves.
        """
        named = self.domain.margin(margin)
        return self._held.get(named, lambda: self._made(named))

    def prepare(self, margins: Iterable[Margin], *, progress: "Progress | None" = None) -> None:
        """Count many margins at once: those that no held one contains, the first ones first, while there is room.

        Walking over the records once for all of them takes far less time than once for each.
        """
        held = self._held.held()
        missing: list[Margin] = []
        room = self._memory_bytes
        for margin in maximal_margins(map(self.domain.margin, margins)):
            room -= _CELL_BYTES * self.domain.cells(margin)
            if room < 0:
                break
            if not any(set(margin) <= set(larger) for larger in held):
                missing.append(margin)
        if missing:
            tally = self._records.tally(missing, progress=progress)
            for margin in missing:
                self._held.put(margin, tally.exact(margin))

    def close(self) -> None:
        """Forget the counts; the records are closed by whoever opened them."""
        self._held.clear()

    def __repr__(self) -> str:
        return f"<TallyCache of {repr(self._records).removeprefix('<Records of ')}"

    def __format__(self, specification: str) -> str:
        return repr(self)

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        raise TypeError("a TallyCache is confidential: it cannot be pickled or copied.")

    def _made(self, margin: Margin) -> NDArray[np.int64]:
        """Return the counts, summed from the smallest table that is held and contains them, or counted."""
        own = set(margin)
        larger = [(other, cells) for other, cells in self._held.held().items() if own <= set(other)]
        if not larger:
            return self._records.tally([margin]).exact(margin)
        other, cells = min(larger, key=lambda found: found[1].size)
        return np.asarray(cells.sum(axis=tuple(i for i, a in enumerate(other) if a not in own)))
