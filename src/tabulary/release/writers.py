"""The formats of a single table, each with its name, ending and media type."""

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
from tabulary.release import json_stat, px, sdmx, xlsx
from tabulary.release.formats import TABLES, csv_bytes, file_stems, parquet_bytes
from tabulary.release.publication import Publication

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class Format:
    """A way to write a table: its name, the ending of its files, and its requirements.

    `name` is for programs and `title` for people. `packages` are the packages that it needs beyond Tabulary's own,
    and `most_cells` is the largest table that it can hold.
    """

    name: str
    title: str
    suffix: str
    media_type: str
    encode: Callable[[Publication], bytes]
    is_binary: bool = False
    packages: tuple[str, ...] = ()
    most_cells: int | None = None

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
        self.refuse(published.domain.size)
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
        xlsx.MEDIA_TYPE,
        xlsx.xlsx_bytes,
        is_binary=True,
        packages=xlsx.PACKAGES,
        most_cells=xlsx.MOST_CELLS,
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

    >>> extra_names([("sex",)], ["px", "sdmx-csv"])
    {('sex',): {'px': 'tables/sex.px', 'sdmx-csv': 'tables/sex.sdmx.csv'}}
    """
    wanted = list(formats)
    return {
        margin: {name: f"{TABLES}/{stem}{FORMATS[name].suffix}" for name in wanted}
        for margin, stem in file_stems(margins).items()
    }
