"""The formats of tables, each with its name, ending and media type: of a single table, or of a whole release."""

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING

import numpy as np

from tabulary.core.domain import Margin
from tabulary.core.long_form import value_name
from tabulary.errors import InvalidArgument, MissingExtra, TooManyCells, listed
from tabulary.registry import Registry
from tabulary.release import json_stat, px, sdmx, workbook
from tabulary.release.formats import TABLES, csv_bytes, file_stems, parquet_bytes
from tabulary.release.publication import Publication
from tabulary.release.release_workbook import WORKBOOK, workbook_of
from tabulary.release.table_sheet import ErrorPlace

if TYPE_CHECKING:
    import pyarrow as pa

    from tabulary.release.manifest import Imprint
    from tabulary.release.release import Release


@dataclass(frozen=True)
class WholeFile:
    """One file with all tables of a release: its name in the folder, and how it is written with the release's imprint.

    The place of errors is that of formats that are laid out for readers.
    """

    name: str
    encode: Callable[["Release", "Imprint", ErrorPlace], bytes]


@dataclass(frozen=True)
class Format:
    """A way to write a table: its name, the ending of its files, and its requirements.

    `name` is for programs and `title` for people. `packages` are the packages that it needs beyond Tabulary's own,
    and `most_cells` is the largest table that it can hold. In a release most formats have one file per table; a format
    with a `whole` file has that one for all tables. `for_people` means that it is laid out for people to read.
    """

    name: str
    title: str
    suffix: str
    media_type: str
    encode: Callable[[Publication], bytes]
    is_binary: bool = False
    packages: tuple[str, ...] = ()
    most_cells: int | None = None
    whole: WholeFile | None = None
    for_people: bool = False

    @property
    def is_installed(self) -> bool:
        """Whether the packages that it needs are installed."""
        return all(find_spec(package) is not None for package in self.packages)

    def refuse(self, cells: int) -> None:
        """Raise if a table of this many cells cannot be written: a package is missing, or the table is too large.

        It reads no count, so you can call it before anything is spent.
        """
        if not self.is_installed:
            raise MissingExtra(
                f"{self.title} needs {' and '.join(self.packages)}. Install it: pip install 'tabulary[formats]'. "
                "Nothing was written."
            )
        if self.most_cells is not None and cells > self.most_cells:
            raise TooManyCells(
                f"{self.title} holds tables of at most {self.most_cells:,} cells, and this one has {cells:,}. Nothing "
                "was written. Choose CSV or Parquet."
            )

    def write(self, published: Publication) -> bytes:
        """Return the bytes of a file: the same table always gives the same bytes."""
        self.refuse(published.cells)
        return self.encode(published)


def _arrow(published: Publication) -> "pa.Table":
    """Return the table in long form, all measures and the status; a withheld number is null."""
    import pyarrow as pa

    domain = published.domain
    columns = {}
    for attribute, codes in zip(domain.attributes, np.indices(domain.shape, dtype=np.int32), strict=True):
        labels = pa.array(domain.levels_of(attribute), pa.string())
        columns[attribute] = pa.DictionaryArray.from_arrays(codes.reshape(-1), labels, ordered=True)
    hidden = None if published.withheld is None else published.withheld.reshape(-1)
    for name, numbers in published.measures.items():
        columns[value_name(name, domain.attributes)] = pa.array(np.asarray(numbers).reshape(-1), mask=hidden)
    columns[value_name("status", domain.attributes)] = pa.array(published.marks(), pa.string())
    return pa.table(columns)


def _csv(published: Publication) -> bytes:
    return csv_bytes(_arrow(published))


def _parquet(published: Publication) -> bytes:
    about = {
        "margin": list(published.domain.attributes),
        "title": published.heading,
        "source": published.source,
        "edition": published.edition,
        "notes": list(published.small_print()),
        **published.facts,
    }
    metadata = {"tabulary": json.dumps(about, ensure_ascii=False, sort_keys=True)}
    return parquet_bytes(_arrow(published).replace_schema_metadata(metadata))


FORMATS = Registry[Format]("format", "tabulary.formats")
"""Every format by name, the most asked for first, then those of other packages."""

for _form in (
    Format("csv", "CSV", ".csv", "text/csv", _csv),
    Format(
        "xlsx",
        "Excel",
        ".xlsx",
        workbook.MEDIA_TYPE,
        workbook.xlsx_bytes,
        is_binary=True,
        packages=workbook.PACKAGES,
        most_cells=workbook.MOST_CELLS,
        whole=WholeFile(WORKBOOK, workbook_of),
        for_people=True,
    ),
    Format("parquet", "Parquet", ".parquet", "application/vnd.apache.parquet", _parquet, is_binary=True),
    Format("json-stat", "JSON-stat 2.0", ".json-stat.json", json_stat.MEDIA_TYPE, json_stat.json_stat_bytes),
    Format(
        "sdmx-csv", "SDMX-CSV 2.0", ".sdmx.csv", sdmx.MEDIA_TYPE, sdmx.sdmx_csv_bytes, packages=sdmx.PACKAGES
    ),
    Format("px", "PX", ".px", px.MEDIA_TYPE, px.px_bytes),
):
    FORMATS.register(_form.name, _form)

ALWAYS = ("csv", "parquet")
"""The formats that every release holds, and that it is verified by."""


def extra_formats(names: Iterable[str]) -> tuple[str, ...]:
    """Return the additional formats of a release, in the order of `FORMATS`.

    >>> extra_formats(["px", "csv", "parquet", "json-stat"])
    ('json-stat', 'px')
    """
    wanted = list(names)
    if strangers := [name for name in wanted if name not in FORMATS]:
        raise InvalidArgument(
            f"there is no format {strangers[0]!r}. A table is written as {listed(FORMATS)}."
        )
    return tuple(name for name in FORMATS if name in wanted and name not in ALWAYS)


def extra_names(margins: Iterable[Margin], formats: Iterable[str]) -> dict[Margin, dict[str, str]]:
    """Return the files of each table in the extra formats, by format, relative to the release's folder.

    >>> extra_names([("sex",)], ["px", "sdmx-csv", "xlsx"])
    {('sex',): {'px': 'tables/sex.px', 'sdmx-csv': 'tables/sex.sdmx.csv'}}
    """
    wanted = [name for name in formats if FORMATS[name].whole is None]
    return {
        margin: {name: f"{TABLES}/{stem}{FORMATS[name].suffix}" for name in wanted}
        for margin, stem in file_stems(margins).items()
    }


def release_names(formats: Iterable[str]) -> dict[str, str]:
    """Return the files that hold all tables of a release, by format, relative to the release's folder.

    >>> release_names(["px", "xlsx"])
    {'xlsx': 'tables.xlsx'}
    """
    return {name: whole.name for name in formats if (whole := FORMATS[name].whole) is not None}


def release_files(release: "Release", imprint: "Imprint", errors: ErrorPlace) -> dict[str, bytes]:
    """Return the files that hold all tables of a release, by their names."""
    found = {}
    for form in map(FORMATS.__getitem__, imprint.formats):
        if form.whole is not None:
            form.refuse(max(map(release.plan.domain.cells, release.margins)))
            found[form.whole.name] = form.whole.encode(release, imprint, errors)
    return found
