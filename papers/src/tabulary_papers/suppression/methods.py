"""The ways of adding noise that are compared with suppression."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from tabulary import PureDP, Table
from tabulary.confidential import Tally
from tabulary.core import CellCounts, Margin, Relation
from tabulary.mechanisms import measure
from tabulary.noise import Sampler
from tabulary.planning import Plan, plan
from tabulary.reconstruct import reconstruct


@dataclass(frozen=True)
class Method:
    """A mechanism with its reconstruction. `share` of ε is what the noise is made for: 1/2 doubles its scale."""

    label: str
    mechanism: str
    reconstruct: str = "none"
    rounding: str = "none"
    neighbours: Relation = "add-remove"
    share: str = "1"
    sums: bool = False

    def plan(self, table: Table, epsilon: object) -> Plan:
        """Return the plan for one table, and for its sums where the method measures them too."""
        attributes = table.domain.attributes
        wanted = f"[{' '.join(attributes)}]"
        if self.sums:
            wanted += "".join(f"[{attribute}]" for attribute in attributes)
        return plan(
            table.domain,
            wanted,
            privacy=PureDP(PureDP(epsilon).epsilon * PureDP(self.share).epsilon),
            neighbours=self.neighbours,
            mechanism=self.mechanism,
            reconstruct=self.reconstruct,
            rounding=self.rounding,
        )


METHODS: Mapping[str, Method] = MappingProxyType(
    {
        # The linear program keeps the codes that stand for no level at zero; plain cells need no program.
        "fourier": Method("Fourier, scale |B|/ε", "fourier", "lp", "nearest"),
        "fourier-doubled": Method("Fourier, scale 2|B|/ε", "fourier", "lp", "nearest", share="1/2"),
        "cells": Method("cells, scale 1/ε", "cells"),
        "cells-replace": Method("cells, scale 2/ε", "cells", neighbours="replace"),
        "residual": Method("residuals and least squares", "residual", "least-squares", sums=True),
    }
)
"""By name. |B| is the number of Fourier coefficients, as many as the table has cells when its levels are coded in bits.

|B|/ε is the scale of Dwork, McSherry & Talwar (2007), Theorem 4, to whom the paper refers, and it is exact: for a
person more or less as for one who moves to another cell. 2|B|/ε is what Yang, Fienberg & Rinaldo print for the latter.
"""


def noisy_tables(table: Table, made: Plan, sampler: Sampler) -> Mapping[Margin, CellCounts]:
    """Return the tables that a release of this plan would hold."""
    measurement = measure(Tally.from_table(table, made.counted), made, sampler)
    return reconstruct(measurement).tables
