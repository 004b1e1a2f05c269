"""Made-up carriers of a gene, in groups whose sizes and chances are public: the experiment of Nabar & Mishra (2010)."""

import numpy as np

from tabulary import Domain, Table
from tabulary.datasets import Dataset
from tabulary.errors import InvalidTable

_SMALLEST, _LARGEST = 80, 200
_LOWEST, _HIGHEST = 0.3, 0.5


def carriers(rows: int = 10, columns: int = 10, *, people: int | None = None, seed: int = 2010) -> Dataset:
    """Return a table of carriers with `people` and `probability`, drawn like that of Nabar & Mishra, section 6.

    Each group holds 80 to 200 people, 100 on average unless `people` says how many there are, and the chance of
    carrying the gene, 0.3 to 0.5, depends on the column. The same seed gives the same table.

    >>> made = carriers()
    >>> made.people.total, made.table.shape
    (10000, (10, 10))
    """
    groups = rows * columns
    people = 100 * groups if people is None else people
    if rows < 1 or columns < 1:
        raise InvalidTable(f"a table needs at least one row and one column, not {rows} and {columns}.")
    if not _SMALLEST * groups <= people <= _LARGEST * groups:
        raise InvalidTable(
            f"{people:,} people cannot stand in {groups:,} groups of {_SMALLEST} to {_LARGEST} each. "
            f"Ask for {_SMALLEST * groups:,} to {_LARGEST * groups:,}."
        )
    draw = np.random.default_rng(seed)
    number = np.full(groups, _SMALLEST)
    # Some groups attract more than others, until they are full.
    pull = draw.exponential(size=groups)
    while (missing := people - int(number.sum())) > 0:
        open_groups = pull * (number < _LARGEST)
        arriving = draw.multinomial(missing, open_groups / open_groups.sum())
        number = np.minimum(number + arriving, _LARGEST)
    chance = np.broadcast_to(draw.uniform(_LOWEST, _HIGHEST, columns).round(2), (rows, columns))
    domain = Domain({"row": range(1, rows + 1), "column": range(1, columns + 1)})
    sizes = number.reshape(rows, columns)
    return Dataset(
        name="carriers",
        title="Carriers of a gene in made-up groups",
        source="Drawn as section 6 of Nabar & Mishra (2010) describes",
        corrections=(),
        notes=("These people do not exist.",),
        meanings={"row": "a public attribute", "column": "another, on which the chance depends"},
        table=Table(domain, draw.binomial(sizes, chance)),
        people=Table(domain, sizes),
        probability=Table(domain, chance.astype(np.float64)),
    )
