"""In which names the attributes are measured: as they are, or written as bits."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

from numpy.typing import NDArray

from tabulary.core.arrays import Floats
from tabulary.core.basis import Number
from tabulary.core.bits import binary_domain, bits_of, from_bits, to_bits
from tabulary.core.domain import Domain, Margin
from tabulary.core.neighbours import Neighbours
from tabulary.planning.accuracy import CellErrors, WeightedErrors


@dataclass(frozen=True)
class Levels:
    """Attributes as they are: what is measured has the names of the domain."""

    domain: Domain

    name: ClassVar[str] = "levels"
    """Its name in a plan."""
    pads: ClassVar[bool] = False
    """Whether it adds cells that hold nobody."""

    @property
    def measured_domain(self) -> Domain:
        """The domain in which measured sets are named."""
        return self.domain

    def margin(self, margin: Margin) -> Margin:
        """Return a margin of the domain in the names of the measured one."""
        return margin

    def attributes(self, named: Margin) -> Margin:
        """Return the attributes of the domain that these measured names belong to."""
        return named

    def neighbours(self, neighbours: Neighbours) -> Neighbours:
        """Return the neighbouring relation in the names of the measured domain."""
        return replace(neighbours, sensitive=self.margin(neighbours.sensitive))

    def encode(self, margin: Margin, table: NDArray[Number]) -> NDArray[Number]:
        """Return the table on `margin` in the names of the measured domain."""
        return table

    def decode(self, margin: Margin, table: Floats) -> Floats:
        """Return the table on `margin` from one in the names of the measured domain."""
        return table

    def decode_law(self, margin: Margin, law: CellErrors | WeightedErrors) -> CellErrors | WeightedErrors:
        """Return the law of the errors of the table on `margin` from that of the table that `decode` reads."""
        return law


class Bits(Levels):
    """Attributes as binary ones that hold the number of the level (`core.bits`). Some codes have no level."""

    name = "bits"
    pads = True

    @cached_property
    def measured_domain(self) -> Domain:
        """The domain of the bits; codes without a level are impossible."""
        return binary_domain(self.domain)

    def margin(self, margin: Margin) -> Margin:
        """Return the bits of these attributes."""
        return bits_of(self.domain, margin)

    def attributes(self, named: Margin) -> Margin:
        """Return the attributes that these bits belong to."""
        return self.domain.margin({self._owners[bit] for bit in named})

    def encode(self, margin: Margin, table: NDArray[Number]) -> NDArray[Number]:
        """Return the table over the bits, zero where a code has no level."""
        return to_bits(self.domain, margin, table)

    def decode(self, margin: Margin, table: Floats) -> Floats:
        """Return the table over the levels; what stands at other codes is dropped."""
        return from_bits(self.domain, margin, table)

    def decode_law(self, margin: Margin, law: CellErrors | WeightedErrors) -> CellErrors | WeightedErrors:
        """Return the law of the cells that have a level."""
        sides = [2 ** len(bits_of(self.domain, (a,))) for a in margin]
        return law.reshape(sides).at(tuple(slice(len(self.domain.levels_of(a))) for a in margin))

    @cached_property
    def _owners(self) -> dict[str, str]:
        return {bit: a for a in self.domain.attributes for bit in bits_of(self.domain, (a,))}


ENCODINGS: Mapping[str, type[Levels]] = {Levels.name: Levels, Bits.name: Bits}
"""Every encoding by its name in a plan."""
