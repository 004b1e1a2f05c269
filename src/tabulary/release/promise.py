"""The promise of a plan, in plain words.

Every page, report and manifest takes its words from here, and a release is checked against them.
"""

import math
from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction

from tabulary.core.domain import Margin
from tabulary.core.exact_numbers import show_fraction
from tabulary.core.guessing import guessing
from tabulary.core.neighbours import Neighbours
from tabulary.core.privacy import ZCDP, ApproxDP, Privacy, PureDP, zcdp_to_approx
from tabulary.errors import listed
from tabulary.planning import Plan
from tabulary.planning.words import listed_words

_EXAMPLE_DELTA = Fraction(1, 1_000_000)
_MOST_NAMED = 12
# A bound on the guess that is this high, in percent, protects hardly at all.
_LITTLE = 99


@dataclass(frozen=True)
class Promise:
    """The promise: its content, the people it protects, its condition, and its limits."""

    statement: str
    meaning: tuple[str, ...]
    protected: str
    conditions: tuple[str, ...]
    not_promised: tuple[str, ...]

    def describe(self) -> dict[str, object]:
        """Return the promise as plain data."""
        return {
            "statement": self.statement,
            "meaning": list(self.meaning),
            "protected": self.protected,
            "conditions": list(self.conditions),
            "not_promised": list(self.not_promised),
        }


def promise_of(plan: Plan) -> Promise:
    """Return the promise of `plan`. Numbers are rounded so that the promise never looks better than it is.

    The words describe `plan.privacy`. The noise may protect more, but no reader has to rely on that.

    >>> from tabulary.core.domain import Domain
    >>> from tabulary.planning import plan
    >>> promised = promise_of(plan(Domain({"sex": ["F", "M"]}), "[sex]", privacy=PureDP(1)))
    >>> promised.statement
    'This release is ε-differentially private with ε = 1.'
    >>> promised.protected
    "One person is protected: the promise compares the data with and without that person's record."
    """
    promised = _promise("This release is", plan.privacy, plan.neighbours)
    if plan.neighbours.sensitive:
        return replace(promised, not_promised=(*promised.not_promised, _unprotected(_exact_words(plan))))
    return promised


def promise_of_budget(budget: Privacy, neighbours: Neighbours) -> Promise:
    """Return the joint promise of all answers that a budget pays for, for any number of answers.

    >>> promise_of_budget(ZCDP("1/2"), Neighbours()).statement
    'All answers together are ρ-zero-concentrated differentially private with ρ = 0.5.'
    """
    promised = _promise("All answers together are", budget, neighbours)
    adaptive = (
        "The attributes, their levels, the impossible cells and the rules of what may be asked were fixed without "
        "looking at the records. All of them are public. Which tables are asked for may depend on earlier answers."
    )
    return replace(promised, conditions=(adaptive, *promised.conditions[1:]))


def _promise(subject: str, privacy: Privacy, neighbours: Neighbours) -> Promise:
    kind, meaning, joint = _kind(privacy)
    conditions = (
        "The attributes, their levels, the impossible cells and the choice of tables were fixed without "
        "looking at the records. All of them are public.",
        _bound(neighbours),
    )
    not_promised = (
        "That nothing can be learned. What these tables say about a group also applies to its members, "
        "even if they are not in the data.",
        f"That other releases from the same records are free. {joint}",
        *_public_number(neighbours),
        "That every number is close to the truth. Each number has its own error.",
    )
    return Promise(f"{subject} {kind}", meaning, _protected(neighbours), conditions, not_promised)


def _public_number(neighbours: Neighbours) -> tuple[str, ...]:
    """Return the words about the number of records where the number in the source is public."""
    if neighbours.total_is_public:
        return ("That the number of records is hidden. With 'replace' neighbours it is public.",)
    if neighbours.may_drop:
        return (
            "That the number of records in the source is hidden. With 'replace' neighbours it is public. How many of "
            "them were counted is protected: records with an unknown value are dropped, so the total has noise too.",
        )
    return ()


def exact_interactions(plan: Plan) -> dict[Margin, int]:
    """Return how many numbers each interaction without noise has, by its attributes.

    Bits count as the attributes they belong to: all bits of an attribute have noise, or none has.
    """
    found: dict[Margin, int] = {}
    for varied in plan.exact:
        interaction = plan.encoded.attributes(varied)
        values = math.prod(plan.query(varied).shape(plan.measured_domain))
        found[interaction] = found.get(interaction, 0) + values
    return found


def _interaction(attributes: Margin) -> str:
    """Return the interaction of some attributes in words: it is not the table on them.

    >>> _interaction(("sex", "age")), _interaction(("sex",))
    ('the interaction of sex and age, beyond their own tables', 'the differences between the levels of sex')
    """
    *first, last = attributes
    if not first:
        return f"the differences between the levels of {last}"
    beyond = "their own tables" if len(first) == 1 else "the tables of fewer of them"
    return f"the interaction of {', '.join(first)} and {last}, beyond {beyond}"


def _exact_words(plan: Plan) -> str:
    named = [_interaction(interaction) for interaction in exact_interactions(plan)]
    more = len(named) - _MOST_NAMED
    rest = [f"and {more:,} more, which the plan lists under 'exact'"] if more > 0 else []
    return "; ".join([*named[:_MOST_NAMED], *rest]) or "none of the interactions"


def _unprotected(exact: str) -> str:
    return (
        "That anything except the sensitive attributes is hidden. A person's other attributes, and whether "
        f"a person is in the data, are not protected. Released exactly, without noise: {exact}."
    )


