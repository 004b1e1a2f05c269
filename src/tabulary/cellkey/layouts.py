"""The file layouts of perturbation tables, recognised by their header.

Three layouts, in the names of their columns:

- long, `pcv,ckey,pvalue`: one row per cell value and key; of the Office for National Statistics (ONS);
- intervals, `i;j;p;v;p_int_lb;p_int_ub`: one row per cell value i and offset v, which holds for keys in
  [p_int_lb, p_int_ub); of the R package ptable. Its export for τ-Argus leaves out `p_int_lb`;
- wide, `V1,V2,…`: column Vi holds the offsets of the cell value i, one row per key; what ptable makes with type "abs".
"""

import csv
import io
import re
from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np

from tabulary.cellkey.runs import Runs, check_modulus, runs_of_boundaries
from tabulary.core.exact_numbers import exact_fraction
from tabulary.errors import InvalidArgument, InvalidNoise, UnreadableSource

LONG, INTERVALS, WIDE = "long", "intervals", "wide"

# R's tools write eight digits of a boundary, and may round its two sides differently by one in the last digit.
_SAME_BOUNDARY = Fraction(2, 10**8)
_SAME_PROBABILITY = Fraction(1, 10**6)

_MOST_DIGITS = 18
_MOST_LINES = 10_000_000
_DIGITS = re.compile(r"[+-]?[0-9]{1,18}")


@dataclass(frozen=True)
class Read:
    """The content of a file: the rows from the cell value `first` on, the number of keys, and the layout."""

    runs: Runs
    modulus: int
    first: int
    layout: str
    rounding: Fraction = Fraction(0)


def read_csv(path: str | Path, modulus: int | None) -> Read:
    """Return the table in a file. `modulus` is for intervals only: the other layouts have one row per key."""
    called = f"the ptable file {Path(path).name!r}"
    names, lines = _lines(Path(path), called)
    if {"pcv", "ckey", "pvalue"} <= set(names):
        found = _long(names, lines, called)
    elif {"i", "v", "p_int_ub"} <= set(names):
        return _intervals(names, lines, modulus, called)
    elif any(names) and list(filter(None, names)) == [
        f"v{i}" for i in range(1, 1 + len(names) - names.count(""))
    ]:
        found = _wide(names, lines, called)
    else:
        raise UnreadableSource(
            f"{called} has none of the known headers: pcv,ckey,pvalue (ONS), i;j;p;v;p_int_lb;p_int_ub (R ptable), or "
            "V1,V2,… (R ptable, type abs). Nothing was read."
        )
    if modulus is not None and check_modulus(modulus) != found.modulus:
        raise InvalidNoise(
            f"{called} has {found.modulus} keys, one per row, but the call asked for {modulus}. Leave "
            "`modulus` out."
        )
    return found


def long_csv(runs: Runs, modulus: int, first: int) -> str:
    """Return the table in the long layout."""
    if runs.rows * modulus > _MOST_LINES:
        raise InvalidArgument(
            f"the long layout has one line per key and cell value: {runs.rows * modulus:,} lines, more than "
            f'{_MOST_LINES:,}. Write layout="intervals".'
        )
    pvalues = runs.array(modulus).reshape(-1)
    pcvs = np.repeat(np.arange(first, first + runs.rows), modulus)
    ckeys = np.tile(np.arange(modulus), runs.rows)
    lines = (f"{a},{b},{c}\n" for a, b, c in zip(pcvs, ckeys, pvalues, strict=True))
    return "pcv,ckey,pvalue\n" + "".join(lines)


