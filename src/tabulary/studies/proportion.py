"""How often tests reject, and proportions in words."""

from collections.abc import Iterable

from tabulary.core.proportion import Proportion
from tabulary.studies.selecting import numbers
from tabulary.studies.study import Row

SIGNIFICANT = 0.05
"""The level of every test: a hypothesis with a p-value up to it is rejected."""


def rejected(rows: Iterable[Row], column: str, **which: object) -> Proportion | None:
    """Return how many p-values of a column are at most 0.05, of those that there are; None where there is none.

    A fit that failed has no p-value and is no verdict, so it counts neither as a rejection nor as a trial.

    >>> rejected([{"p": 0.03}, {"p": 0.4}, {"p": None}], "p")
    Proportion(times=1, trials=2)
    >>> rejected([{"p": None}], "p") is None
    True
    """
    values = numbers(rows, column, **which)
    return Proportion(sum(value <= SIGNIFICANT for value in values), len(values)) if values else None


def shown(share: Proportion | None, form: str = ".0%", *, interval: bool = False) -> str:
    """Return a share as it is read, with its 95 % interval in brackets if wanted; a dash where there is none.

    >>> shown(Proportion(80, 100), ".1%"), shown(Proportion(80, 100), interval=True), shown(None)
    ('80.0%', '80% (71%–87%)', '–')
    """
    if share is None:
        return "–"
    if not interval:
        return f"{share.rate:{form}}"
    low, high = share.interval()
    return f"{share.rate:{form}} ({low:{form}}–{high:{form}})"
