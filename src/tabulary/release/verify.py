"""Reads a release and trusts nothing in it: every byte and every claim is checked."""

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tabulary.core.domain import MAX_CELLS, Domain, Margin
from tabulary.core.head import Receipt
from tabulary.core.table import Table
from tabulary.core.workload import show_margin
from tabulary.errors import InvalidTable, PublicError, ReleaseDamaged, ReleaseError
from tabulary.planning import ErrorLaw, Plan, SimulatedErrors, plan_from_description
from tabulary.release.bounds import MOST_MANIFEST_BYTES, most_text_bytes, read_json, refuse_vast
from tabulary.release.csv_table import value_columns
from tabulary.release.folder import hash_plain_file, list_folder, read_plain_file
from tabulary.release.formats import TABLES, arrow_table, csv_bytes, expected_bytes, file_names
from tabulary.release.manifest import (
    FIELDS,
    LONGEST_SIGNATURE,
    MANIFEST,
    REPORT,
    SCHEMA,
    SIGNATURE,
    TOLERANCE,
    Fact,
    Imprint,
    agree,
    canonical_bytes,
    claims,
    digest_of,
    signature_in,
    signed_message,
)
from tabulary.release.parquet_check import ParquetCheck
from tabulary.release.signing import PublicKey
from tabulary.release.table import ReleasedTable, column_names
from tabulary.release.writers import extra_names

_SHA256 = re.compile(r"[0-9a-f]{64}")
_MOST_LISTED = 100
# Rounding changes the difference of two doubles by at most this share of the larger.
_ROUNDING = 1e-12
# A folder with this many files more than its manifest names is not read any further.
_MOST_STRANGERS = 1_000
# How much longer than expected a file may be that is only hashed.
_SLACK = 1 << 24
# A Parquet file holds more than its table: names, statistics and offsets, again for every million rows.
_FRAME = 1 << 20


@dataclass(frozen=True)
class VerifiedRelease:
    """The content of a folder in which nothing was wrong."""

    plan: Plan
    tables: tuple[Table, ...]
    errors: Mapping[Margin, ErrorLaw]
    reconstruction: Mapping[str, Fact]
    title: str
    digest: str
    engine: str | None
    receipt: Receipt | None
    signer: PublicKey | None


@dataclass(frozen=True)
class _Stated:
    """The length and the SHA-256 that a manifest states of a file."""

    length: int
    sha256: str


@dataclass
class _Reading:
    """One pass over a folder: the faults found, and the facts that the manifest states about the files."""

    folder: Path
    problems: list[str] = field(default_factory=list)
    files: dict[str, _Stated] = field(default_factory=dict)

    def note(self, problem: str) -> None:
        self.problems.append(problem)

    def read(self, name: str, most: int) -> bytes | None:
        """Return a file of at most `most` bytes."""
        try:
            data = read_plain_file(self.folder / name, most=most)
        except OSError as problem:
            self.note(f"{name} cannot be read: {problem.strerror}.")
            return None
        if data is None:
            self.note(f"{name} is not a plain file of at most {most:,} bytes.")
        return data

    def is_as_stated(self, name: str) -> bool:
        """Return whether a file has its stated length and SHA-256; it is read in pieces, which are not kept."""
        stated = self.files[name]
        try:
            found = hash_plain_file(self.folder / name, length=stated.length)
        except OSError as problem:
            self.note(f"{name} cannot be read: {problem.strerror}.")
            return False
        if found is None:
            self.note(f"{name} is not a plain file of the stated {stated.length:,} bytes.")
        elif found != stated.sha256:
            self.note(f"{name} has been changed: its SHA-256 is not the stated one.")
        return found == stated.sha256

    def read_as_stated(self, name: str) -> bytes | None:
        """Return a file that has its stated length and SHA-256. The returned bytes are the checked ones."""
        stated = self.files[name]
        try:
            data = read_plain_file(self.folder / name, most=stated.length)
        except OSError as problem:
            self.note(f"{name} cannot be read: {problem.strerror}.")
            return None
        if data is None or len(data) != stated.length:
            self.note(f"{name} is not a plain file of the stated {stated.length:,} bytes.")
            return None
        if hashlib.sha256(data).hexdigest() != stated.sha256:
            self.note(f"{name} has been changed: its SHA-256 is not the stated one.")
            return None
        return data

    def damaged(self, *problems: str) -> ReleaseDamaged:
        found = [*self.problems, *problems]
        shown = found[:_MOST_LISTED]
        if len(found) > len(shown):
            shown.append(f"… and {len(found) - len(shown):,} more.")
        listing = "\n".join(f"  - {problem}" for problem in shown)
        return ReleaseDamaged(
            f"the release at {self.folder} is not as it was published:\n{listing}\nDo not use it; download "
            "it again from its publisher."
        )


