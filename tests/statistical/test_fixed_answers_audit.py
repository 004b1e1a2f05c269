"""An audit of fixed answers as a mechanism: two neighbouring datasets, many keys, and the published tables alone.

An observer who knows everything but the key and one record computes from the answers how much likelier they are with
that record than without. An event that is likely with it and unlikely without bounds δ from below; at confidence
1 - 10⁻⁶ a bound above the promise is a broken promise. Noise at seven tenths of its scale breaks it.
"""

import hashlib
import math
from functools import partial

import numpy as np
import pyarrow as pa
import pytest

import tabulary as tb
from tabulary.confidential.records import Records
from tabulary.confidential.tally_cache import TallyCache
from tabulary.core.privacy import gaussian_delta
from tabulary.core.residuals import centre
from tabulary.mechanisms.on_demand import MeasuredOnDemand
from tabulary.noise import ExactSampler
from tabulary.planning.allowed_tables import AllowedTables
from tabulary.reconstruct.linear import TablesOnDemand
from tabulary.workflows.answering.fixed import plan_of_allowed_tables
from tests.twins import SABOTAGED, SeededTwin, bounds

# Computed from the normal laws of both events: the twin's bound is above the promise by over three of its deviations.
KEYS = 1_500
RHO, EPSILON = 2, 1
DOMAIN = tb.Domain({"a": "xy", "b": "xyz"})
ALLOWED = AllowedTables(DOMAIN, order=1)
PLAN = plan_of_allowed_tables(ALLOWED, privacy=tb.ZCDP(RHO), neighbours="add-remove", reconstruct="none")
WITHOUT = pa.table({"a": list("xxyxyy"), "b": list("xyzzxy")})
WITH = pa.concat_tables([WITHOUT, pa.table({"a": ["x"], "b": ["z"]})])


def _residuals(tables):
    """The residuals of all published tables: what they say, each fact once."""
    return {margin: centre(np.asarray(table, dtype=float)) for margin, table in tables.items()}


def _losses(sampler):
    """The log-likelihood ratios that an observer would compute from the answers, without the record and with it."""
    opened = [Records.from_arrow(people, DOMAIN) for people in (WITHOUT, WITH)]
    exact = []
    for records in opened:
        tally = records.tally(ALLOWED.margins)
        exact.append(_residuals({margin: tally.exact(margin) for margin in ALLOWED.margins}))
    without, with_it = exact
    found = []
    for records in opened:
        tallies = TallyCache(records)
        losses = []
        for number in range(KEYS):
            key = hashlib.sha256(b"%d" % number).digest()
            answers = TablesOnDemand(PLAN, MeasuredOnDemand(tallies, PLAN, key, sampler=sampler).values)
            told = _residuals({margin: answers.table(margin) for margin in ALLOWED.margins})
            losses.append(
                sum(
                    float(((told[r] - without[r]) ** 2 - (told[r] - with_it[r]) ** 2).sum()) / (2 * variance)
                    for r, variance in PLAN.residual_variances.items()
                )
            )
        found.append(np.array(losses))
        records.close()
    return found


def _delta_lower_bound(losses):
    without, with_it = (bounds(int((loss > EPSILON).sum()), KEYS) for loss in losses)
    return with_it[0] - math.exp(EPSILON) * without[1]


# Discrete Gaussians of these sizes are as close to continuous ones as an audit can see.
MOST_DELTA = gaussian_delta(EPSILON, RHO) * 1.05


def test_all_answers_together_keep_the_promise_and_spend_all_of_it():
    losses = _losses(ExactSampler)
    assert _delta_lower_bound(losses) <= MOST_DELTA
    # The observer is as strong as the promise is tight: on average the loss is ρ, with the record and without.
    assert [loss.mean() for loss in losses] == pytest.approx([-RHO, RHO], abs=0.2)


def test_noise_at_seven_tenths_of_the_scale_is_found_out():
    assert _delta_lower_bound(_losses(partial(SeededTwin, SABOTAGED))) > MOST_DELTA
