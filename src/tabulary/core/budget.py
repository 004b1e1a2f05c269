"""Budgets of one kind of promise side by side: they differ in ε, with the same δ, or in ρ."""

from collections.abc import Iterable
from fractions import Fraction

from tabulary.core.privacy import ZCDP, ApproxDP, Privacy, PureDP
from tabulary.errors import InvalidArgument


def amount(privacy: Privacy) -> Fraction:
    """Return the number by which budgets of one kind differ: ε, or ρ."""
    return privacy.rho if isinstance(privacy, ZCDP) else privacy.epsilon


def symbol(privacy: Privacy) -> str:
    """Return the letter of that number."""
    return "ρ" if isinstance(privacy, ZCDP) else "ε"


def column(privacy: Privacy) -> str:
    """Return the name of a column with that number."""
    return "rho" if isinstance(privacy, ZCDP) else "epsilon"


def show_amount(value: float | Fraction) -> str:
    """Return an amount for a reader.

    >>> show_amount(0.125), show_amount(Fraction(1, 3)), show_amount(8)
    ('0.125', '0.3333', '8')
    """
    return f"{float(value):.4g}"


def scaled(privacy: Privacy, factor: Fraction) -> Privacy:
    """Return the promise with `factor` times the ε, or its square times the ρ: about as much less error either way.

    >>> print(scaled(PureDP(1), Fraction(1, 8)), "|", scaled(ZCDP("1/8"), Fraction(2)))
    ε = 0.125 | ρ = 0.5
    """
    if isinstance(privacy, ZCDP):
        return ZCDP(privacy.rho * factor**2)
    return with_amount(privacy, privacy.epsilon * factor)


def with_amount(privacy: Privacy, value: object) -> Privacy:
    """Return the same kind of promise with another ε and the same δ, or with another ρ."""
    if isinstance(privacy, ApproxDP):
        return ApproxDP(value, privacy.delta)
    return ZCDP(value) if isinstance(privacy, ZCDP) else PureDP(value)


def given_amounts(
    own: Privacy, *, epsilons: Iterable[object] = (), rhos: Iterable[object] = ()
) -> tuple[Privacy, ...]:
    """Return promises of the kind of `own` with these amounts, in ascending order; refuse amounts of another kind.

    >>> print(*given_amounts(ApproxDP(1, 1e-9), epsilons=["2", "1/2", 2]), sep="; ")
    ε = 0.5, δ = 1e-9; ε = 2, δ = 1e-9
    """
    epsilons, rhos = list(epsilons), list(rhos)
    wrong, other = (epsilons, "ε") if isinstance(own, ZCDP) else (rhos, "ρ")
    if wrong:
        raise InvalidArgument(
            f"amounts of {other} are given, but the plan promises {own}. Nothing was done. Give amounts of "
            f"{symbol(own)}."
        )
    return ascending(with_amount(own, value) for value in (*epsilons, *rhos))


def ascending(promises: Iterable[Privacy]) -> tuple[Privacy, ...]:
    """Return promises of one kind, each once, the smallest budget first."""
    found = {amount(each): each for each in promises}
    return tuple(found[value] for value in sorted(found))
