"""Records that are held, let go of once, and never copied."""

import weakref
from types import TracebackType
from typing import NoReturn, Protocol, Self, SupportsIndex


class Closable(Protocol):
    """What holds records, here or elsewhere."""

    def close(self) -> None:
        """Let go of them."""
        ...


class HeldRecords:
    """Records that something else holds: a store here, an engine anywhere.

    `close`, the end of a `with`, the garbage collector and the end of the process each let go of them. They cannot
    be copied or pickled, and formatting them shows no more than `repr`.
    """

    def __init__(self, held: Closable) -> None:
        self._finalizer = weakref.finalize(self, held.close)

    def close(self) -> None:
        """Forget the records, in memory and on disk."""
        self._finalizer()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __format__(self, specification: str) -> str:
        return repr(self)

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        raise TypeError(f"{type(self).__name__} are confidential: they cannot be pickled or copied.")
