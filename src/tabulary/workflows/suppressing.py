"""The file of a custodian read for suppression: the public people and their priors, and the private counts."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tabulary.confidential.reading import files
from tabulary.confidential.reading.duckdb import DuckDBReader
from tabulary.core.domain import Domain
from tabulary.core.suppressed_table import SuppressedTable
from tabulary.datasets.published import Dataset
from tabulary.errors import InvalidArgument, InvalidColumn, InvalidTable, UnknownLevel, UnreadableSource
from tabulary.release import StagedFolder
from tabulary.release.manifest import REPORT
from tabulary.suppress.classical_method.contributions import Contributions
from tabulary.suppress.pages.files import (
    CSV_NAME,
    JSON_NAME,
    check_names,
    json_bytes,
    prior_of,
    read_table,
    table_csv_bytes,
)
from tabulary.suppress.simulatable_method.priors import fit_prior
from tabulary.table_samplers.people import PeopleByKind

Numbers = NDArray[np.float64]
Levels = Mapping[str, Sequence[str]]

# Whole numbers up to here are exact as doubles, and so are their sums over a table.
_LARGEST = 2.0**40
_TRUE, _FALSE = ("1", "true"), ("0", "false")


@dataclass(frozen=True, eq=False, repr=False)
class TableFile:
    """A CSV or Parquet file, the columns of its public attributes, and their levels where these are declared.

    Without a declaration the levels are those that occur: in the order of the file where a row is a cell, which the
    custodian wrote down so, and sorted where a row is a person, so that no order of records shows.
    """

    path: Path
    by: tuple[str, ...]
    levels: Levels

    def __post_init__(self) -> None:
        if not self.by:
            raise InvalidArgument(
                "no attribute of the table was named. Nothing was read. Name each attribute as a column of the file."
            )
        if len(set(self.by)) < len(self.by):
            raise InvalidArgument("an attribute of the table is named twice. Nothing was read.")
        strangers = [name for name in self.levels if name not in self.by]
        if strangers:
            raise InvalidArgument(
                f"levels are declared for {strangers[0]!r}, which is not an attribute of the table. Nothing was read."
            )

    def read(self, texts: Sequence[str] = (), amounts: Sequence[str] = ()) -> pa.Table:
        """Return the columns of the attributes and some others, none of which is missing anywhere."""
        wanted = [*self.by, *texts, *amounts]
        if len(set(wanted)) < len(wanted):
            raise InvalidArgument("one column is named for two purposes. Nothing was read.")
        kind, paths = files.find_files(self.path)
        found = DuckDBReader.of_files(kind, paths).columns([*self.by, *texts], amounts)
        if not found.num_rows:
            raise UnreadableSource(f"{self.path.name!r} holds no rows. Nothing was counted.")
        for name in wanted:
            if found[name].null_count:
                missing = "no finite number" if name in amounts else "nothing"
                raise InvalidColumn(
                    f"column {name!r} of {self.path.name!r} holds {missing} in at least one row. Nothing was counted. "
                    "Correct those rows, or leave them out."
                )
        return found

    def coded(self, found: pa.Table, *, in_order: bool) -> tuple[Domain, NDArray[np.int64]]:
        """Return the domain of the attributes, and the flat index of each row's cell."""
        columns = [_Column(name, found[name], self.levels.get(name), in_order) for name in self.by]
        domain = Domain({column.name: column.levels for column in columns})
        domain.check_cells(domain.attributes)
        # What could not be written down is refused before anything is decided.
        check_names(domain)
        return domain, np.ravel_multi_index([column.codes for column in columns], domain.shape)


@dataclass(frozen=True, eq=False, repr=False)
class Groups:
    """How many people of each kind stand in each cell, their prior, and how many have the private attribute.

    The last axis of each array is the kinds of person: people of one cell with different priors. What was not read is
    None.
    """

    domain: Domain
    people: NDArray[np.int64] | None
    counts: NDArray[np.int64] | None
    probability: Numbers | None


def read_cells(
    source: TableFile, *, people: str | None, count: str | None, probability: str | None = None
) -> Groups:
    """Return the groups of a file with one row for each cell, or for each cell and kind of person.

    `people`, `count` and `probability` name columns; one that is None is not read. A cell may have several rows, if
    their probabilities differ. Every combination of levels has a row.
    """
    amounts = [name for name in (people, count, probability) if name is not None]
    found = source.read(amounts=amounts)
    domain, cells = source.coded(found, in_order=True)
    column = {name: found[name].to_numpy() for name in amounts}
    for name in (people, count):
        if name is not None and not _whole(column[name]):
            raise InvalidColumn(
                f"column {name!r} of {source.path.name!r} holds a value that is negative, not whole or too large. "
                "Nothing was released."
            )
    prior = None if probability is None else column[probability]
    kinds = PeopleByKind(domain, cells, prior)
    if kinds.number < len(cells):
        same = "." if probability is None else " with the same probability."
        raise InvalidTable(f"a cell has two rows{same} Nothing was released. Add them up into one.")
    if len(np.unique(cells)) < domain.size:
        raise InvalidTable(
            "not every combination of levels has a row. Nothing was released. A cell without people needs a row "
            "too, with 0 people."
        )
    return Groups(
        domain,
        None if people is None else kinds.summed(column[people]),
        None if count is None else kinds.summed(column[count]),
        kinds.probability,
    )


