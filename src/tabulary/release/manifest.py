"""The manifest: everything a release says about itself, in one canonical text."""

import datetime
import hashlib
import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np

from tabulary.core.head import Receipt
from tabulary.errors import InvalidArgument, PublicError, listed
from tabulary.reconstruct.coins import measurement_digest
from tabulary.release.folder import MANIFEST
from tabulary.release.formats import file_names
from tabulary.release.measurements import COLUMNS, MEASUREMENTS, measured_values
from tabulary.release.promise import promise_of
from tabulary.release.signing import PublicKey, SigningKey, signature_from_text, signature_text
from tabulary.release.table import CONFIDENCE, ReleasedTable, column_names
from tabulary.release.writers import ALWAYS, FORMATS, extra_formats, extra_names

if TYPE_CHECKING:
    from tabulary.release.release import Release

SCHEMA = "tabulary-release/1"
"""The meaning of a manifest with this name never changes; another meaning gets another name."""

REPORT = "report.html"
SIGNATURE = "manifest.sig"
LONGEST_SIGNATURE = 100

# The list of engines is not known here: any database that Ibis supports may be one.
_ENGINE = re.compile(r"[a-z][a-z0-9_]{0,39}")

# Two machines may compute a standard error to a different last digit; a false claim differs by more.
TOLERANCE = 1e-9


FIELDS = frozenset(
    {
        *(
            "schema",
            "date",
            "software",
            "formats",
            "ledger",
            "signer",
            "labels",
            "counted",
            "plan",
            "plan_digest",
        ),
        *("promise", "confidence", "expected_errors", "measurements", "face", "tables", "files", "digest"),
    }
)
"""The fields of every manifest."""


class EpsilonPlace(StrEnum):
    """Where the report names the parameter of the promise: in its folded part only, or on the first screen too."""

    folded = "folded"
    first = "first"

    @classmethod
    def named(cls, name: str) -> "EpsilonPlace":
        """Return a place by its name, or raise InvalidArgument.

        >>> EpsilonPlace.named("first")
        <EpsilonPlace.first: 'first'>
        """
        if name not in list(cls):
            raise InvalidArgument(
                f"the place of the parameter of the promise in the report must be one of {listed(cls)}, not {name!r}."
            )
        return cls(name)


@dataclass(frozen=True)
class Imprint:
    """The facts that a release states about its making: nothing that identifies a person, a place or a run.

    `formats` are those besides CSV and Parquet, which every release has. `engine` is the engine that counted the
    records, if records were counted. `receipt` names the ledger that paid, and `signer` the signer of the manifest;
    None if it is not signed. `epsilon` concerns the report alone.
    """

    date: str
    software: str
    formats: tuple[str, ...] = ()
    engine: str | None = None
    receipt: Receipt | None = None
    signer: PublicKey | None = None
    epsilon: EpsilonPlace = EpsilonPlace.folded

    def describe(self) -> dict[str, object]:
        """Return the imprint as the fields of a manifest."""
        return {
            "schema": SCHEMA,
            "date": self.date,
            "software": {"name": "tabulary", "version": self.software, "engine": self.engine},
            "formats": list(self.formats),
            "ledger": None if self.receipt is None else self.receipt.describe(),
            "signer": None if self.signer is None else self.signer.describe(),
        }

    @classmethod
    def from_manifest(cls, manifest: Mapping[str, Any], note: Callable[[str], None]) -> "Imprint | None":
        """Return the imprint that a manifest states; report to `note` the fields that Tabulary would write otherwise.

        None where date or software cannot be read.
        """
        formats = _read_formats(manifest.get("formats"), note)
        signer = None
        if manifest.get("signer") is not None:
            try:
                signer = PublicKey.from_description(manifest["signer"])
            except PublicError as problem:
                note(f"{MANIFEST}: 'signer' names nobody: {problem}")
        receipt = None
        if manifest.get("ledger") is not None:
            # Only the ledger knows whether it paid.
            try:
                receipt = Receipt.from_description(manifest["ledger"])
            except PublicError:
                note(f"{MANIFEST}: 'ledger' does not name the entry of a ledger the way Tabulary does.")
        match manifest:
            case {
                "date": str(date),
                "software": {"name": "tabulary", "version": str(software), "engine": engine, **rest},
            } if _is_date(date) and not rest:
                if engine is not None and not is_engine(engine):
                    note(f"{MANIFEST}: 'software' does not name the engine that counted the records.")
                    return None
                return cls(date, software, formats, engine, receipt, signer)
        note(f"{MANIFEST} does not state its date and software the way Tabulary does.")
        return None


