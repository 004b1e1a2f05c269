"""A table from a dataset without differential privacy: its published counts and the service's statement."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tabulary.core.domain import Domain, Margin
from tabulary.core.long_form import TableForm, long_columns, value_name
from tabulary.errors import InvalidTable

if TYPE_CHECKING:
    import pandas


@dataclass(frozen=True, eq=False)
class RemoteCellKeyTable(TableForm):
    """Counts perturbed by a method that is NOT differentially private, as a table builder publishes them.

    `counts` is a masked array; withheld counts are masked. The law of the errors is not known, so this is not a
    `ReleasedTable`, and the functions of `tb.infer` do not accept it. `promise` is the service's own statement, and
    `perturbation` its description of the method.

    >>> table = RemoteCellKeyTable(Domain({"sex": ["F", "M"]}), np.ma.masked_less([12, 3], 10), "NOT …")
    >>> table
    <RemoteCellKeyTable sex 2, not differentially private>
    >>> table["F"], table["M"], table.counts.tolist()
    (12, None, [12, None])
    """

    domain: Domain
    counts: "np.ma.MaskedArray[Any, np.dtype[np.int64]]"
    promise: str
    perturbation: Mapping[str, object] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if np.shape(self.counts) != self.domain.shape:
            raise InvalidTable(
                f"the domain's shape is {self.domain.shape} but the array's is {np.shape(self.counts)}."
            )

    @property
    def margin(self) -> Margin:
        """The attributes of this table, in its own order."""
        return self.domain.attributes

    def __getitem__(self, labels: str | int | tuple[str | int, ...]) -> int | None:
        """Return one published count by its labels, in the order of the attributes; None if it is withheld."""
        given = labels if isinstance(labels, tuple) else (labels,)
        if len(given) != len(self.margin):
            raise InvalidTable(
                f"a cell of this table has {len(self.margin)} labels, one for each of {list(self.margin)}."
            )
        index = tuple(self.domain.code(a, level) for a, level in zip(self.margin, given, strict=True))
        return None if np.ma.getmaskarray(self.counts)[index] else int(self.counts.data[index])

    def columns(self) -> dict[str, NDArray[Any]]:
        """Return the table in long form: the attributes, then `count`; None for a withheld count."""
        counts = np.array(self.counts.reshape(-1).tolist(), dtype=object)
        return long_columns(self.domain, {value_name("count", self.margin): counts})

    def to_pandas(self) -> "pandas.DataFrame":
        """Return the table in long form as a pandas frame; a withheld count is missing."""
        frame = super().to_pandas()
        return frame.astype({frame.columns[-1]: "Int64"})

    def __repr__(self) -> str:
        shown = " × ".join(f"{a} {len(self.domain.levels_of(a))}" for a in self.margin)
        return f"<RemoteCellKeyTable {shown or 'total'}, not differentially private>"
