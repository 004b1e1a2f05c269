"""A table on a terminal: with its error bars, its totals and its labels."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import product

import numpy as np
from rich.table import Table as Grid
from rich.text import Text

from tabulary.cli.console import output
from tabulary.core.labels import Labels
from tabulary.planning import show_width
from tabulary.release import ReleasedTable
from tabulary.release.totals import TOTAL, TotalledTable, labelled_totals

# A terminal can show a table with this many columns and rows and stay readable.
_MOST_COLUMNS, _MOST_ROWS = 12, 60
_SHORTEST_BAR, _LONGEST_BAR = 10, 40
# What the labels of rows need at least.
_STUB = 16
_NO_LABELS = Labels()


def print_released(
    table: ReleasedTable | TotalledTable, confidence: float, labels: Labels = _NO_LABELS
) -> None:
    """Print a released table with its error bars, with or without totals; codes stand beside their labels."""
    shape = table.domain.shape
    title = f"{labels.table_name(table.domain.attributes)}, ±{confidence:.0%}"
    wide = len(shape) < 2 or shape[-1] > _MOST_COLUMNS
    rows = None if wide else _print_cross_table(table, title, confidence, labels)
    if rows is None and not wide and labels.variables:
        codes = labelled_totals(Labels(total=labels.total), table.domain.attributes)
        rows = _print_cross_table(table, title, confidence, codes)
        if rows is not None:
            _print_key(table, labels)
    if rows is None:
        rows = _print_list(table, title, confidence, labels)
    if rows > _MOST_ROWS:
        output.print(f"… and {rows - _MOST_ROWS:,} more rows: the CSV and Parquet files contain all of them.")
    _print_legend(table)
    _print_words(table, labels)


def _print_cross_table(
    table: ReleasedTable | TotalledTable, title: str, confidence: float, labels: Labels
) -> int | None:
    """Print the last attribute across and the others down, in blocks; return the number of rows.

    Nothing is printed, and None comes back, where the terminal is so narrow that words and numbers would be broken.
    """
    *down, across = table.domain.attributes
    *above, columns = [_levels(table, labels, a) for a in table.domain.attributes]
    lines = (-1, len(columns))
    numbers = np.asarray(table.counts, dtype=np.float64).reshape(lines).tolist()
    widths = np.asarray(table.half_widths(confidence), dtype=np.float64).reshape(lines).tolist()
    # If all half-widths are the same, the title states them once. This leaves space for the counts.
    different = {half for halves in widths for half in halves} - {0}
    shared = different.pop() if len(different) == 1 else None
    shown = title if shared is None else f"{title}: every count ±{show_width(shared)}"
    texts = [
        [
            _cell(count, half) if half != shared else show_width(count)
            for count, half in zip(*row, strict=True)
        ]
        for row in zip(numbers[:_MOST_ROWS], widths, strict=False)
    ]
    grid = Grid(title=Text(shown), title_justify="left")
    stubs = [_name(labels, attribute) for attribute in down]
    stubs[-1] += f" \\ {_name(labels, across)}"
    for name in stubs:
        grid.add_column(Text(name), overflow="fold")
    # Long labels wrap first, then a number stands above its error.
    named = list(zip(columns, zip(*texts, strict=True), strict=True))
    whole = [max(map(len, (name, *column))) for name, column in named]
    wrapped = [max(map(len, (*name.split(), *column))) for name, column in named]
    narrow = [_longest_word((name, *column)) for name, column in named]
    heads_whole = [max(map(len, (name, *given))) for name, given in zip(stubs, above, strict=True)]
    least = sum(min(_STUB, _longest_word((name, *given))) for name, given in zip(stubs, above, strict=True))
    room = output.width - 3 * len(columns + stubs) - 1
    fitting = [widths for widths in (wrapped, narrow) if sum(widths) + least <= room]
    fits_whole = sum(whole + heads_whole) <= room
    if not fits_whole and not fitting:
        return None
    for name, width in zip(columns, whole if fits_whole else fitting[0], strict=True):
        grid.add_column(Text(name), justify="right", overflow="fold", width=width)
    for (heads, ends), row in zip(_row_heads(above), texts, strict=False):
        grid.add_row(*map(Text, heads), *row, end_section=ends)
    output.print(grid)
    return len(widths)


def _print_key(table: ReleasedTable | TotalledTable, labels: Labels) -> None:
    """Print the labels of the codes in a table."""
    for attribute in table.domain.attributes:
        levels = zip(_levels(table, labels, attribute), table.domain.levels_of(attribute), strict=True)
        if named := [label for label, code in levels if code not in (label, TOTAL)]:
            line = f"{_name(labels, attribute)}: {'; '.join(named)}"
            output.print(line, style="dim", markup=False, emoji=False, highlight=False)


def _print_list(table: ReleasedTable | TotalledTable, title: str, confidence: float, labels: Labels) -> int:
    """Print one row per number, with a bar for those that are no totals; return the number of rows."""
    domain = table.domain
    names = [_name(labels, attribute) for attribute in domain.attributes]
    levels = [_levels(table, labels, attribute) for attribute in domain.attributes]
    counts, widths = (array.reshape(-1).tolist() for array in (table.counts, table.half_widths(confidence)))
    summed = [TOTAL in codes for codes in product(*domain.levels)]
    top = max([c + h for c, h, is_sum in zip(counts, widths, summed, strict=True) if not is_sum] + [1])
    cells = [_cell(count, half) for count, half in zip(counts[:_MOST_ROWS], widths, strict=False)]
    # Bars take what the labels and the numbers leave.
    used = [max(map(len, (name, *given))) for name, given in zip(names, levels, strict=True)]
    room = min(output.width - sum(used) - max(map(len, cells)) - 3 * len(used) - 8, _LONGEST_BAR)
    bars = len(counts) <= _MOST_ROWS and room >= _SHORTEST_BAR
    grid = Grid(title=Text(title), title_justify="left")
    for name in names:
        grid.add_column(Text(name), overflow="fold")
    grid.add_column("count", justify="right", no_wrap=True)
    if bars:
        grid.add_column("0", justify="left", no_wrap=True)
    rows = zip(_row_heads(levels), cells, counts, widths, summed, strict=False)
    for (heads, ends), cell, count, half, is_sum in rows:
        bar = [] if not bars else [""] if is_sum else [_bar(count, half, top, room)]
        grid.add_row(*map(Text, heads), cell, *bar, end_section=ends)
    output.print(grid)
    return len(counts)


def _longest_word(texts: Iterable[str]) -> int:
    return max(len(word) for text in texts for word in text.split())


def _row_heads(levels: Sequence[Sequence[str]]) -> Iterator[tuple[tuple[str, ...], bool]]:
    """Yield the labels of each row, a repeated one left empty, and whether a block ends below it."""
    before: tuple[str, ...] = ()
    for heads in product(*levels):
        same = next((i for i, (a, b) in enumerate(zip(heads, before, strict=False)) if a != b), 0)
        before = heads
        yield ("",) * same + heads[same:], len(heads) > 1 and heads[-1] == levels[-1][-1]


def _levels(table: ReleasedTable | TotalledTable, labels: Labels, attribute: str) -> list[str]:
    return [_beside(labels.level(attribute, code), code) for code in table.domain.levels_of(attribute)]


def _name(labels: Labels, attribute: str) -> str:
    return _beside(labels.name(attribute), attribute)


def _beside(label: str, code: str) -> str:
    """Return a label with its code, unless the code says nothing more.

    >>> _beside("Female", "F"), _beside("Sex", "sex"), _beside("Total", "_T")
    ('Female (F)', 'Sex', 'Total')
    """
    return label if code == TOTAL or label.casefold() == code.casefold() else f"{label} ({code})"


def _print_legend(table: ReleasedTable | TotalledTable) -> None:
    notes = []
    if (table.standard_errors == 0).any():
        notes.append("– is an impossible combination (a structural zero)")
    if (table.counts < 0).any():
        notes.append("a negative count is a small count plus noise")
    if notes:
        output.print("; ".join(notes).capitalize() + ".", style="dim")


def _print_words(table: ReleasedTable | TotalledTable, labels: Labels) -> None:
    """Print the publisher's notes and source."""
    for line in (*labels.remarks(table.domain.attributes), labels.source_line):
        if line:
            output.print(line, style="dim", markup=False, emoji=False)


def _cell(count: float, half_width: float) -> str:
    return "–" if half_width == 0 and count == 0 else f"{show_width(count)} ±{show_width(half_width)}"


def _bar(count: float, half_width: float, top: float, width: int) -> str:
    """Return a thick bar up to the lower end of the interval and a thin bar up to its upper end."""
    if count == 0 and half_width == 0:
        return ""

    def place(value: float) -> int:
        return max(0, min(width, round(width * value / top)))

    low, middle, high = place(count - half_width), place(count), place(count + half_width)
    return "━" * low + "─" * (middle - low) + "●" + "─" * (high - middle)