def read_release(
    path: Path,
    *,
    expected_digest: str | None = None,
    key: PublicKey | None = None,
    max_cells: int = MAX_CELLS,
) -> VerifiedRelease:
    """Return the release in a folder after checking all of it, or raise with everything that is wrong.

    The files are exactly those of a release and have the bytes that the manifest states; the manifest is
    canonical, has its own digest and the signature that it speaks of; the plan is derived anew, and with it the
    promise, the expected errors, the files' names, the labels, the standard errors and the intervals; CSV and Parquet
    of a table agree. Other formats are checked by their SHA-256 alone: another version of a writer would write other
    bytes. The returned data are the checked bytes: every file is opened once.

    The folder may come from anyone. Before anything is unpacked, built or derived, its size is computed from the plan
    and checked against the bounds. With `key`, only the manifest is read unless that key has signed it.
    """
    reading = _Reading(path)
    if not path.is_dir():
        raise ReleaseError(f"there is no release at {path}: that is not a folder.")
    data, manifest = _read_manifest(reading, expected_digest)
    files = manifest.get("files")
    stated: dict[str, Any] = files if isinstance(files, dict) else {}
    try:
        present, others = list_folder(path, TABLES, most=len(stated) + _MOST_STRANGERS)
    except OSError as problem:
        raise ReleaseError(f"the release at {path} cannot be read: {problem.strerror}.") from problem
    for name in others:
        reading.note(f"{name} is not a plain file: no release holds links or other folders.")
    imprint = Imprint.from_manifest(manifest, reading.note)
    _check_signature(reading, data, imprint, present, key)
    plan = _read_plan(reading, manifest, present, max_cells)
    if plan is None or imprint is None:
        raise reading.damaged()
    names = file_names(plan.workload.margins)
    _check_files(reading, plan, imprint, stated, present)
    with ParquetCheck() as parquet:
        tables = [_read_table(reading, parquet, plan, margin, *names[margin]) for margin in plan.workload]
    released = [table for table in tables if table is not None]
    _check_claims(reading, plan, released, manifest, imprint)
    _check_reconstruction(reading, plan, released, manifest)
    if reading.problems:
        raise reading.damaged()
    return VerifiedRelease(
        plan=plan,
        tables=tuple(table.table for table in released),
        errors={table.margin: table.errors for table in released},
        reconstruction=manifest["reconstruction"],
        title=imprint.title,
        digest=manifest["digest"],
        engine=imprint.engine,
        receipt=imprint.receipt,
        signer=imprint.signer,
    )


def _read_manifest(reading: _Reading, expected_digest: str | None) -> tuple[bytes, dict[str, Any]]:
    data = reading.read(MANIFEST, MOST_MANIFEST_BYTES)
    if data is None:
        raise reading.damaged("Nothing else can be checked without it.")
    try:
        manifest = read_json(data)
        canonical = canonical_bytes(manifest) == data
    except ValueError:
        manifest, canonical = None, False
    if not isinstance(manifest, dict):
        raise reading.damaged(
            f"{MANIFEST} is not a JSON object as Tabulary writes it, and nothing else can be checked without it."
        )
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
    if not reading.problems and schema != SCHEMA:
        raise ReleaseError(
            f"the release at {reading.folder} has the schema {str(schema)[:80]!r}; this version of Tabulary reads "
            f"{SCHEMA!r}. Use the version that its manifest names under 'software'."
        )
    for name in sorted(FIELDS ^ manifest.keys()):
        reading.note(f"{MANIFEST} {'lacks' if name in FIELDS else 'has an unknown'} field {name!r}.")
    return data, manifest