def interval_csv(runs: Runs, modulus: int, first: int) -> str:
    """Return the table in the interval layout, its boundaries written out in full."""
    rest = modulus
    for prime in (2, 5):
        while rest % prime == 0:
            rest //= prime
    if rest != 1:
        raise InvalidArgument(
            f"with {modulus} keys the boundaries between them are not decimals, so the interval layout "
            'cannot store them. Write layout="long", or make the table with a power of two or of ten.'
        )
    lines = ["i;j;p;v;p_int_lb;p_int_ub\n"]
    for row in range(runs.rows):
        count = first + row
        for pvalue, start, end in runs.row(row, modulus):
            share, low, high = (_decimal(k, modulus) for k in (end - start, start, end))
            lines.append(f"{count};{count + pvalue};{share};{pvalue};{low};{high}\n")
    return "".join(lines)


def _decimal(numerator: int, denominator: int) -> str:
    # A denominator below 2**62 that divides a power of ten divides 10**62.
    return format(Context(prec=90).divide(Decimal(numerator), Decimal(denominator)), "f")


def _lines(path: Path, called: str) -> tuple[list[str], list[list[str]]]:
    """Return the names in the header, in lower case, and the fields of every other line."""
    try:
        text = path.read_text("utf-8-sig")
    except (OSError, UnicodeError):
        raise UnreadableSource(f"{called} does not exist, or is not UTF-8 text. Nothing was read.") from None
    head = text.partition("\n")[0]
    lines = [
        [field.strip() for field in line]
        for line in csv.reader(io.StringIO(text), delimiter=";" if ";" in head else ",")
        if line
    ]
    if len(lines) < 2:
        raise UnreadableSource(f"{called} is empty: it has no line after its header. Nothing was read.")
    names = [name.lower() for name in lines[0]]
    named = [name for name in names if name]
    if len(set(named)) < len(named):
        raise UnreadableSource(f"{called} has two columns with the same name. Nothing was read.")
    for number, line in enumerate(lines[1:], start=2):
        if len(line) != len(names):
            # R writes row names without a heading.
            if all(len(other) == len(names) + 1 for other in lines[1:]):
                return names, [other[1:] for other in lines[1:]]
            raise UnreadableSource(f"line {number} of {called} does not have the fields of the header.")
    return names, lines[1:]


def _integers(names: list[str], lines: list[list[str]], name: str, called: str) -> list[int]:
    place = names.index(name)
    for number, line in enumerate(lines, start=2):
        if not _DIGITS.fullmatch(line[place]):
            raise InvalidNoise(
                f"{called}: {name} in line {number} is missing or not a whole number. Nothing was read."
            )
    return [int(line[place]) for line in lines]


def _fractions(names: list[str], lines: list[list[str]], name: str, called: str) -> list[Fraction]:
    place = names.index(name)
    return [
        exact_fraction(line[place], name=f"{called}: {name} in line {number}", error=InvalidNoise)
        for number, line in enumerate(lines, start=2)
    ]


def _long(names: list[str], lines: list[list[str]], called: str) -> Read:
    pcv, ckey, pvalue = (
        np.array(_integers(names, lines, name, called)) for name in ("pcv", "ckey", "pvalue")
    )
    first, last, modulus = int(pcv.min()), int(pcv.max()), int(ckey.max()) + 1
    _check_first(first, "pcv", called)
    if ckey.min() < 0:
        raise InvalidNoise(f"{called} has a negative ckey. Keys are 0, 1, 2, …. Nothing was read.")
    rows = last - first + 1
    missing = f"{called} has a gap: each pcv from {first} to {last} needs each ckey from 0 to {modulus - 1} once, and"
    # Checked before the matrix is made: one misprinted key must not need a terabyte.
    if rows * modulus > len(lines):
        raise InvalidNoise(f"{missing} at least one combination is missing. Nothing was read.")
    cell = (pcv - first) * modulus + ckey
    if len(np.unique(cell)) < len(cell):
        raise InvalidNoise(f"{missing} at least one combination occurs twice. Nothing was read.")
    matrix = np.empty(rows * modulus, dtype=np.int64)
    matrix[cell] = pvalue
    return Read(Runs.of_array(matrix.reshape(rows, modulus)), check_modulus(modulus), first, LONG)


