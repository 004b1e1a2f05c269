"""Decisions: what was asked, whether it was answered, and why. All of it is public, and anyone can repeat it."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from tabulary.errors import InvalidTable
from tabulary.table_samplers.partial_table import CellQuestion, SplitQuestion, TableQuestion


@dataclass(frozen=True)
class TotalQuestion:
    """The question: how many of all the people have the attribute?"""


SAFE = "an unsafe answer is unlikely enough"
FOLLOWS = "it follows from what is released"
UNSAFE = "an unsafe answer is too likely"
NOT_CERTIFIED = "the probability of an unsafe answer could not be certified"


@dataclass(frozen=True)
class Decision:
    """One decision of a suppressor, made before the answer was looked up.

    `labels` name what was asked about: the levels of a cell; of a split the attribute and its two parts; of the total
    nothing. `unsafe` is the probability that the answer would be unsafe, or the number of simulated answers that were,
    out of `draws`; None where it could not be found. The question is answered where `unsafe` is at most `limit`.
    `error` bounds what the computation leaves uncertain, and `diagnostics` say how a simulation went. `value` is the
    answer, which is looked up after the decision; None where there is none.
    """

    question: TotalQuestion | TableQuestion
    labels: tuple[str, ...]
    released: bool
    reason: str
    unsafe: float | None
    limit: float
    sampler: str
    draws: int | None = None
    error: float = 0.0
    diagnostics: Mapping[str, float] = field(default_factory=dict)
    value: int | None = None

    def __post_init__(self) -> None:
        if self.value is not None and not self.released:
            raise InvalidTable("a decision not to release has an answer.")
        object.__setattr__(self, "diagnostics", MappingProxyType(dict(self.diagnostics)))

    @property
    def asked(self) -> str:
        """What was asked, in words.

        >>> Decision(SplitQuestion(0, 0, 1), ("eye", "blue", "brown"), False, UNSAFE, 0.3, 0.02, "exact").asked
        'eye: blue apart from brown'
        """
        match self.question:
            case TotalQuestion():
                return "the total"
            case SplitQuestion():
                attribute, first, second = self.labels
                return f"{attribute}: {first} apart from {second}"
            case CellQuestion():
                return ", ".join(self.labels)

    def describe(self) -> dict[str, Any]:
        """Return the decision as plain data, the inverse of `from_description`."""
        return {
            "question": _described(self.question),
            "labels": list(self.labels),
            "released": self.released,
            "value": self.value,
            "reason": self.reason,
            "unsafe": self.unsafe,
            "limit": self.limit,
            "sampler": self.sampler,
            "draws": self.draws,
            "error": self.error,
            # JSON knows no infinity: a figure that could not be had is null.
            "diagnostics": {
                name: figure if math.isfinite(figure) else None for name, figure in self.diagnostics.items()
            },
        }

    @classmethod
    def from_description(cls, description: object) -> "Decision":
        """Return the decision that `describe` wrote; refuse anything else."""
        match description:
            case {
                "question": question,
                "labels": list(labels),
                "released": bool(released),
                "value": int() | None as value,
                "reason": str(reason),
                "unsafe": float() | int() | None as unsafe,
                "limit": float() | int() as limit,
                "sampler": str(sampler),
                "draws": int() | None as draws,
                "error": float() | int() as error,
                "diagnostics": dict(diagnostics),
                **rest,
            } if not rest:
                asked = _question(question)
                _check_labels(asked, labels)
                if released and value is None:
                    raise InvalidTable("a decision to release has no answer.")
                return cls(
                    asked,
                    tuple(map(str, labels)),
                    released=released,
                    reason=reason,
                    unsafe=unsafe,
                    limit=limit,
                    sampler=sampler,
                    draws=draws,
                    error=error,
                    diagnostics={
                        str(name): math.nan if figure is None else figure
                        for name, figure in diagnostics.items()
                    },
                    value=value,
                )
        raise InvalidTable("the description of a decision is not in the form that Tabulary writes.")


def _described(question: TotalQuestion | TableQuestion) -> dict[str, Any]:
    match question:
        case TotalQuestion():
            return {"of": "total"}
        case SplitQuestion(axis, group, cut):
            return {"of": "split", "axis": axis, "group": group, "cut": cut}
        case CellQuestion(index):
            return {"of": "cell", "index": list(index)}


def _question(description: object) -> TotalQuestion | TableQuestion:
    match description:
        case {"of": "total"}:
            return TotalQuestion()
        case {"of": "split", "axis": int(axis), "group": int(group), "cut": int(cut)}:
            return SplitQuestion(axis, group, cut)
        case {"of": "cell", "index": list(index)} if all(isinstance(i, int) for i in index):
            return CellQuestion(tuple(index))
    raise InvalidTable("the description of a question is not in the form that Tabulary writes.")


def _check_labels(question: TotalQuestion | TableQuestion, labels: list[Any]) -> None:
    match question:
        case TotalQuestion():
            wanted = 0
        case SplitQuestion():
            wanted = 3
        case CellQuestion(index):
            wanted = len(index)
    if len(labels) != wanted:
        raise InvalidTable("the labels of a decision do not fit its question.")
