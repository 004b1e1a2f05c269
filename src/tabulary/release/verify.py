"""The reading of a release that trusts nothing in it: every byte and every claim is checked."""

import datetime
import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tabulary.core.domain import Domain, Margin
from tabulary.core.head import Receipt
from tabulary.core.table import Table
from tabulary.core.workload import show_margin
from tabulary.errors import InvalidTable, LedgerError, PublicError, ReleaseDamaged, ReleaseError, listed
from tabulary.planning import ErrorLaw, Plan, SimulatedErrors, plan_from_description
from tabulary.release.folder import list_folder, read_plain_file
from tabulary.release.formats import TABLES, arrow_table, csv_bytes, file_names, read_parquet
from tabulary.release.manifest import (
    MANIFEST,
    REPORT,
    SCHEMA_WITH_ENGINE,
    SCHEMA_WITH_FORMATS,
    SCHEMA_WITH_INTERACTIONS,
    SCHEMAS,
    TOLERANCE,
    Fact,
    Imprint,
    agree,
    canonical_bytes,
    claims,
    digest_of,
    is_engine,
)
from tabulary.release.table import ReleasedTable
from tabulary.release.writers import ALWAYS, FORMATS, extra_formats, extra_names

_ENDINGS = "|".join(re.escape(form.suffix) for form in FORMATS.values())
_SAFE_NAME = re.compile(rf"{re.escape(REPORT)}|{TABLES}/[a-z0-9_-]{{1,120}}({_ENDINGS})")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_FIELDS = {
    *("schema", "title", "date", "software", "plan", "plan_digest", "promise", "confidence"),
    *("expected_errors", "reconstruction", "tables", "files", "ledger", "digest"),
}
_NAMING_FORMATS = {SCHEMA_WITH_FORMATS, SCHEMA_WITH_ENGINE, SCHEMA_WITH_INTERACTIONS}
_MOST_LISTED = 100


@dataclass(frozen=True)
class VerifiedRelease:
    """What was read from a folder in which nothing was wrong."""

    plan: Plan
    tables: tuple[Table, ...]
    errors: Mapping[Margin, ErrorLaw]
    reconstruction: Mapping[str, Fact]
    title: str
    digest: str
    engine: str | None
    receipt: Receipt | None


@dataclass
class _Reading:
    """One pass over a folder: what was found wrong, and the bytes that were found right."""

    folder: Path
    problems: list[str] = field(default_factory=list)
    contents: dict[str, bytes] = field(default_factory=dict)

    def note(self, problem: str) -> None:
        self.problems.append(problem)

    def read(self, name: str, length: int | None = None) -> bytes | None:
        try:
            data = read_plain_file(self.folder / name, length=length)
        except OSError as problem:
            self.note(f"{name} cannot be read: {problem.strerror}.")
            return None
        if data is None:
            self.note(
                f"{name} is not a plain file of the stated {length:,} bytes."
                if length is not None
                else f"{name} is not a plain file."
            )
        return data

    def damaged(self, *problems: str) -> ReleaseDamaged:
        found = [*self.problems, *problems]
        shown = found[:_MOST_LISTED]
        if len(found) > len(shown):
            shown.append(f"… and {len(found) - len(shown):,} more.")
        listing = "\n".join(f"  - {problem}" for problem in shown)
        return ReleaseDamaged(
            f"the release at {self.folder} is not as it was published:\n{listing}\n"
            "Do not use it; fetch it again from its publisher."
        )