def _wide(names: list[str], lines: list[list[str]], called: str) -> Read:
    columns = [_integers(names, lines, name, called) for name in names if name]
    return Read(Runs.of_array(np.array(columns)), check_modulus(len(lines)), 1, WIDE)


def _intervals(names: list[str], lines: list[list[str]], modulus: int | None, called: str) -> Read:
    if "type" in names and {line[names.index("type")] for line in lines} != {"all"}:
        raise InvalidNoise(
            f"{called} is for magnitudes: it has rows for even or odd contributors. Counts need type all."
        )
    counts, offsets = (_integers(names, lines, name, called) for name in ("i", "v"))
    bounds: dict[str, list[Fraction]] = {
        name: _fractions(names, lines, name, called)
        for name in ("p_int_ub", "p_int_lb", "p")
        if name in names
    }
    if "j" in names and [i + v for i, v in zip(counts, offsets, strict=True)] != _integers(
        names, lines, "j", called
    ):
        raise InvalidNoise(f"{called} contradicts itself: in some line j is not i + v. Nothing was read.")
    first, last = min(counts), max(counts)
    _check_first(first, "i", called)
    places: dict[int, list[int]] = {count: [] for count in range(first, last + 1)}
    for place, count in enumerate(counts):
        places[count].append(place)
    rows = [_partition(count, held, offsets, bounds, called) for count, held in places.items()]
    if modulus is None:
        modulus = _decimal_modulus([upper for row in rows for upper, _ in row], called)
    runs, rounding = runs_of_boundaries(rows, check_modulus(modulus))
    return Read(runs, modulus, first, INTERVALS, rounding)


def _partition(
    count: int, places: list[int], offsets: list[int], bounds: dict[str, list[Fraction]], called: str
) -> list[tuple[Fraction, int]]:
    """Return the intervals of one cell value as upper boundaries and offsets; they must cover [0, 1) once."""
    where = f"{called}, i = {count}"
    if not places:
        raise InvalidNoise(f"{called} has a gap: there is no row i = {count}. Nothing was read.")
    row: list[tuple[Fraction, int]] = []
    reached = Fraction(0)
    for place in sorted(places, key=lambda k: bounds["p_int_ub"][k]):
        upper = bounds["p_int_ub"][place]
        lower = bounds["p_int_lb"][place] if "p_int_lb" in bounds else reached
        if abs(lower - reached) > _SAME_BOUNDARY:
            kind = "a hole" if lower > reached else "an overlap"
            raise InvalidNoise(
                f"{where}: {kind} between two intervals, which must cover [0, 1) once. Nothing was read."
            )
        if "p" in bounds and abs(bounds["p"][place] - (upper - lower)) > _SAME_PROBABILITY:
            raise InvalidNoise(f"{where}: p is not the length of its interval. Nothing was read.")
        row.append((upper, offsets[place]))
        reached = upper
    if abs(reached - 1) > _SAME_BOUNDARY:
        raise InvalidNoise(f"{where}: a hole between the last interval and 1. Nothing was read.")
    return [(min(upper, Fraction(1)), offset) for upper, offset in row[:-1]] + [(Fraction(1), row[-1][1])]


def _decimal_modulus(boundaries: list[Fraction], called: str) -> int:
    """Return the smallest power of ten at which every boundary is a whole number of keys."""
    for digits in range(1, _MOST_DIGITS + 1):
        modulus: int = 10**digits
        if all(modulus % boundary.denominator == 0 for boundary in boundaries):
            return modulus
    raise InvalidNoise(
        f"{called} has boundaries of more than {_MOST_DIGITS} digits. Say how many keys there are: modulus=…."
    )


def _check_first(first: int, name: str, called: str) -> None:
    if first not in (0, 1):
        raise InvalidNoise(
            f"{called} begins at {name} = {first}, but the cell values must begin at 0, or at 1 if zeros do "
            "not change. Nothing was read."
        )