def _check_signature(
    reading: _Reading, data: bytes, imprint: Imprint | None, present: set[str], key: PublicKey | None
) -> None:
    """Check who signed the manifest; with an expected `key`, go no further unless it was that key."""
    signer = None if imprint is None else imprint.signer
    if signer is not None:
        text = reading.read(SIGNATURE, LONGEST_SIGNATURE) if SIGNATURE in present else None
        signature = None if text is None else signature_in(text)
        if signature is None or not signer.holds(signature, signed_message(data)):
            what = "is missing" if SIGNATURE not in present else "was not made by it over this manifest"
            reading.note(f"{MANIFEST} names the signer {signer}, and the signature {SIGNATURE} {what}.")
    if key is not None:
        if signer is None:
            raise reading.damaged(f"it is not signed, but a signature of {key} was expected.")
        if signer.raw != key.raw:
            raise reading.damaged(f"it is signed by {signer}, but a signature of {key} was expected.")
        if reading.problems:
            raise reading.damaged()


def _read_plan(
    reading: _Reading, manifest: Mapping[str, Any], present: set[str], max_cells: int
) -> Plan | None:
    try:
        refuse_vast(manifest["plan"], max_cells=max_cells)
        # A few lines can claim a table that fills the memory; a true one would need a long file.
        available = sum((reading.folder / name).lstat().st_size for name in present)
        if _claimed_cells(manifest["plan"]) > available:
            reading.note("the plan does not hold: its tables have more cells than the files have bytes.")
            return None
        return plan_from_description(manifest["plan"])
    except PublicError as problem:
        reading.note(f"the plan does not hold: {problem}")
    except (
        *(ArithmeticError, AttributeError, LookupError, TypeError, ValueError),
        *(RecursionError, MemoryError, OSError),
    ):
        reading.note("the plan does not hold: it is not one that Tabulary writes.")
    return None


def _claimed_cells(plan: Mapping[str, Any]) -> int:
    domain = Domain.from_description(plan["domain"])
    return sum(domain.cells(domain.margin(table["attributes"])) for table in plan["workload"])


def _check_files(
    reading: _Reading, plan: Plan, imprint: Imprint, stated: Mapping[str, Any], present: set[str]
) -> None:
    """Compare the files with the manifest, and keep what it states about each.

    Only files whose names follow from the plan are opened, whatever else the manifest names. The plan also bounds the
    length of each file. Tables are read one by one later; all other files are hashed here.
    """
    margins = plan.workload.margins
    most = _most_bytes(plan, margins)
    further = {
        name for names in extra_names(margins, imprint.formats).values() for name in names.values()
    } | {REPORT}
    most |= dict.fromkeys(further, 2 * expected_bytes(plan, imprint.formats) + _SLACK)
    for name in sorted(stated.keys() - most.keys()):
        reading.note(f"{MANIFEST} states a file that is not part of this release: {name!r}.")
    signed = {SIGNATURE} if imprint.signer is not None else set()
    for name in sorted(present - most.keys() - {MANIFEST} - signed):
        reading.note(f"{name} is not part of this release.")
    for name in sorted(most):
        match stated.get(name):
            case {"bytes": int(length), "sha256": str(sha256), **rest} if not rest and _SHA256.fullmatch(
                sha256
            ):
                if name not in present:
                    reading.note(f"{name} is missing.")
                elif length > most[name]:
                    reading.note(
                        f"{MANIFEST} states {length:,} bytes of {name}, more than the plan can fill. It was not read."
                    )
                else:
                    reading.files[name] = _Stated(length, sha256)
                    if name in further:
                        reading.is_as_stated(name)
            case _:
                reading.note(f"{MANIFEST} does not state the length and SHA-256 of {name}.")


def _most_bytes(plan: Plan, margins: Sequence[Margin]) -> dict[str, int]:
    """Return the largest length that the plan allows for the files of every table."""
    most = {}
    for margin, (csv_name, parquet_name) in file_names(margins).items():
        # Parquet writes labels once and numbers in eight bytes: apart from its frame, it is shorter.
        most[csv_name] = most_text_bytes({a: plan.domain.levels_of(a) for a in margin})
        most[parquet_name] = most[csv_name] + _FRAME
    return most


