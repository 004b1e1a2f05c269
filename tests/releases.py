"""Releases with known numbers: what a mechanism would have measured if these had been the noisy counts."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tabulary.core.domain import Margin
from tabulary.planning import Measurement, Plan
from tabulary.release import Release


def measured_as(plan: Plan, counts: Mapping[Margin, ArrayLike]) -> Measurement:
    """Return the measurement whose linear estimates are these whole tables, one for each table of the plan."""
    encoded = plan.encoded
    tables = {encoded.margin(m): encoded.encode(m, np.array(c, dtype=np.int64)) for m, c in counts.items()}
    return Measurement(plan, tuple(map(np.asarray, plan.query.all_values(plan.queries, tables))))


def release_of(plan: Plan, counts: Mapping[Margin, ArrayLike], **options: Any) -> Release:
    """Return the release with these linear estimates."""
    return Release(measured_as(plan, counts), **options)
