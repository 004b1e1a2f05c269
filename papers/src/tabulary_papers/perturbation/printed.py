"""What Rinott, O'Keefe, Shlomo & Skinner (2018) print in section 5: their Table 2, and the values of δ."""

import numpy as np

from tabulary.perturb import Laplace, Normal

Law = Laplace | Normal

REACH = 5
"""Table 2 has ranges of ±0 to ±4."""

ORIGINALS = ("0", "1", "2", "3", "4", "≥ 5")

TABLE_2: dict[Law, str] = {
    Laplace(1.5, bound=7): """
        0.82 0.96 0.99 1.00 1.00
        0.64 0.96 0.99 1.00 1.00
        0.64 0.92 0.99 1.00 1.00
        0.64 0.92 0.98 1.00 1.00
        0.64 0.92 0.98 1.00 1.00
        0.64 0.92 0.98 1.00 1.00""",
    Laplace(0.5, bound=7): """
        0.63 0.78 0.87 0.93 0.96
        0.25 0.78 0.87 0.93 0.96
        0.25 0.55 0.87 0.93 0.96
        0.25 0.55 0.74 0.93 0.96
        0.25 0.55 0.74 0.85 0.96
        0.25 0.55 0.74 0.85 0.92""",
    Normal(1.5, bound=12): """
        0.57 0.70 0.81 0.89 0.94
        0.14 0.70 0.81 0.89 0.94
        0.14 0.40 0.81 0.89 0.94
        0.14 0.40 0.62 0.89 0.94
        0.14 0.40 0.62 0.78 0.94
        0.14 0.40 0.62 0.78 0.88""",
    Normal(0.5, bound=10): """
        0.54 0.63 0.71 0.78 0.84
        0.09 0.63 0.71 0.78 0.84
        0.09 0.26 0.71 0.78 0.84
        0.09 0.26 0.42 0.78 0.84
        0.09 0.26 0.42 0.57 0.84
        0.09 0.26 0.42 0.57 0.69""",
}
"""How likely a published value lies within ±0, …, ±4 of the original 0, …, 4 and ≥ 5, negatives being zero."""

PRINTED_DELTAS: dict[Law, str] = {
    Laplace(1.5, bound=7): "0.00002",
    Normal(1.5, bound=12): "0.00002",
    Laplace(0.5, bound=7): "0.008",
    Normal(0.5, bound=10): "0.008",
}
"""The δ at the head of Table 2; the text has it for no other law that is compared."""


def ranges(law: Law, original: int) -> list[float]:
    """Return how likely a published count lies within ±0, …, ±4 of the original one, negatives being zero.

    >>> [f"{chance:.2f}" for chance in ranges(Laplace(1.5, bound=7), 0)]
    ['0.82', '0.96', '0.99', '1.00', '1.00']
    """
    row = law.row(original).at_least(0)
    distance = np.abs(row.values - original)
    return [float(row.probabilities[distance <= reach].sum()) for reach in range(REACH)]