def _read_formats(given: object, note: Callable[[str], None]) -> tuple[str, ...]:
    """Return the formats besides those of every release, which are named in the order of `FORMATS`."""
    if isinstance(given, list) and all(isinstance(name, str) and name in FORMATS for name in given):
        formats = extra_formats(given)
        if given == list(formats):
            return formats
    known = ", ".join(name for name in FORMATS if name not in ALWAYS)
    note(f"{MANIFEST}: 'formats' does not name some of {known}, in this order.")
    return ()


def _is_date(text: str) -> bool:
    try:
        return datetime.date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


def is_engine(name: object) -> TypeGuard[str]:
    """Return whether a name can be that of a counting engine: one lower-case word, as those of all databases are.

    >>> is_engine("postgresql"), is_engine("Spark 4"), is_engine(None)
    (True, False, False)
    """
    return isinstance(name, str) and _ENGINE.fullmatch(name) is not None


def installed_version() -> str:
    """Return the version of Tabulary that is running."""
    return version("tabulary")


def claims(release: "Release", imprint: Imprint) -> dict[str, Any]:
    """Return every claim of a manifest that follows from the measurements, the published tables and their words.

    The publisher writes the claims and a reader derives them again: verification compares the two.
    """
    plan, margins = release.plan, release.margins
    names = file_names(margins)
    extra = extra_names(margins, imprint.formats)
    return {
        **imprint.describe(),
        "labels": [labels.describe() for labels in release.translations],
        "counted": release.counted,
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
        "measurements": {
            "file": MEASUREMENTS,
            "columns": list(COLUMNS),
            "values": measured_values(plan),
            "digest": measurement_digest(release.measurement),
        },
        "face": {
            **release.face.face.describe(),
            "facts": dict(release.face.facts),
            "errors": [
                {"attributes": list(margin), **curve.describe()}
                for margin, curve in release.face.curves.items()
            ],
        },
        "tables": [
            {
                "margin": list(table.margin),
                "cells": table.domain.size,
                "numbers": "whole" if table.counts.dtype.kind == "i" else "real",
                "farthest_from_estimate": farthest_from_estimate(table),
                "columns": [*table.margin, *column_names(table.margin)],
                "csv": names[table.margin][0],
                "parquet": names[table.margin][1],
                **extra[table.margin],
            }
            for table in release
        ],
    }


def farthest_from_estimate(table: ReleasedTable) -> float:
    """Return the largest distance of a published count from its unbiased estimate."""
    return float(np.abs(table.counts - table.estimate).max(initial=0.0))


def sealed(claimed: Mapping[str, Any], files: Mapping[str, bytes]) -> dict[str, Any]:
    """Return the whole manifest: claims, fingerprints of files, its own digest."""
    manifest = {**claimed, "files": {name: fingerprint(data) for name, data in files.items()}}
    return {**manifest, "digest": digest_of(manifest)}


def signed_message(manifest: bytes) -> bytes:
    """Return the bytes that a signer of a release signs: a prefix that names their kind, then the manifest."""
    return f"{SCHEMA} signature\n".encode() + manifest


def signature_file(manifest: bytes, key: SigningKey) -> bytes:
    """Return the content of `manifest.sig`: the signature over a manifest in base64, and a line feed."""
    return f"{signature_text(key.sign(signed_message(manifest)))}\n".encode()


def signature_in(content: bytes) -> bytes | None:
    """Return the signature that a `manifest.sig` holds; None if its form is not canonical."""
    text = content.decode("ascii", "replace")
    return signature_from_text(text[:-1]) if text.endswith("\n") else None


def fingerprint(data: bytes) -> dict[str, Any]:
    """Return the length and the SHA-256 of a file."""
    return {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}


def digest_of(manifest: Mapping[str, Any]) -> str:
    """Return the SHA-256 of the canonical manifest without its `digest`: the name of this release."""
    unsealed = {key: value for key, value in manifest.items() if key != "digest"}
    return hashlib.sha256(canonical_bytes(unsealed)).hexdigest()


def canonical_bytes(value: object) -> bytes:
    r"""Return the canonical text of a value: sorted keys, two spaces, UTF-8, a line feed at the end.

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
