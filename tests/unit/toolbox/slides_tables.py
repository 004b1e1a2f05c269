"""The two "anonymized" tables of the slides, of two institutions, as printed: with two spellings of lung cancer."""

import pyarrow as pa

_CLINIC = """60-70 Male Y Heart disease
60-70 Female N Arthritis
60-70 Male Y Lung cancer
60-70 Female N Crohn’s Disease
60-70 Male Y Lung Cancer
50-60 Female N HIV
50-60 Male Y Lyme Disease
50-60 Male Y Seasonal Allergies
50-60 Female N Ulcerative Colitis"""

_HOSPITAL = """50-60 Female HIV
50-60 Female Lupus
50-60 Female Hip Fracture
60-70 Male Pancreatic Cancer
60-70 Male Ulcerative Colitis
60-70 Male Flu Like Symptoms"""


def _table(text, columns):
    rows = [line.split(" ", len(columns) - 1) for line in text.splitlines()]
    found = dict(zip(columns, map(list, zip(*rows, strict=True)), strict=True))
    return pa.table({**found, "Zip Code": ["191**"] * len(rows)})


CLINIC = _table(_CLINIC, ["Age", "Gender", "Smoker", "Diagnosis"])
HOSPITAL = _table(_HOSPITAL, ["Age", "Gender", "Diagnosis"])
KNOWN = ["Age", "Gender", "Zip Code"]
