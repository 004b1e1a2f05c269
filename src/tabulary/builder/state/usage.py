"""How the service is used: requests by day, dataset, kind, outcome and caller. Never a count of records."""

from collections.abc import Iterable
from dataclasses import astuple, dataclass
from typing import Any

from sqlalchemy import Dialect, case, func, select
from sqlalchemy.dialects import postgresql, sqlite

from tabulary.builder.state import schema
from tabulary.builder.state.database import Database

PUBLIC = "public"
"""The caller who showed no token."""


@dataclass(frozen=True)
class Requests:
    """The number of requests of one kind and one outcome on one day.

    `dataset` is empty if the request named no known dataset; `status` is the first digit of the HTTP status;
    `caller` is the id of a token, or "public". `number` is the place in the list, and None before it is stored.
    """

    day: str
    dataset: str
    kind: str
    status: int
    caller: str
    requests: int
    number: int | None = None


@dataclass(frozen=True)
class DayOfUse:
    """How many requests there were for one dataset on one day; of these, how many were refused, and how many failed."""

    day: str
    dataset: str
    requests: int
    refused: int
    failed: int


class Usage:
    """The requests that were counted, as the custodian reads them."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, rows: Iterable[Requests]) -> None:
        """Add to what was counted before, in one transaction. Many workers may add at the same time."""
        # The same order everywhere, so that two workers never deadlock on each other's rows.
        values = [
            {column: value for column, value in vars(row).items() if column != "number"}
            for row in sorted(rows, key=lambda row: astuple(row)[:5])
        ]
        if not values:
            return
        with self._database.writing() as connection:
            connection.execute(_adding(connection.dialect), values)

    def read(
        self, dataset: str | None = None, after: int | None = None, size: int = 100
    ) -> tuple[Requests, ...]:
        """Return what was counted, in the order of its first appearance, from the row after number `after`."""
        usage = schema.usage
        query = select(usage).order_by(usage.c.number).limit(size)
        if dataset is not None:
            query = query.where(usage.c.dataset == dataset)
        if after is not None:
            query = query.where(usage.c.number > after)
        with self._database.reading() as connection:
            return tuple(Requests(**row) for row in connection.execute(query).mappings())

    def by_day(self, since: str) -> tuple[DayOfUse, ...]:
        """Return what was counted from a day on, summed by day and dataset, the last day first."""
        usage = schema.usage
        answered = [func.sum(case((usage.c.status == digit, usage.c.requests), else_=0)) for digit in (4, 5)]
        query = (
            select(usage.c.day, usage.c.dataset, func.sum(usage.c.requests), *answered)
            .where(usage.c.day >= since)
            .group_by(usage.c.day, usage.c.dataset)
            .order_by(usage.c.day.desc(), usage.c.dataset)
        )
        with self._database.reading() as connection:
            return tuple(
                # PostgreSQL sums large integers as decimals.
                DayOfUse(day, dataset, *map(int, numbers))
                for day, dataset, *numbers in connection.execute(query)
            )


def _adding(dialect: Dialect) -> Any:
    # The two databases write an upsert alike, and SQLAlchemy has one for each.
    insert = postgresql.insert if dialect.name == "postgresql" else sqlite.insert
    adding = insert(schema.usage)
    return adding.on_conflict_do_update(
        index_elements=["day", "dataset", "kind", "status", "caller"],
        set_={"requests": schema.usage.c.requests + adding.excluded.requests},
    )
