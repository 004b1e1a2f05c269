"""The published face of a release: which tables are made from the measurements.

A face is post-processing: the same measurements can have many faces, and each costs nothing. The plan names the one
that is published first.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tabulary.errors import InvalidPlan, listed
from tabulary.planning.mechanism import MECHANISMS, allowing

if TYPE_CHECKING:
    from tabulary.planning.plan import Plan

RECONSTRUCTORS = ("none", "least-squares", "lp", "shift", "shrink")
ROUNDINGS = ("none", "nearest", "controlled")
CONSTRAINED = ("least-squares", "lp")
"""The reconstructions that make one non-negative full table."""
OFFICIAL = (*CONSTRAINED, "shrink")
"""The reconstructions whose tables are non-negative and agree with each other."""


@dataclass(frozen=True)
class Face:
    """A reconstruction and a rounding: what is made from the measurements.

    >>> Face.named("auto", "auto"), Face.named("none", "auto").rounding
    (Face(reconstruct='shrink', rounding='controlled'), 'none')
    """

    reconstruct: str
    rounding: str

    def __post_init__(self) -> None:
        for name, value, known in (
            ("reconstruct", self.reconstruct, RECONSTRUCTORS),
            ("rounding", self.rounding, ROUNDINGS),
        ):
            if not isinstance(value, str) or value not in known:
                raise InvalidPlan(f"{name} must be one of {listed((*known, 'auto'))}, not {value!r}.")
        if self.rounding != "none" and not self.official:
            raise InvalidPlan(
                "rounding needs tables that are non-negative and agree: reconstruct = 'shrink', 'least-squares' or "
                "'lp'."
            )
        if (self.reconstruct, self.rounding) == ("shrink", "nearest"):
            raise InvalidPlan(
                "tables rounded to the nearest whole numbers one by one no longer agree with each other. With "
                "reconstruct = 'shrink' use rounding = 'controlled'."
            )

    @classmethod
    def named(cls, reconstruct: str, rounding: str) -> "Face":
        """Return the face with these names, in which "auto" means the official one: whole, non-negative, additive."""
        chosen = "shrink" if reconstruct == "auto" else reconstruct
        whole = "controlled" if chosen in OFFICIAL else "none"
        return cls(chosen, whole if rounding == "auto" else rounding)

    def describe(self) -> dict[str, str]:
        """Return the face as plain data."""
        return {"reconstruct": self.reconstruct, "rounding": self.rounding}

    @property
    def linear(self) -> bool:
        """Whether the published tables are the linear estimates themselves."""
        return self.reconstruct == "none"

    @property
    def official(self) -> bool:
        """Whether the published tables are non-negative and agree with each other."""
        return self.reconstruct in OFFICIAL

    def whole(self, plan: "Plan") -> bool:
        """Return whether the published numbers of a plan are whole: rounded, or linear estimates that are whole."""
        return self.rounding != "none" or (self.linear and plan.query.whole)

    def check(self, plan: "Plan") -> None:
        """Raise InvalidPlan where this face cannot be made from the measurements of a plan."""
        if self.reconstruct not in plan.query.reconstructions:
            able = " or ".join(repr(name) for name in allowing(self.reconstruct))
            raise InvalidPlan(
                f"reconstruct = {self.reconstruct!r} cannot use what mechanism {plan.mechanism!r} measures: it needs "
                f"the mechanism {able}."
            )
        if self.reconstruct in (refused := MECHANISMS[plan.mechanism].refused):
            raise InvalidPlan(refused[self.reconstruct])
        if plan.neighbours.sensitive and self.reconstruct not in ("none", "shrink"):
            raise InvalidPlan(
                "with sensitive attributes some numbers are exact, and only reconstruct = 'none' and 'shrink' keep "
                "them so."
            )


LINEAR = Face("none", "none")
"""The linear estimates as they are."""