def read_persons(source: TableFile, *, private: str | None, probability: str | None = None) -> Groups:
    """Return the groups of a file with one row for each person, who has a `private` 0, 1, true or false."""
    texts = [] if private is None else [private]
    found = source.read(texts, [] if probability is None else [probability])
    domain, cells = source.coded(found, in_order=False)
    prior = None if probability is None else found[probability].to_numpy()
    kinds = PeopleByKind(domain, cells, prior)
    ones = None if private is None else kinds.summed(_truth(found[private], private, source.path.name))
    return Groups(domain, kinds.summed(np.ones(len(cells))), ones, kinds.probability)


def published_groups(dataset: Dataset) -> Groups:
    """Return the groups of a published table whose people and priors are public."""
    if dataset.people is None or dataset.probability is None:
        raise InvalidArgument(
            f"dataset {dataset.name!r} has no numbers of people or no prior. Nothing was released. Use hair-eye-gene."
        )
    domain = dataset.table.domain
    known = dataset.probability.domain.attributes
    stretched = dataset.probability.counts.reshape(
        [len(domain.levels_of(name)) if name in known else 1 for name in domain.attributes]
    )
    prior = np.broadcast_to(stretched, domain.shape)[..., None].astype(np.float64)
    return Groups(
        domain,
        dataset.people.counts[..., None].astype(np.int64),
        dataset.table.counts[..., None].astype(np.int64),
        prior,
    )


def read_contributors(source: TableFile, *, value: str) -> tuple[Domain, Contributions]:
    """Return the domain and the contributions of a file with one row for each contributor and its amount."""
    found = source.read(amounts=[value])
    domain, cells = source.coded(found, in_order=False)
    return domain, Contributions(domain.shape, cells, found[value].to_numpy())


def fitted_prior(paths: Sequence[Path], domain: Domain) -> Numbers:
    """Return the prior of each cell, fitted from past public tables of the same attributes and levels.

    What a past table suppressed is left out of it: neither its people nor its count take part.
    """
    people, counts = [], []
    for path in paths:
        table = read_table(path).table
        if (table.domain.attributes, table.domain.levels) != (domain.attributes, domain.levels):
            raise InvalidTable(
                f"the past table {path.name!r} has other attributes or levels, or a different order. Nothing was "
                "released. A prior is fitted cell by cell."
            )
        if table.people is None:
            raise InvalidTable(
                f"the past table {path.name!r} has no numbers of people. Nothing was released."
            )
        people.append(np.where(table.suppressed, 0, table.people))
        counts.append(np.where(table.suppressed, 0, table.counts))
    return fit_prior(np.stack(people), np.stack(counts), axis=0)


class _Column:
    """A column of levels, as codes."""

    def __init__(
        self, name: str, column: pa.ChunkedArray, declared: Sequence[str] | None, in_order: bool
    ) -> None:
        encoded = column.combine_chunks().dictionary_encode()
        occurring = encoded.dictionary.to_pylist()
        self.name = name
        if declared is None:
            self.levels = tuple(occurring if in_order else sorted(occurring, key=_natural))
        else:
            self.levels = tuple(declared)
        places = {level: code for code, level in enumerate(self.levels)}
        if any(level not in places for level in occurring):
            raise UnknownLevel(
                f"column {name!r} holds a value outside its declared levels in at least one row. Nothing was counted."
            )
        lookup = np.array([places[level] for level in occurring], dtype=np.int64)
        self.codes = lookup[encoded.indices.to_numpy()]


def _truth(column: pa.ChunkedArray, name: str, file: str) -> Numbers:
    encoded = column.combine_chunks().dictionary_encode()
    words = [word.lower() for word in encoded.dictionary.to_pylist()]
    if any(word not in (*_TRUE, *_FALSE) for word in words):
        raise InvalidColumn(
            f"column {name!r} of {file!r} holds a value other than 0, 1, true or false in at least one row. "
            "Nothing was counted."
        )
    ones: Numbers = np.array([word in _TRUE for word in words], dtype=np.float64)[encoded.indices.to_numpy()]
    return ones


def _whole(values: Numbers) -> bool:
    return bool(((values >= 0) & (values <= _LARGEST) & (values % 1 == 0)).all())


def _natural(label: str) -> list[tuple[int, int, str]]:
    """Return a key by which 5-9 comes before 10-14."""
    return [
        (0, int(part), "") if part[0] in "0123456789" else (1, 0, part)
        for part in re.split(r"([0-9]+)", label)
        if part
    ]


def write_suppressed(folder: StagedFolder, table: SuppressedTable, facts: Mapping[str, str]) -> None:
    """Write the public files of a table into a folder: `table.csv`, `table.json` and `report.html`."""
    # The template engine takes a moment to load, and reading does not need it.
    from tabulary.suppress.pages.report import report_html

    folder.write(CSV_NAME, table_csv_bytes(table, prior_of(table)))
    folder.write(JSON_NAME, json_bytes(table, facts))
    folder.write(REPORT, report_html(table, facts).encode())
