"""The two formats of a published table, CSV and Parquet, and the names of its files."""

import io
import json
import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING

from tabulary.core.domain import Domain, Margin
from tabulary.core.labels import Labels
from tabulary.planning import Plan
from tabulary.release.table import ReleasedTable, column_names

if TYPE_CHECKING:
    import pyarrow as pa

TABLES = "tables"
"""The folder of the tables inside a release."""

_ROWS_AT_A_TIME = 1 << 16
_LONGEST_STEM = 80
# Names that Windows refuses for a file, with any ending.
_RESERVED = re.compile(r"con|prn|aux|nul|com[0-9]|lpt[0-9]")


def file_stems(margins: Iterable[Margin]) -> dict[Margin, str]:
    """Return a readable file name for each table, safe on every file system and used once.

    >>> list(file_stems([(), ("sex",), ("sex", "age group"), ("Sex",), ("年",)]).values())
    ['total', 'sex', 'sex-by-age-group', 'sex-2', 'table']
    """
    given = list(margins)
    stems: dict[Margin, str] = {}
    taken: set[str] = set()
    # The next number to try for each name: thousands of tables may have names that are not ASCII.
    turns: Counter[str] = Counter()
    # The total is the one table with a fixed name; an attribute called "total" gives way to it.
    for margin in sorted(given, key=bool):
        name = stem = _stem(margin)
        while name in taken:
            turns[stem] += 1
            name = f"{stem}-{turns[stem] + 1}"
        stems[margin] = name
        taken.add(name)
    return {margin: stems[margin] for margin in given}


def file_names(margins: Iterable[Margin]) -> dict[Margin, tuple[str, str]]:
    """Return the CSV and the Parquet file of each table, relative to the release's folder."""
    return {
        margin: (f"{TABLES}/{stem}.csv", f"{TABLES}/{stem}.parquet")
        for margin, stem in file_stems(margins).items()
    }


def arrow_table(released: ReleasedTable, plan: Plan) -> "pa.Table":
    """Return the table as it is published, with its description in the metadata of its schema."""
    about = {"margin": list(released.margin), **plan_facts(plan)}
    metadata = {"tabulary": json.dumps(about, ensure_ascii=False, sort_keys=True)}
    return released.to_arrow().replace_schema_metadata(metadata)


def plan_facts(plan: Plan) -> dict[str, str]:
    """Return what every copy of a table says about its plan: the digest, the promise, the mechanism."""
    return {
        "plan": plan.digest(),
        "privacy": str(plan.privacy),
        "neighbours": str(plan.neighbours),
        "mechanism": plan.mechanism,
    }


def csv_bytes(table: "pa.Table") -> bytes:
    r"""Return a table as CSV: RFC 4180 quoting where it is needed, UTF-8, lines that end in LF; null is an empty field.

    >>> import pyarrow as pa
    >>> csv_bytes(pa.table({"job": ["paid, or self", "none"], "count": [3, None]}))
    b'job,count\n"paid, or self",3\nnone,\n'
    """
    import pyarrow.compute as pc

    pieces = [",".join(map(_field, table.column_names))]
    for batch in table.to_batches(max_chunksize=_ROWS_AT_A_TIME):
        texts = [_texts(column) for column in batch.columns]
        joined = pc.binary_join_element_wise(*texts, ",", null_handling="replace", null_replacement="")
        pieces += joined.to_pylist()
    return "\n".join([*pieces, ""]).encode()


def parquet_bytes(table: "pa.Table") -> bytes:
    """Return a table as Parquet, its schema's metadata included."""
    import pyarrow.parquet as pq

    buffer = io.BytesIO()
    pq.write_table(table, buffer, compression="zstd")
    return buffer.getvalue()


def expected_bytes(plan: Plan, formats: Collection[str] = (), labels: Sequence[Labels] = ()) -> int:
    """Return an upper estimate of the size of the plan's release, to check the disk beforehand.

    It counts both formats of every table, with at most one line of text per cell and a few numbers, and the report,
    which shows a few hundred cells of each table and draws a picture of it. Each further format in `formats` names
    every level a few times and every cell up to twice, and holds all words in every language. Reads no data.
    """
    words = sum(len(json.dumps(each.describe(), ensure_ascii=False).encode()) for each in labels)
    # The manifest and the report name each measured part and its law, and each table has a curve of its errors.
    size = (1 << 17) + 1_000 * (len(plan.measured) + len(plan.estimator.covered)) + 4 * words
    # Each measured number, with its part and its place.
    size += 20 * sum(part.query.draws(plan.measured_domain) for part in plan.measured)
    for margin in plan.workload:
        domain = plan.domain.project(margin)
        line = sum(_longest_label(domain, attribute) + 3 for attribute in margin) + 80
        # The frame of a picture, the schema of a Parquet file, and their entries in the manifest.
        size += 1 << 13
        size += (
            domain.size * (line + 40) + 200 * min(domain.size, 1_000) + sum(map(len, column_names(margin)))
        )
        named = sum(len(level.encode()) + 8 for levels in domain.levels for level in levels)
        # Beside each code its label, in the default language.
        beside = sum(_longest_text(labels[0], a) for a in margin) if labels else 0
        shown = 4 * beside * min(domain.size, 1_000)
        size += shown + len(formats) * (
            domain.size * (2 * (line + beside) + 80) + 4 * (named + words) + (1 << 14)
        )
    return size


def _texts(column: "pa.Array") -> "pa.Array":
    """Return a column as it is written, each different value written once."""
    import pyarrow as pa

    if pa.types.is_integer(column.type):
        return column.cast(pa.string())
    encoded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    # Python's shortest text of a float, since it reads back to the same float and never changes.
    written = pa.array([_field(str(value)) for value in encoded.dictionary.to_pylist()], pa.string())
    return written.take(encoded.indices)


def _field(text: str) -> str:
    return '"{}"'.format(text.replace('"', '""')) if set(text) & set('",\r\n') else text


def _longest_text(labels: Labels, attribute: str) -> int:
    return max((len(text.encode()) for text in labels.variable(attribute).levels.values()), default=0)


def _longest_label(domain: Domain, attribute: str) -> int:
    return max(len(label.encode()) for label in domain.levels_of(attribute))


def _stem(margin: Margin) -> str:
    stem = "-by-".join(filter(None, map(_plain, margin))) if margin else "total"
    stem = stem[:_LONGEST_STEM].strip("-") or "table"
    return f"{stem}-table" if _RESERVED.fullmatch(stem) else stem


def _plain(name: str) -> str:
    # Lower case, since two names that differ by case are one file on some systems.
    letters = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().lower()
    return re.sub(r"[^a-z0-9_]+", "-", letters).strip("-")
