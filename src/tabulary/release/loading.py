"""Code in Python and R that reads the files of a release, with its own names: each piece runs unchanged."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from tabulary.core.domain import Margin
from tabulary.release.formats import file_names
from tabulary.release.table import VALUE_COLUMNS, column_names

# A name that R accepts without quotes.
_PLAIN_IN_R = re.compile(r"[A-Za-z][A-Za-z0-9_.]*")
_RESERVED_IN_R = {
    *("if", "else", "repeat", "while", "function", "for", "next", "break", "in"),
    *("TRUE", "FALSE", "NULL", "Inf", "NaN", "NA", "NA_integer_", "NA_real_", "NA_complex_", "NA_character_"),
}


@dataclass(frozen=True)
class Snippet:
    """A piece of code that reads a table of a release; run it in the release's folder."""

    title: str
    language: str
    code: str


def snippets(margins: Sequence[Margin], *, linear: bool = True) -> tuple[Snippet, ...]:
    """Return code that reads one table of a release with Tabulary, pandas, pyarrow, base R, and R's arrow.

    The table is the first of two attributes, or the first there is. Labels are read as text, so that "01" stays "01"
    and "NA" stays a label. Only for `linear` tables is it known how often noise alone lifts an interval above zero.

    >>> print(snippets([("sex",), ("sex", "age")])[1].code)
    import pandas as pd
    <BLANKLINE>
    table = pd.read_csv(
        "tables/sex-by-age.csv",
        dtype={"sex": str, "age": str},
        keep_default_na=False,
    )
    table[table["lower_95"] > 0]  # intervals above zero; noise alone puts up to one empty cell in forty here
    """
    margin = _example(margins)
    csv, parquet = file_names(margins)[margin]
    count, error, lower, upper = column_names(margin)
    types = ", ".join(f"{_quoted(a)}: str" for a in margin)
    kinds = ", ".join(['"character"'] * len(margin) + ['"numeric"'] * len(VALUE_COLUMNS))
    above = "intervals above zero" + (
        "; noise alone puts up to one empty cell in forty here" if linear else ""
    )
    return (
        Snippet(
            "Tabulary, which checks every byte and every claim first",
            "python",
            "import tabulary as tb\n\n"
            'release = tb.Release.load(".")\n'
            f"table = release[{_key(margin)}]\n"
            "table.counts, table.standard_errors\n"
            "lower, upper = table.interval(0.95)\n"
            f"frame = table.to_pandas()  # columns: {', '.join([*margin, count, error, lower, upper])}",
        ),
        Snippet(
            "pandas, from CSV",
            "python",
            "import pandas as pd\n\n"
            "table = pd.read_csv(\n"
            f"    {_quoted(csv)},\n"
            f"    dtype={{{types}}},\n"
            "    keep_default_na=False,\n"
            ")\n"
            f"table[table[{_quoted(lower)}] > 0]  # {above}",
        ),
        Snippet(
            "pyarrow, from Parquet: smaller, with the order of the levels",
            "python",
            "import pyarrow.parquet as pq\n\n"
            f"table = pq.read_table({_quoted(parquet)})\n"
            'table.schema.metadata[b"tabulary"]  # what was promised, and the digest of the plan\n'
            "frame = table.to_pandas()",
        ),
        Snippet(
            "R, from CSV",
            "r",
            "table <- read.csv(\n"
            f"  {_quoted(csv)},\n"
            f"  colClasses = c({kinds}),\n"
            '  check.names = FALSE, na.strings = character(0), fileEncoding = "UTF-8"\n'
            ")\n"
            f"table[table[[{_quoted(lower)}]] > 0, ]  # {above}",
        ),
        Snippet(
            "R, from Parquet",
            "r",
            f"table <- arrow::read_parquet({_quoted(parquet)})\n{_shown_in_r(margin, count, error)}",
        ),
    )


def estimate_snippets(margins: Sequence[Margin]) -> tuple[Snippet, ...]:
    """Return code that reads the unbiased estimates of one table, and the measurements that they are made of.

    >>> print(estimate_snippets([("sex",)])[0].code)
    import tabulary as tb
    <BLANKLINE>
    unbiased = tb.Release.load(".")["sex",].unbiased
    unbiased.counts, unbiased.standard_errors  # may be negative; the mean of their errors is zero
    """
    return (
        Snippet(
            "Tabulary: the unbiased estimates of a table, with the exact law of their noise",
            "python",
            "import tabulary as tb\n\n"
            f'unbiased = tb.Release.load(".")[{_key(_example(margins))}].unbiased\n'
            "unbiased.counts, unbiased.standard_errors  # may be negative; the mean of their errors is zero",
        ),
        Snippet(
            "pandas: every noisy number as it was measured",
            "python",
            "import json\n\nimport pandas as pd\n\n"
            'measured = pd.read_parquet("measurements.parquet")  # columns: part, cell, value\n'
            'with open("manifest.json", encoding="utf-8") as file:\n'
            '    parts = json.load(file)["plan"]["measured"]  # what each part measures, and the law of its noise\n'
            'first = measured[measured["part"] == 0]  # the numbers of parts[0], the last attribute fastest',
        ),
        Snippet(
            "R: every noisy number as it was measured",
            "r",
            'measured <- arrow::read_parquet("measurements.parquet")  # columns: part, cell, value\n'
            'parts <- jsonlite::read_json("manifest.json")$plan$measured\n'
            "first <- measured[measured$part == 0, ]  # the numbers of parts[[1]], the last attribute fastest",
        ),
    )


def _example(margins: Sequence[Margin]) -> Margin:
    return next((m for m in margins if len(m) == 2), margins[0])


def _key(margin: Margin) -> str:
    """Return the attributes of a table between the brackets of `release[...]`."""
    return ", ".join(map(_quoted, margin)) + ("," if len(margin) == 1 else "") or "()"


def _shown_in_r(margin: Margin, count: str, error: str) -> str:
    """Return how R shows the counts and their errors: as a cross-table, or as they are for the total alone.

    >>> print(_shown_in_r((), "count", "standard_error"))
    table$count
    table$standard_error
    """
    columns = [_name_in_r(column) for column in (count, error)]
    if not margin:
        return "\n".join(f"table${column}" for column in columns)
    by = " + ".join(map(_name_in_r, margin))
    return "\n".join(f"xtabs({column} ~ {by}, data = table)" for column in columns)


def _quoted(name: str) -> str:
    """Return a name between double quotes, as Python and R both read it."""
    escaped = name.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _name_in_r(name: str) -> str:
    """Return a name as a formula of R takes it.

    >>> _name_in_r("age"), _name_in_r("birth country"), _name_in_r("next")
    ('age', '`birth country`', '`next`')
    """
    if _PLAIN_IN_R.fullmatch(name) and name not in _RESERVED_IN_R:
        return name
    escaped = name.replace("\\", "\\\\").replace("`", "\\`")
    return f"`{escaped}`"
