"""The only bridge from a Tally to a Measurement: one file a mechanism."""

from collections.abc import Callable, Mapping

from tabulary.confidential.dropping import refuse_public_total
from tabulary.confidential.tally import Tally
from tabulary.errors import InvalidPlan
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
    if tally.weights is not None:
        raise InvalidPlan(
            "a plan counts records, and this tally adds up weights, of which one record has many: its noise would "
            "not hide one. Nothing was measured. Publish weighted tables with tb.perturb.Tables."
        )
    refuse_public_total(plan.neighbours, tally.drops)
    return MECHANISMS[plan.mechanism](tally, plan, sampler)


__all__ = ["MECHANISMS", "measure"]
