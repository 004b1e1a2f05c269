"""What a plan measures, part by part, and how far one person can move all of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from tabulary.core.contrast_sensitivity import contrast_sensitivity
from tabulary.core.domain import Domain, Margin
from tabulary.core.neighbours import Neighbours
from tabulary.core.residual_sensitivity import residual_sensitivity
from tabulary.core.sensitivity import MarginSensitivity, margin_sensitivity
from tabulary.noise import IntegerNoise

Query = Literal["counts", "contrasts", "residuals"]
QUERIES: Mapping[str, Query] = {
    "fourier": "contrasts",
    "efron-stein": "contrasts",
    "cells": "counts",
    "margins": "counts",
    "residual": "residuals",
}


@dataclass(frozen=True)
class MeasuredMargin:
    """What is measured on one set of attributes, each number with an independent draw of the same noise.

    `counts`: every possible cell of the margin. `contrasts`: the coefficients that vary on exactly these
    attributes (`core.basis`). `residuals`: every cell of the margin, impossible ones included, with the average
    taken out of the attributes that are `centred`, in whole numbers (`core.residuals`).
    """

    margin: Margin
    noise: IntegerNoise
    query: Query = "counts"
    centred: Margin = ()

    def describe(self) -> dict[str, object]:
        """Return the part as plain data; what is centred is named where something can be."""
        described: dict[str, object] = {
            "attributes": list(self.margin),
            "query": self.query,
            "noise": dict(self.noise.describe()),
        }
        if self.query == "residuals":
            described["centred"] = list(self.centred)
        return described


def sensitivity_of(
    domain: Domain,
    parts: Sequence[tuple[Margin, Margin]],
    neighbours: Neighbours,
    *,
    query: Query,
    scales: Sequence[Fraction] | None = None,
    squared_scales: Sequence[Fraction] | None = None,
) -> MarginSensitivity:
    """Return the sensitivity of counts, contrasts or residuals on these sets of attributes, some centred."""
    if query == "residuals":
        return residual_sensitivity(domain, parts, neighbours, scales=scales, squared_scales=squared_scales)
    of = margin_sensitivity if query == "counts" else contrast_sensitivity
    margins = [margin for margin, _ in parts]
    return of(domain, margins, neighbours, scales=scales, squared_scales=squared_scales)