def _read_table(
    reading: _Reading, parquet: ParquetCheck, plan: Plan, margin: Margin, csv_name: str, parquet_name: str
) -> ReleasedTable | None:
    """Return one table if both of its files hold it and it agrees with the plan.

    It is read from its CSV file. The Parquet file is compared with it, and only another process may unpack it.
    """
    if not {csv_name, parquet_name} <= reading.files.keys():
        return None
    text, packed = reading.read_as_stated(csv_name), reading.read_as_stated(parquet_name)
    if text is None or packed is None:
        return None
    try:
        domain, names = plan.domain.project(margin), column_names(margin)
        columns = value_columns(text, domain.size, len(names))
        counts = columns[0].reshape(domain.shape)
        released = ReleasedTable(Table(domain, counts), _law_of(plan, margin, columns, counts))
        expected = arrow_table(released, plan)
        found = expected
        for name, column in zip(names, columns, strict=True):
            found = found.set_column(found.column_names.index(name), name, pa.array(column))
    except PublicError as problem:
        reading.note(f"{csv_name} is not the table on {show_margin(margin)}: {problem}")
        return None
    except (pa.ArrowException, IndexError, TypeError, ValueError, MemoryError):
        reading.note(f"{csv_name} is not the table on {show_margin(margin)}.")
        return None
    if csv_bytes(found) != text:
        reading.note(f"{csv_name} does not have the columns, labels and order of its table.")
    # An end of an interval is a difference: where a count and its half-width are nearly equal, only rounding is left,
    # however small the end.
    _, _, _, upper = columns
    rounding = _ROUNDING * np.abs(upper)
    for name, slack in zip(names, (0.0, 0.0, rounding, rounding), strict=True):
        if not _same_column(found.column(name), expected.column(name), slack):
            reading.note(f"{csv_name}: column {name!r} is not what the plan gives.")
    if plan.whole and counts.dtype.kind != "i":
        reading.note(f"{csv_name} holds real numbers where whole ones were measured.")
    if not parquet.holds(packed, found):
        reading.note(f"{parquet_name} does not hold the same table as {csv_name}.")
    return released


def _law_of(plan: Plan, margin: Margin, columns: Sequence[NDArray[Any]], counts: NDArray[Any]) -> ErrorLaw:
    """Return the law of the errors: for linear estimates from the plan, for others from the file."""
    if plan.reconstruct == "none":
        return plan.error_of(margin)
    _, deviations, _, upper = (column.astype(np.float64).reshape(counts.shape) for column in columns)
    # numpy would turn the total, an array without axes, into a scalar.
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
    # Tables that agree on their shared attributes were margins of one table; each is compared with the first table
    # that has these attributes.
    seen: dict[Margin, NDArray[Any]] = {}
    for table in released:
        for shared in _shared(table.margin, plan.workload.margins):
            counts = table.table.project(shared).counts
            known = seen.setdefault(shared, counts)
            if not np.allclose(known, counts, rtol=1e-6, atol=1e-6):
                reading.note(f"the tables do not agree on {show_margin(shared)}.")


def _shared(margin: Margin, margins: Sequence[Margin]) -> Iterable[Margin]:
    """Return the sets on which a table can be compared with others: all that it may share, or all that it shares."""
    if 2 ** len(margin) <= len(margins):
        return (s for order in range(len(margin) + 1) for s in combinations(margin, order))
    return {tuple(a for a in margin if a in other) for other in margins}


def _same_column(
    found: pa.ChunkedArray, expected: pa.ChunkedArray, slack: float | NDArray[np.float64]
) -> bool:
    if pa.types.is_floating(expected.type):
        return found.type == expected.type and bool(
            np.isclose(found.to_numpy(), expected.to_numpy(), rtol=TOLERANCE, atol=slack).all()
        )
    return bool(found.equals(expected))


def _check_claims(
    reading: _Reading,
    plan: Plan,
    released: list[ReleasedTable],
    manifest: Mapping[str, Any],
    imprint: Imprint,
) -> None:
    derived = claims(plan, released, imprint)
    if len(released) < len(plan.workload):
        # Already noted for each table; the remaining tables say nothing about the claim.
        del derived["tables"]
    for name, claim in derived.items():
        if name in manifest and not agree(manifest[name], claim):
            reading.note(f"{MANIFEST}: {name!r} does not follow from the plan.")
