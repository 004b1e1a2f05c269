"""Exact amounts of a budget, and the value of a cost in the unit of an account."""

import json
from dataclasses import dataclass
from fractions import Fraction

from tabulary.core.exact_numbers import show_fraction
from tabulary.core.privacy import ZCDP, ApproxDP, Privacy, PureDP, pure_to_zcdp
from tabulary.errors import InvalidPrivacy, LedgerError
from tabulary.ledger.chain import Unsound

_SYMBOLS = {"epsilon": "ε", "delta": "δ", "rho": "ρ"}

# Python turns no integer above 4300 digits into text, and sums of unlike fractions grow: stop well before.
_COST_DIGITS = 100
_TOTAL_DIGITS = 300


@dataclass(frozen=True)
class Amount:
    """An amount of a budget, in the unit of one account; unlike a `Privacy` it may be zero.

    A pure account counts `epsilon`, an approximate one `epsilon` and `delta`, a concentrated one `rho`; the other
    fields are None. `a <= b` if every parameter of a is at most that of b.

    >>> half = Amount(epsilon=Fraction(1, 2))
    >>> print(half - half)
    ε = 0
    """

    epsilon: Fraction | None = None
    delta: Fraction | None = None
    rho: Fraction | None = None

    @classmethod
    def of(cls, privacy: Privacy) -> "Amount":
        """Return `privacy` as an amount in its own unit.

        >>> print(Amount.of(ApproxDP(1, 1e-9)))
        ε = 1, δ = 1e-9
        """
        match privacy:
            case PureDP():
                return cls(epsilon=privacy.epsilon)
            case ApproxDP():
                return cls(epsilon=privacy.epsilon, delta=privacy.delta)
            case ZCDP():
                return cls(rho=privacy.rho)

    def __add__(self, other: "Amount") -> "Amount":
        return Amount(**{name: value + other._counts(name) for name, value in self._counted().items()})

    def __sub__(self, other: "Amount") -> "Amount":
        return Amount(**{name: value - other._counts(name) for name, value in self._counted().items()})

    def __le__(self, other: "Amount") -> bool:
        return all(value <= other._counts(name) for name, value in self._counted().items())

    def share_of(self, whole: "Amount") -> Fraction | None:
        """Return the part of `whole` that this amount is, by its scarcest parameter; None if `whole` lacks one of them.

        >>> print(Amount(epsilon=Fraction(1, 2)).share_of(Amount(epsilon=Fraction(2))))
        1/4
        """
        parts = [(value, whole._counts(name)) for name, value in self._counted().items() if value]
        if not all(there for _, there in parts):
            return None
        return max((value / there for value, there in parts), default=Fraction(0))

    def __str__(self) -> str:
        return ", ".join(
            f"{_SYMBOLS[name]} = {show_fraction(value)}" for name, value in self._counted().items()
        )

    def to_privacy(self) -> Privacy | None:
        """Return the strongest spending that this amount pays for, or None if it pays for nothing.

        An amount with ε but no δ pays for pure plans only; one with δ but no ε pays for none.

        >>> print(Amount(epsilon=Fraction(1), delta=Fraction(0)).to_privacy())
        ε = 1
        """
        if self.rho is not None:
            return ZCDP(self.rho) if self.rho > 0 else None
        if not self.epsilon:
            return None
        return ApproxDP(self.epsilon, self.delta) if self.delta else PureDP(self.epsilon)

    def to_text(self) -> str:
        """Return the amount as exact text, the inverse of `from_text`.

        >>> Amount(epsilon=Fraction(3, 4)).to_text()
        '{"epsilon":"3/4"}'
        """
        return json.dumps(
            {name: str(value) for name, value in self._counted().items()}, separators=(",", ":")
        )

    @classmethod
    def from_text(cls, text: str) -> "Amount":
        """Return the amount that `to_text` wrote."""
        try:
            return cls(**{name: Fraction(value) for name, value in json.loads(text).items()})
        except (AttributeError, TypeError, ValueError, ZeroDivisionError):
            raise Unsound("has an amount that cannot be read") from None

    def _counted(self) -> dict[str, Fraction]:
        values = {"epsilon": self.epsilon, "delta": self.delta, "rho": self.rho}
        return {name: value for name, value in values.items() if value is not None}

    def _counts(self, name: str) -> Fraction:
        value: Fraction | None = getattr(self, name)
        if value is None:
            raise TypeError(f"{self} does not count {name}.")
        return value


@dataclass(frozen=True)
class Balance:
    """What an account may spend, has spent and has left; `remaining` is exactly `budget - spent`."""

    budget: Amount
    spent: Amount

    @property
    def remaining(self) -> Amount:
        """Return what is left."""
        return self.budget - self.spent


def cost_in_unit_of(budget: Privacy, cost: Privacy) -> Amount:
    """Return the amount that `cost` takes from an account with the budget `budget`.

    A pure cost counts as (ε, 0) on an approximate account and as ρ = ε²/2 on a concentrated one (Bun & Steinke
    2016, Proposition 1.4). Every other mixture needs a choice, and the ledger makes none.

    >>> print(cost_in_unit_of(ZCDP(1), PureDP("1/2")))
    ρ = 0.125
    """
    match budget, cost:
        case (PureDP(), PureDP()) | (ApproxDP(), ApproxDP()) | (ZCDP(), ZCDP()):
            return Amount.of(cost)
        case ApproxDP(), PureDP():
            return Amount(epsilon=cost.epsilon, delta=Fraction(0))
        case ZCDP(), PureDP():
            return Amount.of(pure_to_zcdp(cost))
        case _:
            remedy = {
                PureDP: "Plan with PureDP",
                ApproxDP: "Plan with PureDP or ApproxDP (zcdp_to_approx converts, once you choose a δ)",
                ZCDP: "Plan with ZCDP or PureDP (approx_to_zcdp gives the ρ that implies an (ε, δ))",
            }[type(budget)]
            raise LedgerError(
                f"the plan costs {cost}, which an account with a budget of {budget} cannot count. {remedy}, "
                "or use an account of the plan's kind. Nothing was measured, nothing was spent."
            )


def zero_in_unit_of(budget: Privacy) -> Amount:
    """Return the amount that a new account has spent.

    >>> print(zero_in_unit_of(ApproxDP(1, 1e-9)))
    ε = 0, δ = 0
    """
    return Amount.of(budget) - Amount.of(budget)


def refuse_unwieldy_privacy(privacy: Privacy) -> None:
    """Refuse a budget or a cost whose fractions are too long to add up for years."""
    if _is_longer(Amount.of(privacy), _COST_DIGITS):
        raise InvalidPrivacy(
            f"a ledger counts fractions of at most {_COST_DIGITS} digits above and below the line. "
            "Round the parameter. Nothing was measured, nothing was spent."
        )


def refuse_unwieldy_total(total: Amount) -> None:
    """Refuse a debit if the exact total would become too long a fraction."""
    if _is_longer(total, _TOTAL_DIGITS):
        raise LedgerError(
            f"with this debit the exact total of the account would need more than {_TOTAL_DIGITS} digits. "
            "Round the cost to a common denominator, for example 1/1000. Nothing was measured, nothing was "
            "spent."
        )


def _is_longer(amount: Amount, digits: int) -> bool:
    return any(max(value.numerator, value.denominator) >= 10**digits for value in amount._counted().values())
