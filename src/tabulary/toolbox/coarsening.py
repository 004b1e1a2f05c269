"""Redaction and coarsening, often called anonymization: two operations on a frame.

Neither of them is a privacy mechanism. Examine their results with `k_anonymity` and the other checks, and do not
rely on them.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from tabulary.core.domain import bin_labels
from tabulary.errors import InvalidArgument, InvalidColumn, listed
from tabulary.toolbox.columns import arrow_columns, column_names, decoded, is_text, named_columns

AnyFrame = TypeVar("AnyFrame")

_CALLED = "the records"
_KEPT = "The records were not changed."


def redact(frame: AnyFrame, columns: Iterable[str]) -> AnyFrame:
    """Return the frame without these columns; pandas, polars or Arrow, as it was given.

    This is not a privacy mechanism: the other columns together may still describe only one person.

    >>> people = pa.table({"name": ["Ada", "Max"], "age": [53, 61]})
    >>> redact(people, ["name"]).column_names
    ['age']
    """
    unwanted = list(named_columns(columns, "columns to redact"))
    names = column_names(frame, _CALLED)
    missing = [name for name in unwanted if name not in names]
    if missing:
        raise InvalidColumn(f"{_CALLED} have no column {listed(missing)} to redact. {_KEPT}")
    if len(unwanted) == len(names):
        raise InvalidArgument(f"{_CALLED} would have no column left without {listed(unwanted)}. {_KEPT}")
    table: Any = frame
    if isinstance(table, pa.RecordBatch):
        table = pa.Table.from_batches([table])
    if isinstance(table, pa.Table):
        left: AnyFrame = table.drop_columns(unwanted)
    elif type(table).__module__.startswith("polars"):
        left = table.drop(unwanted)
    else:
        left = table.drop(columns=unwanted)
    return left


def coarsen(
    frame: AnyFrame,
    *,
    bins: Mapping[str, Sequence[int | float]] | None = None,
    prefixes: Mapping[str, int] | None = None,
) -> AnyFrame:
    """Return the frame with less detail in some columns; pandas, polars or Arrow, like the input.

    `bins` are the lower edges of half-open ranges of numbers, with the usual labels (`core.domain.bin_labels`); the
    last one is open. `prefixes` say how many characters of a text stay; each other character becomes a star. Both
    are public: choose them without looking at the records, because bins that were chosen from the records reveal
    something about them.

    A number below the first edge and a missing value are refused. A prefix of a number is refused too, because a
    number has lost its leading zeros. This is not a privacy mechanism.

    >>> people = pa.table({"age": [53, 61], "zip": ["19104", "19147"]})
    >>> coarsen(people, bins={"age": [0, 50, 60, 70]}, prefixes={"zip": 3}).to_pylist()
    [{'age': '50-59', 'zip': '191**'}, {'age': '60-69', 'zip': '191**'}]
    """
    ranges, kept = dict(bins or {}), dict(prefixes or {})
    both = sorted(set(ranges) & set(kept))
    if both:
        raise InvalidArgument(f"column {listed(both)} has bins and a prefix; choose one of them. {_KEPT}")
    for name, length in kept.items():
        if isinstance(length, bool) or not isinstance(length, int) or length < 0:
            raise InvalidArgument(
                f"the prefix of {name!r} must be a number of characters, not {length!r}. {_KEPT}"
            )
    names = named_columns([*ranges, *kept], "columns to coarsen")
    labels = {name: bin_labels(edges) for name, edges in ranges.items()}
    table = arrow_columns(frame, names, _CALLED)
    coarse: dict[str, list[str]] = {}
    for name in names:
        column = decoded(table.column(name), name, _CALLED)
        if name in ranges:
            coarse[name] = _binned(column, name, ranges[name], labels[name])
        else:
            coarse[name] = _cut(column, name, kept[name])
    return _replaced(frame, coarse)


def _binned(column: Any, name: str, edges: Sequence[int | float], labels: Sequence[str]) -> list[str]:
    kind = column.type
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)):
        raise InvalidColumn(f"column {name!r} has no numbers, so it cannot have bins. {_KEPT}")
    numbers = column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    places = np.searchsorted(np.array(edges, dtype=np.float64), numbers, side="right") - 1
    if places.size and places.min() < 0:
        raise InvalidColumn(
            f"column {name!r} has a number below the first bin, which starts at {edges[0]}, in at least one "
            f"record. {_KEPT} Begin the bins lower."
        )
    return [labels[place] for place in places]


def _cut(column: Any, name: str, length: int) -> list[str]:
    if not is_text(column.type):
        raise InvalidColumn(
            f"column {name!r} has no text, and only text has a prefix: a number has lost its leading zeros. "
            f"{_KEPT} Read the column as text."
        )
    return [text[:length] + "*" * (len(text) - length) for text in column.to_pylist()]


def _replaced(frame: AnyFrame, columns: Mapping[str, list[str]]) -> AnyFrame:
    table: Any = frame
    if isinstance(table, pa.RecordBatch):
        table = pa.Table.from_batches([table])
    if isinstance(table, pa.Table):
        for name, texts in columns.items():
            table = table.set_column(table.column_names.index(name), name, pa.array(texts, pa.string()))
        found: AnyFrame = table
    elif type(table).__module__.startswith("polars"):
        import polars

        found = table.with_columns([polars.Series(n, t, dtype=polars.String) for n, t in columns.items()])
    else:
        found = table.assign(**columns)
    return found
