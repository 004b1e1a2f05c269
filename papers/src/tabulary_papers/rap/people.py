"""Whose tables are asked for: made-up people, and the Adult extract where somebody has it."""

import hashlib
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import pyarrow
import pyarrow.compute
import pyarrow.csv

from tabulary import Domain, Workload
from tabulary.datasets import people, people_domain
from tabulary.errors import InvalidArgument

MADE_UP, ADULT = "made-up people", "Adult"

# Names of the columns of Adult that every version of it has; some call the income differently, or leave columns out.
_COLUMNS = frozenset({"age", "workclass", "marital-status", "occupation", "relationship", "race", "sex"})
_MOST_LEVELS = 1_000


@dataclass(frozen=True, eq=False)
class AdultPeople:
    """Records that may be looked at: public or made up. `name` is how the page calls them."""

    name: str
    domain: Domain
    table: pyarrow.Table

    @property
    def number(self) -> int:
        """How many there are."""
        return int(self.table.num_rows)


def made_up_people(number: int, *, seed: int) -> AdultPeople:
    """Return people who do not exist, of `tabulary.datasets.people`.

    >>> made_up_people(100, seed=1).domain.attributes[:2]
    ('region', 'sex')
    """
    return AdultPeople(MADE_UP, people_domain(), people(number, seed=seed))


def adult(path: Path) -> AdultPeople:
    """Return the Adult extract from a CSV file with a line of column names.

    Its levels are read off the file. A release must never do that; here the records are public, and nothing
    is released. A file that has not the columns of Adult is refused: it might be confidential.
    """
    try:
        table = pyarrow.csv.read_csv(path)
    except FileNotFoundError:
        raise InvalidArgument(f"--adult: there is no file {str(path)!r}. Nothing was done.") from None
    except (OSError, pyarrow.ArrowInvalid):
        raise InvalidArgument(f"--adult: {str(path)!r} cannot be read as CSV. Nothing was done.") from None
    missing = sorted(_COLUMNS - set(table.column_names))
    if missing or table.num_rows == 0:
        what = f"it has no column {missing[0]!r}" if missing else "it holds no record"
        raise InvalidArgument(
            f"--adult: {str(path)!r} is not the Adult extract: {what}. Nothing was done. Give the "
            "public extract as CSV; for records of your own use: tabulary study risk-utility."
        )
    levels: dict[str, list[str]] = {}
    columns = {}
    for name in table.column_names:
        column = table[name].cast(pyarrow.string()).combine_chunks()
        found = sorted(pyarrow.compute.unique(column.drop_null()).to_pylist(), key=_by_number)
        if column.null_count or len(found) > _MOST_LEVELS:
            # A number that hardly two people share makes no table.
            continue
        levels[name], columns[name] = found, column
    return AdultPeople(ADULT, Domain(levels), pyarrow.table(columns))


def _by_number(level: str) -> tuple[float, str]:
    try:
        return float(level), level
    except ValueError:
        return float("inf"), level


def fingerprint(path: Path) -> str:
    """Return a name for the content of a file, so that half a study is never finished on another."""
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()[:16]
    except OSError as problem:
        raise InvalidArgument(
            f"--adult: {str(path)!r} cannot be read: {problem.strerror}. Nothing was done."
        ) from None


def chosen_margins(domain: Domain, way: int, number: int, *, largest: int) -> Workload:
    """Return up to `number` margins of `way` attributes and at most `largest` cells, as if drawn at random.

    The order comes from hashing their names, so that the first few of many are the same as few.

    >>> domain = Domain({name: range(3) for name in "abcd"})
    >>> few, many = (chosen_margins(domain, 2, number, largest=9) for number in (2, 99))
    >>> len(few), len(many), set(few) <= set(many)
    (2, 6, True)
    """
    margins = [m for m in combinations(domain.attributes, way) if domain.cells(m) <= largest]
    order = sorted(margins, key=lambda margin: hashlib.sha256("\0".join(margin).encode()).digest())
    return Workload(domain, order[:number])
