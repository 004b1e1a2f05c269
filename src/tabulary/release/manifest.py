"""The manifest: everything a release says about itself, in one canonical text."""

import hashlib
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any, TypeGuard

from tabulary.core.head import Receipt
from tabulary.planning import Plan
from tabulary.release.formats import file_names
from tabulary.release.promise import promise_of
from tabulary.release.table import CONFIDENCE, ReleasedTable, column_names
from tabulary.release.writers import extra_names

SCHEMA = "tabulary-release/1"
"""The meaning of a manifest with this name never changes; another meaning gets another name."""

SCHEMA_WITH_FORMATS = "tabulary-release/2"
"""As the first, and `formats` names the formats that the tables are in besides CSV and Parquet."""

SCHEMA_WITH_ENGINE = "tabulary-release/3"
"""As the second, where `formats` may be empty, and `software` names the engine that counted the records."""

SCHEMA_WITH_INTERACTIONS = "tabulary-release/4"
"""As the third, where `engine` may be missing, and the promise names interactions as what is released without noise."""

SCHEMAS = (SCHEMA, SCHEMA_WITH_FORMATS, SCHEMA_WITH_ENGINE, SCHEMA_WITH_INTERACTIONS)
"""The schemas that can be read."""

MANIFEST = "manifest.json"
REPORT = "report.html"

Fact = str | int | float | bool
"""What a reconstruction may say about itself, one fact."""

# Which there are is not known here: any database that Ibis can speak to may be one.
_ENGINE = re.compile(r"[a-z][a-z0-9_]{0,39}")

# Two machines may compute a standard error to a different last digit; a false claim differs by more.
TOLERANCE = 1e-9


@dataclass(frozen=True)
class Imprint:
    """What a release says about its own making: nothing that identifies a person, a place or a run.

    `formats` are those besides CSV and Parquet, which every release has. `engine` is what counted the records, if it
    was records that were counted. `interactions` says that the promise names some that are released without noise.
    `receipt` says which ledger paid, None where none did.
    """

    title: str
    date: str
    software: str
    formats: tuple[str, ...] = ()
    engine: str | None = None
    interactions: bool = False
    receipt: Receipt | None = None

    @property
    def schema(self) -> str:
        """The schema of the manifest: the first wherever it suffices, so that older readers can read it."""
        if self.interactions:
            return SCHEMA_WITH_INTERACTIONS
        if self.engine is not None:
            return SCHEMA_WITH_ENGINE
        return SCHEMA_WITH_FORMATS if self.formats else SCHEMA

    def describe(self) -> dict[str, object]:
        """Return the imprint as the fields of a manifest."""
        return {
            "schema": self.schema,
            "title": self.title,
            "date": self.date,
            "software": {
                "name": "tabulary",
                "version": self.software,
                **({} if self.engine is None else {"engine": self.engine}),
            },
            **({"formats": list(self.formats)} if self.schema != SCHEMA else {}),
            "ledger": None if self.receipt is None else self.receipt.describe(),
        }


def is_engine(name: object) -> TypeGuard[str]:
    """Return whether a name can be that of a counting engine: one lower-case word, as those of all databases are.

    >>> is_engine("postgresql"), is_engine("Spark 4"), is_engine(None)
    (True, False, False)
    """
    return isinstance(name, str) and _ENGINE.fullmatch(name) is not None


def installed_version() -> str:
    """Return the version of Tabulary that is running."""
    return version("tabulary")


def claims(plan: Plan, tables: Sequence[ReleasedTable], imprint: Imprint) -> dict[str, Any]:
    """Return every claim of a manifest that follows from the plan and the kind of its tables.

    Written by one reader of the plan and derived again by the next: verification compares the two.
    """
    names = file_names(plan.workload.margins)
    extra = extra_names(plan.workload.margins, imprint.formats)
    return {
        **imprint.describe(),
        "plan": plan.describe(),
        "plan_digest": plan.digest(),
        "promise": promise_of(plan).describe(),
        "confidence": CONFIDENCE,
        "expected_errors": [
            {
                "margin": list(row.margin),
                "cells": row.cells,
                "standard_error": row.standard_error,
                "half_width": row.half_width,
            }
            for row in plan.expected_error(CONFIDENCE)
        ],
        "tables": [
            {
                "margin": list(table.margin),
                "cells": table.domain.size,
                "numbers": "whole" if table.counts.dtype.kind == "i" else "real",
                "columns": [*table.margin, *column_names(table.margin)],
                "csv": names[table.margin][0],
                "parquet": names[table.margin][1],
                **extra[table.margin],
            }
            for table in tables
        ],
    }


def sealed(
    claimed: Mapping[str, Any], files: Mapping[str, bytes], reconstruction: Mapping[str, Fact]
) -> dict[str, Any]:
    """Return the whole manifest: claims, facts of the reconstruction, fingerprints of files, its own digest."""
    manifest = {
        **claimed,
        "reconstruction": dict(reconstruction),
        "files": {name: fingerprint(data) for name, data in files.items()},
    }
    return {**manifest, "digest": digest_of(manifest)}


def fingerprint(data: bytes) -> dict[str, Any]:
    """Return the length and the SHA-256 of a file."""
    return {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}


def digest_of(manifest: Mapping[str, Any]) -> str:
    """Return the SHA-256 of the canonical manifest without its `digest`: the name of this release."""
    unsealed = {key: value for key, value in manifest.items() if key != "digest"}
    return hashlib.sha256(canonical_bytes(unsealed)).hexdigest()


def canonical_bytes(value: object) -> bytes:
    r"""Return the one way to write a value: sorted keys, two spaces, UTF-8, a line feed at the end.

    >>> canonical_bytes({"b": [1], "a": "é"})
    b'{\n  "a": "\xc3\xa9",\n  "b": [\n    1\n  ]\n}\n'
    """
    text = json.dumps(value, sort_keys=True, indent=2, ensure_ascii=False, allow_nan=False)
    return f"{text}\n".encode()


def agree(stated: object, derived: object) -> bool:
    """Return whether two claims are the same, real numbers up to the last digits.

    >>> agree([1, {"error": 2.0}], [1, {"error": 2.0 + 1e-15}]), agree(1, True)
    (True, False)
    """
    if isinstance(derived, float):
        return isinstance(stated, float) and math.isclose(stated, derived, rel_tol=TOLERANCE)
    if type(stated) is not type(derived):
        return False
    if isinstance(derived, dict) and isinstance(stated, dict):
        return stated.keys() == derived.keys() and all(agree(stated[k], derived[k]) for k in derived)
    if isinstance(derived, list) and isinstance(stated, list):
        return len(stated) == len(derived) and all(map(agree, stated, derived))
    return stated == derived
