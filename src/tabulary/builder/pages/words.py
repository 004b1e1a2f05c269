"""The sentences of pages: the protection of a dataset, the accuracy of a table, and the result of a test."""

from collections.abc import Mapping
from typing import Any

from tabulary.builder.pages.choices import Levels, Names
from tabulary.builder.service import ServedDataset
from tabulary.core.privacy import privacy_from_description
from tabulary.planning import show_width
from tabulary.release.svg import show_count
from tabulary.workflows.answering.answers import ProtectionMethod

SUMMARY = {
    ProtectionMethod.fixed: (
        "Differentially private. Noise was added once, for all tables together. You can ask as often as you like: the "
        "same question always has the same answer."
    ),
    ProtectionMethod.interactive: (
        "Differentially private. Every new question is paid for from a privacy budget. To ask, you need a token."
    ),
    ProtectionMethod.cell_key: (
        "Not differentially private. Counts are perturbed by cell keys. This prevents some attacks, but not all."
    ),
    ProtectionMethod.released: (
        "Differentially private. All numbers come from one published release. This service holds no records and no "
        "budget: you can ask as often as you like."
    ),
}
"""How a dataset is protected, in one sentence or two."""

ACCURACY = "Each count will be within ±{} of the truth, 19 times out of 20."
UNKNOWN = "How far a count may be off is not known in advance."
PRICE = "Asking costs {}, once: asked again, by anyone, it is free."
FREE = "This question was paid for already. Asking it again is free."

_UNLIKELY, _VERY_UNLIKELY = 0.05, 0.001


def variable_name(dataset: ServedDataset, attribute: str, names: Names) -> str:
    """Return what a variable is called."""
    return attribute if names is Names.codes else dataset.variables[attribute].label


def level_name(dataset: ServedDataset, attribute: str, level: str, names: Names) -> str:
    """Return what a level is called."""
    return level if names is Names.codes else dataset.variables[attribute].level(level)


def size_sentence(cells: int) -> str:
    """Return how large a table is.

    >>> size_sentence(1), size_sentence(12000)
    ('1 cell', '12,000 cells')
    """
    return f"{cells:,} cell" + ("" if cells == 1 else "s")


def accuracy_sentence(half_width: float | None) -> str:
    """Return a sentence about the error of counts, given the plan's error of the worst cell (None: not known).

    >>> accuracy_sentence(35)
    'Each count will be within ±35 of the truth, 19 times out of 20.'
    """
    if half_width is None:
        return UNKNOWN
    return ACCURACY.format(show_width(half_width))


def price_sentence(price: Mapping[str, str] | None, method: ProtectionMethod) -> str:
    """Return a sentence about the price of a question; empty if no question ever costs.

    >>> price_sentence({"kind": "zcdp", "rho": "1/16"}, ProtectionMethod.interactive)
    'Asking costs ρ = 0.0625, once: asked again, by anyone, it is free.'
    """
    if method is not ProtectionMethod.interactive:
        return ""
    if price is None:
        return FREE
    return PRICE.format(privacy_from_description(price))


def cell_name(dataset: ServedDataset, cell: Levels, names: Names) -> str:
    """Return the name of a cell by its levels, or of the sum over all of them."""
    return ", ".join(level_name(dataset, a, level, names) for a, level in cell) or "everyone"


def chance(p_value: float) -> str:
    """Return a p-value for a reader.

    >>> chance(0.00002), chance(0.0316), chance(0.74)
    ('p < 0.001', 'p = 0.032', 'p = 0.74')
    """
    if p_value < _VERY_UNLIKELY:
        return f"p < {_VERY_UNLIKELY}"
    return f"p = {p_value:.2g}" if p_value >= 0.1 else f"p = {p_value:.3f}"


def difference_sentences(found: Mapping[str, Any], first: str, second: str) -> tuple[str, str]:
    """Return sentences about the difference of two cells, and whether it is real.

    >>> found = {"estimate": 20.0, "lower_95": -15.0, "upper_95": 55.0, "p_value": 0.26}
    >>> for sentence in difference_sentences(found, "women", "men"):
    ...     print(sentence)
    Cannot be told: noise alone may have made this difference (p = 0.26).
    women minus men is 20; the true difference is between −15 and 55, 19 times out of 20.
    """
    size = (
        f"{first} minus {second} is {show_count(round(found['estimate']))}; the true difference is between "
        f"{show_count(round(found['lower_95']))} and {show_count(round(found['upper_95']))}, 19 times out of 20."
    )
    p = chance(found["p_value"])
    if found["p_value"] < _VERY_UNLIKELY:
        return f"Real: noise alone would hardly ever make such a difference ({p}).", size
    if found["p_value"] <= _UNLIKELY:
        return f"A hint: noise alone would seldom make such a difference ({p}).", size
    return f"Cannot be told: noise alone may have made this difference ({p}).", size


def independence_sentences(found: Mapping[str, Any], first: str, second: str) -> tuple[str, str]:
    """Return sentences that say whether two variables depend on each other, and the basis of the answer.

    >>> found = {"statistic": 3.2, "degrees_of_freedom": 2, "p_value": 0.2}
    >>> print(independence_sentences(found, "Sex", "Age")[0])
    Cannot be told: chance and noise together may have made what connects Sex and Age here (p = 0.2).
    """
    freedom = found["degrees_of_freedom"]
    basis = (
        f"Noise-aware test of independence: statistic {found['statistic']:.2f} on {freedom} "
        f"degree{'' if freedom == 1 else 's'} of freedom."
    )
    p = chance(found["p_value"])
    if found["p_value"] < _VERY_UNLIKELY:
        return f"Real: {first} and {second} depend on each other, beyond chance and noise ({p}).", basis
    if found["p_value"] <= _UNLIKELY:
        return (
            f"A hint: chance and noise together would seldom connect {first} and {second} so much ({p}).",
            basis,
        )
    return (
        f"Cannot be told: chance and noise together may have made what connects {first} and {second} here ({p}).",
        basis,
    )