def read_release(path: Path, *, expected_digest: str | None = None) -> VerifiedRelease:
    """Return the release in a folder after checking all of it, or raise with everything that is wrong.

    The files are exactly those of a release and have the bytes that the manifest states; the manifest is
    canonical and has its own digest; the plan is derived anew, and with it the promise, the expected errors,
    the files' names, the labels, the standard errors and the intervals; CSV and Parquet of a table agree.
    Further formats are checked by their SHA-256 alone: another version of a writer would write them otherwise.
    What is read is what was checked: every file is opened once.
    """
    reading = _Reading(path)
    if not path.is_dir():
        raise ReleaseError(f"there is no release at {path}: that is not a folder.")
    try:
        present, others = list_folder(path, TABLES)
    except OSError as problem:
        raise ReleaseError(f"the release at {path} cannot be read: {problem.strerror}.") from problem
    for name in others:
        reading.note(f"{name} is not a plain file: no release holds links or other folders.")
    manifest = _read_manifest(reading, present, expected_digest)
    plan = _read_plan(reading, manifest, present)
    formats = _read_formats(reading, manifest)
    names = file_names(plan.workload.margins) if plan else None
    extra = extra_names(plan.workload.margins, formats) if plan else {}
    derived = {name for of_table in extra.values() for name in of_table.values()}
    _check_files(reading, manifest, present, names, derived)
    if plan is None or names is None:
        raise reading.damaged()
    tables = [_read_table(reading, plan, margin, *names[margin]) for margin in plan.workload]
    released = [table for table in tables if table is not None]
    receipt = _read_receipt(reading, manifest)
    _check_claims(reading, plan, released, manifest, formats, receipt)
    _check_reconstruction(reading, plan, released, manifest)
    if reading.problems:
        raise reading.damaged()
    return VerifiedRelease(
        plan=plan,
        tables=tuple(table.table for table in released),
        errors={table.margin: table.errors for table in released},
        reconstruction=manifest["reconstruction"],
        title=manifest["title"],
        digest=manifest["digest"],
        engine=manifest["software"].get("engine"),
        receipt=receipt,
    )


def _read_manifest(reading: _Reading, present: set[str], expected_digest: str | None) -> dict[str, Any]:
    data = reading.read(MANIFEST) if MANIFEST in present else None
    if data is None:
        raise reading.damaged(f"{MANIFEST} is missing, and nothing else can be checked without it.")
    try:
        # Not the bytes: a decoder that guesses an encoding would let two texts pass for one.
        manifest = json.loads(data.decode("utf-8"))
        canonical = canonical_bytes(manifest) == data
    except (ValueError, RecursionError):
        manifest, canonical = None, False
    if not isinstance(manifest, dict):
        raise reading.damaged(f"{MANIFEST} is not a JSON object, and nothing else can be checked without it.")
    if not canonical:
        reading.note(f"{MANIFEST} is not written the way Tabulary writes it.")
    true_digest = digest_of(manifest)
    if manifest.get("digest") != true_digest:
        reading.note(f"{MANIFEST} has the digest {true_digest}, not the one it states.")
    if expected_digest is not None and expected_digest.strip().lower() != true_digest:
        reading.note(
            f"{MANIFEST} has the digest {true_digest}, not the expected {expected_digest.strip()!r}."
        )
    schema = manifest.get("schema")
    if not reading.problems and schema not in SCHEMAS:
        raise ReleaseError(
            f"the release at {reading.folder} has the schema {schema!r}; this version of Tabulary reads "
            f"{listed(SCHEMAS)}. Use the version that its manifest names under 'software'."
        )
    fields = _FIELDS | {"formats"} if schema in _NAMING_FORMATS else _FIELDS
    for name in sorted(fields ^ manifest.keys()):
        reading.note(f"{MANIFEST} {'lacks' if name in fields else 'has an unknown'} field {name!r}.")
    return manifest


