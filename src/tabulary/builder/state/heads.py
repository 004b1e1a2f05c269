"""The newest heads of the ledger that a service has seen. They expose an older copy of the ledger."""

from collections.abc import Sequence

from sqlalchemy import select, text

from tabulary.builder.state import schema
from tabulary.builder.state.database import Database
from tabulary.core.head import Head

# Both databases accept it. A late worker never sets a head back: the newest head vouches for all earlier ones.
_ADVANCE = text(
    "INSERT INTO heads (account, entries, digest) VALUES (:account, :entries, :digest) ON CONFLICT (account) "
    "DO UPDATE SET entries = excluded.entries, digest = excluded.digest WHERE excluded.entries > heads.entries"
)


class Heads:
    """A witness of the ledger, in the state: the newest head of each account.

    >>> import tempfile
    >>> from tabulary.builder.state import State
    >>> with tempfile.TemporaryDirectory() as folder, State.create(f"{folder}/state.sqlite") as state:
    ...     for entries in (1, 3, 2):
    ...         state.heads.note([Head("census", entries, f"{entries}" * 64)])
    ...     [head.entries for head in state.heads.heads()]
    [3]
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def heads(self) -> tuple[Head, ...]:
        """Return the newest head of each account."""
        with self._database.reading() as connection:
            return tuple(Head(**row) for row in connection.execute(select(schema.heads)).mappings())

    def note(self, heads: Sequence[Head]) -> None:
        """Advance to these heads, in one transaction. Many workers may do so at the same time."""
        # The same order everywhere, so that two workers never deadlock on each other's rows.
        rows = [vars(head) for head in sorted(heads, key=lambda head: head.account)]
        with self._database.writing() as connection:
            connection.execute(_ADVANCE, rows)
