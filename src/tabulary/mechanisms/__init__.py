"""The only bridge from a Tally to a Measurement: one file per mechanism."""

from collections.abc import Callable, Mapping

from tabulary.confidential.dropping import refuse_public_total
from tabulary.confidential.tally import Tally
from tabulary.confidential.weights import refuse_weights
from tabulary.mechanisms.contrasts import measure_contrasts
from tabulary.mechanisms.direct import measure_directly
from tabulary.mechanisms.residuals import measure_residuals
from tabulary.noise import Sampler
from tabulary.planning import Measurement, Plan

MECHANISMS: Mapping[str, Callable[[Tally, Plan, Sampler], Measurement]] = {
    "cells": measure_directly,
    "margins": measure_directly,
    "fourier": measure_contrasts,
    "efron-stein": measure_contrasts,
    "residual": measure_residuals,
}


def measure(tally: Tally, plan: Plan, sampler: Sampler) -> Measurement:
    """Return what the plan measures of this tally, through the mechanism that the plan names."""
    refuse_weights(
        tally.weights,
        use="a plan",
        state="Nothing was measured.",
        remedy="Publish weighted tables with tb.perturb.Tables.",
    )
    refuse_public_total(plan.neighbours, tally.drops)
    return MECHANISMS[plan.mechanism](tally, plan, sampler)


__all__ = ["MECHANISMS", "measure"]