def _kind(privacy: Privacy) -> tuple[str, tuple[str, ...], str]:
    match privacy:
        case PureDP(epsilon=epsilon):
            return (
                f"ε-differentially private with ε = {show_fraction(epsilon)}.",
                (
                    "One person cannot have made any published result much likelier: with or without that "
                    f"change, no outcome is more than e^ε = {likelier(epsilon)} times as likely.",
                    guess_sentence(privacy),
                ),
                "Their ε add up, and a group of k people together has k times ε.",
            )
        case ApproxDP(epsilon=epsilon, delta=delta):
            return (
                "(ε, δ)-differentially private with "
                f"ε = {show_fraction(epsilon)} and δ = {show_fraction(delta)}.",
                (
                    "One person cannot have made any published result much likelier: with or without that "
                    f"change, any set of outcomes is at most e^ε = {likelier(epsilon)} times as likely, "
                    "plus δ. The δ allows for outcomes that break the factor; it should be far smaller "
                    "than one over the number of people.",
                    guess_sentence(privacy),
                ),
                "Their ε and δ add up; for a group of k people ε grows k-fold, and δ faster than that.",
            )
        case ZCDP(rho=rho):
            implied = zcdp_to_approx(privacy, _EXAMPLE_DELTA)
            return (
                f"ρ-zero-concentrated differentially private with ρ = {show_fraction(rho)}.",
                (
                    "How much one person can change the odds of what these tables show is itself random, and "
                    "concentrated: for every α > 1 the Rényi divergence of order α is at most ρα.",
                    "That implies (ε, δ)-differential privacy for every δ at once. For δ = one in a million, "
                    f"ε = {_rounded_up(float(implied.epsilon))}.",
                    guess_sentence(privacy),
                ),
                "Their ρ add up, and a group of k people together has k² times ρ.",
            )


def guess_sentence(privacy: Privacy) -> str:
    """Return how often the best guess between two neighbours is right (`guessing`), as a sentence. Rounded up.

    >>> print(guess_sentence(ZCDP("1/2")))  # doctest: +NORMALIZE_WHITESPACE
    Take a person who knows everything else, and at first believes that both data sets that the promise compares
    are equally likely. This person's guess is right at most 74.0 % of the time. A coin is right 50 % of the time.
    """
    percent = _percent(privacy)
    little = " A parameter this large promises little." if percent >= _LITTLE else ""
    return (
        "Take a person who knows everything else, and at first believes that both data sets that the "
        f"promise compares are equally likely. This person's guess is right at most {percent} % of the "
        f"time. A coin is right 50 % of the time.{little}"
    )


def _percent(privacy: Privacy) -> Decimal:
    """Return how often the best guess between two neighbours is right, in per cent, rounded up."""
    return (100 * Decimal(guessing(privacy))).quantize(Decimal("0.1"), rounding=ROUND_CEILING)


def protection_words(privacy: Privacy, neighbours: Neighbours) -> str:
    """Return how the tables are protected, in one sentence for readers who know no statistics. It names no parameter.

    >>> print(protection_words(PureDP(1), Neighbours()))  # doctest: +NORMALIZE_WHITESPACE
    Small random changes were made to the counts, so that nobody can be sure from these tables whether any one person
    was counted; the range after each number, \u00b1, says how far it may be from the truth.
    """
    if neighbours.sensitive:
        hidden = f"what any one person's {listed_words(neighbours.sensitive)} is"
    elif neighbours.relation == "add-remove":
        hidden = "whether any one person was counted"
    else:
        hidden = "what any one person's answers are"
    if _percent(privacy) >= _LITTLE:
        effect = f"but so small ones that these tables may still show {hidden}"
    else:
        effect = f"so that nobody can be sure from these tables {hidden}"
    return (
        f"Small random changes were made to the counts, {effect}; the range after each number, ±, says how far it may "
        "be from the truth."
    )


def _protected(neighbours: Neighbours) -> str:
    if neighbours.sensitive:
        return (
            f"Only one person's values of {listed(neighbours.sensitive)} are protected: the promise "
            "compares the data with data in which these values of that person are different and everything "
            "else is the same."
        )
    many = neighbours.records > 1
    records = f"records, up to {neighbours.records:,} of them" if many else "record"
    if neighbours.relation == "add-remove":
        return (
            "One person is protected: the promise compares the data with and without that person's "
            f"{records}."
        )
    other = "any others" if many else "any other"
    return (
        f"One person's data are protected: the promise compares the data with that person's {records} and "
        f"with {other} in their place."
    )


def _bound(neighbours: Neighbours) -> str:
    if neighbours.records == 1:
        return "No person has more than one record. A person who has more is less protected."
    return f"No person has more than {neighbours.records:,} records. A person who has more is less protected."


def likelier(epsilon: Fraction) -> str:
    """Return e^ε, the factor by which one person may make an outcome likelier, rounded up to three digits.

    >>> likelier(Fraction(1))
    '2.72'
    """
    if epsilon > 700:
        return "a number beyond all use"
    return _rounded_up(math.exp(float(epsilon)))


def _rounded_up(value: float) -> str:
    # The slack covers the rounding of exp and of the conversion to a float.
    up = Context(prec=3, rounding=ROUND_CEILING).create_decimal(Decimal(value) * (1 + Decimal("1e-14")))
    return f"{up:,f}" if up < 1_000_000 else f"{up:.2e}"
