"""Small releases in folders of their own, as a stranger would receive them."""

from pathlib import Path

import numpy as np

import tabulary as tb
from tabulary.core.labels import Labels, VariableLabels
from tabulary.core.table import Table
from tabulary.release import Release, SigningKey
from tests.entropy import SeededEntropy

DOMAIN = tb.Domain(
    {"sex": ["F", "M"], "age": ["0-14", "15-64", "65+"], "job": ["none", "paid"], "region": ["N", "S", "W"]}
)
LABELS = Labels(
    "Census 2026",
    "Everyone who lives here.",
    source="Statistics Nowhere",
    notes=("Nobody checked the answers.",),
    variables={
        "sex": VariableLabels("Sex", levels={"F": "Women", "M": "Men"}),
        "age": VariableLabels("Age in years"),
    },
)


def written_release(
    folder: Path,
    *,
    workload: str = "[sex age job][age region]",
    labels: Labels | tuple[Labels, ...] = LABELS,
    signing_key: SigningKey | None = None,
    **options: object,
) -> Release:
    """Write a release of generated people into a new folder, and return it."""
    counts = np.arange(DOMAIN.size).reshape(DOMAIN.shape) * 9 + 20
    planned = tb.plan(DOMAIN, workload, privacy=tb.ZCDP("1/8"), **options)
    made = tb.release(Table(DOMAIN, counts), planned, labels=labels, entropy=SeededEntropy(7))
    made.save(folder, signing_key=signing_key)
    return made
