"""What a manifest from anyone states about the published face and its words, checked against the plan."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from tabulary.core.domain import Margin
from tabulary.core.labels import Labels
from tabulary.errors import PublicError
from tabulary.planning import ErrorCurve, Face, Measurement, Plan
from tabulary.reconstruct.reconstruction import OfficialTables, Reconstruction, reconstruct
from tabulary.release.folder import MANIFEST


@dataclass(frozen=True)
class StatedFace:
    """The face that a manifest states: its name, its facts, and the curves of its errors."""

    face: Face
    facts: Mapping[str, Any]
    curves: Mapping[Margin, ErrorCurve]

    def made(self, measurement: Measurement, counts: Mapping[Margin, NDArray[Any]]) -> Reconstruction:
        """Return the face with the tables of the folder; one that follows from the plan is made anew."""
        if not self.face.official:
            return reconstruct(measurement, self.face)
        return OfficialTables(measurement, self.face, counts, self.facts, lambda: self.curves)


def stated_face(plan: Plan, manifest: Mapping[str, Any], note: Callable[[str], None]) -> StatedFace | None:
    """Return the face that a manifest states for this plan; tell `note` what is wrong with it."""
    try:
        match manifest["face"]:
            case {
                "reconstruct": str(reconstructed),
                "rounding": str(rounding),
                "facts": dict(facts),
                "errors": list(errors),
                **rest,
            } if not rest and all(isinstance(value, str | int | float) for value in facts.values()):
                face = Face(reconstructed, rounding)
                face.check(plan)
                curves = {
                    tuple(each["attributes"]): ErrorCurve.from_description(
                        {name: value for name, value in each.items() if name != "attributes"}
                    )
                    for each in errors
                }
                if curves.keys() == (set(plan.estimator.covered) if face.official else set()):
                    return StatedFace(face, facts, curves)
    except PublicError as problem:
        note(f"{MANIFEST}: 'face' does not hold: {problem}")
        return None
    except (AttributeError, LookupError, TypeError, ValueError):
        pass
    note(f"{MANIFEST} does not state the published face the way Tabulary does.")
    return None


def stated_words(
    plan: Plan, manifest: Mapping[str, Any], note: Callable[[str], None]
) -> tuple[tuple[Labels, ...], Margin] | None:
    """Return the labels in every language, and the attributes whose unknown values left a record out.

    Tells `note` what is wrong with them.
    """
    try:
        labels = tuple(Labels.from_description(each) for each in manifest["labels"])
        dropping = plan.domain.margin(manifest["counted"]["left_out_if_unknown"])
        for each in labels:
            each.check(plan.domain)
    except PublicError as problem:
        note(f"{MANIFEST}: its words do not hold: {problem}")
        return None
    except (AttributeError, LookupError, TypeError, ValueError):
        note(f"{MANIFEST} does not state its labels and who is counted the way Tabulary does.")
        return None
    return labels, dropping