def _read_formats(reading: _Reading, manifest: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the formats besides those of every release, as manifests from the second schema on name them."""
    if manifest.get("schema") not in _NAMING_FORMATS:
        return ()
    match manifest.get("formats"):
        case [] if manifest["schema"] != SCHEMA_WITH_FORMATS:
            return ()
        case [str(), *_] as given if all(isinstance(name, str) and name in FORMATS for name in given):
            formats = extra_formats(given)
            if given == list(formats):
                return formats
    known = ", ".join(name for name in FORMATS if name not in ALWAYS)
    reading.note(f"{MANIFEST}: 'formats' does not name some of {known}, in this order.")
    return ()


def _read_receipt(reading: _Reading, manifest: Mapping[str, Any]) -> Receipt | None:
    """Return which ledger paid, as far as a manifest can say: whether it did, only that ledger knows."""
    stated = manifest.get("ledger")
    if stated is not None:
        try:
            return Receipt.from_description(stated)
        except LedgerError:
            reading.note(f"{MANIFEST}: 'ledger' does not name the entry of a ledger the way Tabulary does.")
    return None


def _read_plan(reading: _Reading, manifest: Mapping[str, Any], present: set[str]) -> Plan | None:
    try:
        # A few lines can claim a table that fills the memory; its rows would fill a file first.
        available = sum((reading.folder / name).lstat().st_size for name in present)
        if _claimed_cells(manifest["plan"]) > available:
            reading.note("the plan does not hold: its tables have more cells than the files have bytes.")
            return None
        return plan_from_description(manifest["plan"])
    except PublicError as problem:
        reading.note(f"the plan does not hold: {problem}")
    except (ArithmeticError, LookupError, TypeError, ValueError, RecursionError, MemoryError, OSError):
        reading.note("the plan does not hold: it is not one that Tabulary writes.")
    return None


def _claimed_cells(plan: Mapping[str, Any]) -> int:
    domain = Domain.from_description(plan["domain"])
    return sum(domain.cells(domain.margin(table["attributes"])) for table in plan["workload"])


def _check_files(
    reading: _Reading,
    manifest: Mapping[str, Any],
    present: set[str],
    names: Mapping[Margin, tuple[str, str]] | None,
    derived: set[str],
) -> None:
    """Read every file that a release may have and compare it with what the manifest states.

    A name is only ever opened if it is one that Tabulary could have written, whatever the manifest says.
    """
    given = manifest.get("files")
    stated: dict[str, Any] = given if isinstance(given, dict) else {}
    known = (
        {REPORT, *(name for pair in names.values() for name in pair), *derived} if names is not None else None
    )
    for name in sorted(stated):
        if not _SAFE_NAME.fullmatch(name) or (known is not None and name not in known):
            reading.note(f"{MANIFEST} states a file that is not part of this release: {name!r}.")
    allowed = known if known is not None else {name for name in stated if _SAFE_NAME.fullmatch(name)}
    for name in sorted(present - allowed - {MANIFEST}):
        reading.note(f"{name} is not part of this release.")
    for name in sorted(allowed):
        match stated.get(name):
            case {"bytes": int(length), "sha256": str(sha256), **rest} if not rest and _SHA256.fullmatch(
                sha256
            ):
                if name not in present:
                    reading.note(f"{name} is missing.")
                elif (data := reading.read(name, length)) is not None:
                    if hashlib.sha256(data).hexdigest() == sha256:
                        reading.contents[name] = data
                    else:
                        reading.note(f"{name} has been changed: its SHA-256 is not the stated one.")
            case _:
                reading.note(f"{MANIFEST} does not state the length and SHA-256 of {name}.")


def _read_table(
    reading: _Reading, plan: Plan, margin: Margin, csv_name: str, parquet_name: str
) -> ReleasedTable | None:
    """Return one table if both of its files hold it and it is what the plan says it is."""
    if not {csv_name, parquet_name} <= reading.contents.keys():
        return None
    try:
        found = read_parquet(reading.contents[parquet_name])
        domain = plan.domain.project(margin)
        column = found.column(len(margin))
        counts = column.to_numpy().reshape(domain.shape)
        released = ReleasedTable(Table(domain, counts), _law_of(plan, margin, found, counts))
        expected = arrow_table(released, plan)
    except PublicError as problem:
        reading.note(f"{parquet_name} is not the table on {show_margin(margin)}: {problem}")
        return None
    except (pa.ArrowException, IndexError, TypeError, ValueError, OSError):
        reading.note(f"{parquet_name} is not the table on {show_margin(margin)}.")
        return None
    if not found.schema.equals(expected.schema, check_metadata=True):
        reading.note(f"{parquet_name} does not have the columns and metadata of its table.")
        return None
    for name in expected.column_names:
        if not _same_column(found.column(name), expected.column(name)):
            reading.note(f"{parquet_name}: column {name!r} is not what the plan gives.")
    if plan.whole and counts.dtype.kind != "i":
        reading.note(f"{parquet_name} holds real numbers where whole ones were measured.")
    if reading.contents[csv_name] != csv_bytes(found):
        reading.note(f"{csv_name} does not hold the same table as {parquet_name}.")
    return released


def _law_of(plan: Plan, margin: Margin, found: pa.Table, counts: NDArray[Any]) -> ErrorLaw:
    """Return the law of the errors: the plan's for linear estimates, what the file states for others."""
    if plan.reconstruct == "none":
        return plan.error_of(margin)
    deviations = found.column(len(margin) + 1).to_numpy().astype(np.float64).reshape(counts.shape)
    upper = found.column(len(margin) + 3).to_numpy().astype(np.float64).reshape(counts.shape)
    # Of the total, an array on no axes, numpy would make a scalar.
    widths = np.asarray(upper - counts)
    if not (np.isfinite(deviations).all() and (deviations >= 0).all() and (widths >= 0).all()):
        raise InvalidTable("its standard errors and intervals are not those of any table.")
    return SimulatedErrors(deviations, widths)


def _check_reconstruction(
    reading: _Reading, plan: Plan, released: list[ReleasedTable], manifest: Mapping[str, Any]
) -> None:
    """Check what a constrained reconstruction promises: no negative cell, and tables that agree."""
    facts = manifest.get("reconstruction")
    if not isinstance(facts, dict) or not all(isinstance(v, str | int | float) for v in facts.values()):
        reading.note(f"{MANIFEST} does not state the facts of the reconstruction the way Tabulary does.")
    if plan.reconstruct not in ("least-squares", "lp", "shrink"):
        return
    for table in released:
        if (table.counts < 0).any():
            reading.note(f"the table on {show_margin(table.margin)} has a negative cell.")
    # Tables that agree with each other on what they share were margins of one table; each is compared with
    # the first that shares it.
    seen: dict[Margin, NDArray[Any]] = {}
    for table in released:
        for shared in _shared(table.margin, plan.workload.margins):
            counts = table.table.project(shared).counts
            known = seen.setdefault(shared, counts)
            if not np.allclose(known, counts, rtol=1e-6, atol=1e-6):
                reading.note(f"the tables do not agree on {show_margin(shared)}.")


def _shared(margin: Margin, margins: Sequence[Margin]) -> Iterable[Margin]:
    """Return the sets on which a table can be compared with others: all that it may share, or all that it does."""
    if 2 ** len(margin) <= len(margins):
        return (s for order in range(len(margin) + 1) for s in combinations(margin, order))
    return {tuple(a for a in margin if a in other) for other in margins}


def _same_column(found: pa.ChunkedArray, expected: pa.ChunkedArray) -> bool:
    if pa.types.is_floating(expected.type):
        return not found.null_count and bool(
            np.allclose(found.to_numpy(), expected.to_numpy(), rtol=TOLERANCE, atol=0)
        )
    if pa.types.is_dictionary(expected.type):
        found, expected = found.cast(pa.string()), expected.cast(pa.string())
    return bool(found.equals(expected))


def _check_claims(
    reading: _Reading,
    plan: Plan,
    released: list[ReleasedTable],
    manifest: Mapping[str, Any],
    formats: tuple[str, ...],
    receipt: Receipt | None,
) -> None:
    match manifest:
        case {
            "title": str(title),
            "date": str(date),
            "software": {"name": "tabulary", "version": str(software), **rest},
        } if _is_date(date):
            named = rest.get("engine")
        case _:
            reading.note(f"{MANIFEST} does not state its title, date and software the way Tabulary does.")
            return
    engine: str | None = None
    schema = manifest.get("schema")
    if schema == SCHEMA_WITH_ENGINE or (
        schema == SCHEMA_WITH_INTERACTIONS and "engine" in manifest["software"]
    ):
        if not is_engine(named):
            reading.note(f"{MANIFEST}: 'software' does not name the engine that counted the records.")
            return
        engine = named
    interactions = schema == SCHEMA_WITH_INTERACTIONS and bool(plan.exact)
    derived = claims(plan, released, Imprint(title, date, software, formats, engine, interactions, receipt))
    if len(released) < len(plan.workload):
        # Already noted, table by table; what is left of them says nothing about the claim.
        del derived["tables"]
    for name, claim in derived.items():
        if name in manifest and not agree(manifest[name], claim):
            reading.note(f"{MANIFEST}: {name!r} does not follow from the plan.")


def _is_date(text: str) -> bool:
    try:
        return datetime.date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False
