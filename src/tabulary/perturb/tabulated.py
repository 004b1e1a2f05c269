"""Perturbations whose law depends on the original count: one row per count, the last one for all larger counts."""

from collections.abc import Iterable
from fractions import Fraction

from tabulary.noise import Tabulated
from tabulary.perturb.exact_delta import largest_delta
from tabulary.perturb.perturbation import Perturbation, Row


class RowByRow(Perturbation):
    """A perturbation with one tabulated law of noise per original count.

    `laws[a]` is added to the count a; the last law serves every larger count. The weights are whole numbers, so the
    exact δ(ε) is that of the law that is drawn, not of an approximation.
    """

    laws: tuple[Tabulated, ...]
    bound: int
    epsilon: Fraction | None = None
    sensitivity = 1

    def _settle(self, laws: Iterable[Tabulated]) -> None:
        """Set the laws, and the largest change that any of them makes."""
        object.__setattr__(self, "laws", tuple(laws))
        ends = [end for law in self.laws for end in (law.lowest, law.lowest + len(law.weights) - 1)]
        object.__setattr__(self, "bound", max(map(abs, ends)))

    @property
    def settled(self) -> int:
        """The original count whose row serves all larger ones."""
        return len(self.laws) - 1

    def row(self, original: int) -> Row:
        """Return the law of the published value of an original count."""
        law = self.drawn(original)
        return Row(original + law.lowest, law.probabilities)

    def drawn(self, original: int) -> Tabulated:
        """Return the law of what is added to an original count."""
        return self.laws[min(original, self.settled)]

    def delta_at(self, epsilon: object) -> float:
        """Return the exact δ at ε, over all pairs of neighbouring counts."""
        return largest_delta(self, epsilon, range(self.settled + 1))
