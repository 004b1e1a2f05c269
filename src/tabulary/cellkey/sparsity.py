"""The rule of table builders with cell keys that refuses tables with too many small counts."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from tabulary.cellkey.table import CellKeyTable
from tabulary.core.exact_numbers import exact_fraction
from tabulary.core.workload import show_margin
from tabulary.errors import InvalidArgument, TableRefused


@dataclass(frozen=True, init=False)
class Sparsity:
    r"""A rule that refuses a table with too many ones and twos. Depends on the data, through perturbed counts only.

    Of c cells, c₀ are 0, c₁ are 1 and c₂ are 2. The table is refused if c = c₀, if c₁ / (c - c₀) > `ones`, or if
    (c₁ + c₂) / (c - c₀) > `ones_and_twos`: the SparsityCheck module of SuperSTAR, with its default thresholds of 1/4
    and 1/2 (WingArc Australia, SuperSTAR documentation, "Sparsity"). SuperSTAR recommends that it look at the exact
    numbers of contributors. This one looks at the perturbed counts, before any of them is withheld: a refusal that
    depended on exact ones would say something about them that nothing has perturbed. So where a ptable publishes no
    ones and twos, it refuses empty tables only.

    >>> from tabulary.core.domain import Domain
    >>> Sparsity()
    Sparsity(ones=Fraction(1, 4), ones_and_twos=Fraction(1, 2))
    >>> table = CellKeyTable(Domain({"a": "wxyz"}), np.ma.MaskedArray([1, 7, 9, 0]), {})
    >>> Sparsity().is_too_sparse(table), Sparsity(ones="1/2").is_too_sparse(table)
    (True, False)
    """

    ones: Fraction
    ones_and_twos: Fraction

    def __init__(self, ones: object = Fraction(1, 4), ones_and_twos: object = Fraction(1, 2)) -> None:
        for name, given in (("ones", ones), ("ones_and_twos", ones_and_twos)):
            share = exact_fraction(given, name=f"the largest share of {name}", error=InvalidArgument)
            if not 0 <= share <= 1:
                raise InvalidArgument(f"the largest share of {name} is a number from 0 to 1, not {given!r}.")
            object.__setattr__(self, name, share)

    def is_too_sparse(self, table: CellKeyTable) -> bool:
        """Return whether a table, perturbed and with nothing withheld, has too many ones and twos."""
        counts = table.counts.data
        shown, ones, twos = (int(np.count_nonzero(found)) for found in (counts, counts == 1, counts == 2))
        # Compared as whole numbers: a share of exactly the threshold is not above it.
        return not shown or ones > self.ones * shown or ones + twos > self.ones_and_twos * shown

    def refuse(self, table: CellKeyTable) -> None:
        """Raise TableRefused if a table, perturbed and with nothing withheld, has too many ones and twos."""
        if self.is_too_sparse(table):
            raise TableRefused(
                f"the table {show_margin(table.margin)} is too sparse: it is empty, or too many of its counts are 1 or "
                "2. This rule depends on the data, through counts that were perturbed before it looked at them. "
                "Leave out an attribute or a filter."
            )
