"""Reads a release and trusts nothing in it: every byte and every claim is checked."""

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tabulary.core.domain import MAX_CELLS, Domain, Margin
from tabulary.core.labels import Labels
from tabulary.core.table import Table
from tabulary.core.workload import show_margin
from tabulary.errors import PublicError, ReleaseDamaged, ReleaseError
from tabulary.planning import Measurement, Plan, plan_from_description
from tabulary.release.bounds import MOST_MANIFEST_BYTES, most_text_bytes, read_json, refuse_vast
from tabulary.release.csv_table import value_columns
from tabulary.release.folder import MANIFEST, hash_plain_file, list_folder, read_plain_file
from tabulary.release.formats import TABLES, arrow_table, csv_bytes, expected_bytes, file_names
from tabulary.release.manifest import (
    FIELDS,
    LONGEST_SIGNATURE,
    REPORT,
    SCHEMA,
    SIGNATURE,
    TOLERANCE,
    Imprint,
    agree,
    canonical_bytes,
    claims,
    digest_of,
    signature_in,
    signed_message,
)
from tabulary.release.measurements import MEASUREMENTS, measured_values, read_measurements
from tabulary.release.parquet_check import ParquetCheck
from tabulary.release.release import Release
from tabulary.release.remaking import face_problems
from tabulary.release.signing import PublicKey
from tabulary.release.stated import stated_face, stated_words
from tabulary.release.table import column_names
from tabulary.release.writers import extra_names, release_names

_SHA256 = re.compile(r"[0-9a-f]{64}")
_MOST_LISTED = 100
# Rounding changes the difference of two doubles by at most this share of the larger.
_ROUNDING = 1e-12
# A folder with this many files more than its manifest names is not read any further.
_MOST_STRANGERS = 1_000
# How much longer than expected a file may be that is only hashed.
_SLACK = 1 << 24
# The measurements may have this many times as many numbers as the largest allowed table has cells.
_TIMES_MOST_CELLS = 4
# A Parquet file holds more than its table: names, statistics and offsets, again for every million rows.
_FRAME = 1 << 20


@dataclass(frozen=True)
class VerifiedRelease:
    """The content of a folder in which nothing was wrong; `stated` has the SHA-256 of each file."""

    release: Release
    digest: str
    imprint: Imprint
    stated: Mapping[str, str]


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
    of a table agree; linear estimates follow from the measurements, and official tables are whole, non-negative and
    additive. Whether official tables follow from the measurements is checked by `Release.verify`, which makes them
    again, and the files in other formats. Here these are checked by their SHA-256 alone: another version of a writer
    would write other bytes. The returned data are the checked bytes: every file is opened once.

    The folder may come from anyone. Before anything is unpacked, built or derived, its size is computed from the plan
    and checked against the bounds. With `key`, only the manifest is read unless that key has signed it.
    """
    reading = _Reading(path)
    if not path.is_dir():
        raise ReleaseError(f"there is no release at {path}: that is not a folder.")
    if not any((path / name).exists() for name in (MANIFEST, MEASUREMENTS)):
        raise ReleaseError(
            f"there is no release at {path}: the folder has no {MANIFEST}. Give a folder that `tabulary release` wrote."
        )
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
    words = stated_words(plan, manifest, reading.note)
    if words is None:
        raise reading.damaged()
    labels, dropping = words
    _check_files(reading, plan, imprint, labels, stated, present)
    with ParquetCheck() as parquet:
        measurement = _read_measurements(reading, plan, parquet)
        face_stated = stated_face(plan, manifest, reading.note)
        if measurement is None or face_stated is None:
            raise reading.damaged()
        counts = {m: _read_counts(reading, plan, m, names[m][0]) for m in plan.workload}
        known = {margin: columns for margin, columns in counts.items() if columns is not None}
        if len(known) < len(counts):
            raise reading.damaged()
        face = face_stated.made(measurement, {m: columns[0] for m, columns in known.items()})
        release = Release(
            measurement,
            face,
            labels=labels,
            dropping=dropping,
            engine=imprint.engine,
            receipt=imprint.receipt,
        )
        for margin, columns in known.items():
            _check_table(reading, parquet, release, margin, columns, *names[margin])
    for fault in face_problems(face):
        reading.note(fault)
    for name, claim in claims(release, imprint).items():
        if name in manifest and not agree(manifest[name], claim):
            reading.note(f"{MANIFEST}: {name!r} does not follow from the plan and the measurements.")
    if reading.problems:
        raise reading.damaged()
    hashes = {name: file.sha256 for name, file in reading.files.items()}
    return VerifiedRelease(release, manifest["digest"], imprint, hashes)


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
        plan = plan_from_description(manifest["plan"])
        if measured_values(plan) > _TIMES_MOST_CELLS * max_cells:
            reading.note("the plan does not hold: it measures more numbers than may be read.")
            return None
        return plan
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
    reading: _Reading,
    plan: Plan,
    imprint: Imprint,
    labels: Sequence[Labels],
    stated: Mapping[str, Any],
    present: set[str],
) -> None:
    """Compare the files with the manifest, and keep what it states about each.

    Only files whose names follow from the plan are opened, whatever else the manifest names. The plan and the labels
    also bound the length of each file. Tables are read one by one later; all other files are hashed here.
    """
    margins = plan.workload.margins
    most = _most_bytes(plan, margins) | {MEASUREMENTS: 64 * measured_values(plan) + _FRAME}
    further = {
        name for names in extra_names(margins, imprint.formats).values() for name in names.values()
    } | {REPORT, *release_names(imprint.formats).values()}
    most |= dict.fromkeys(further, 2 * expected_bytes(plan, imprint.formats, labels) + _SLACK)
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


def _read_measurements(reading: _Reading, plan: Plan, parquet: ParquetCheck) -> Measurement | None:
    data = reading.read_as_stated(MEASUREMENTS) if MEASUREMENTS in reading.files else None
    if data is None:
        return None
    try:
        return read_measurements(data, plan, parquet)
    except PublicError as problem:
        reading.note(f"{MEASUREMENTS} is not the file of this plan: {problem}")
        return None


def _read_counts(
    reading: _Reading, plan: Plan, margin: Margin, csv_name: str
) -> Sequence[NDArray[Any]] | None:
    """Return the columns of numbers of a table from its CSV file, each in the shape of the table."""
    text = reading.read_as_stated(csv_name) if csv_name in reading.files else None
    if text is None:
        return None
    try:
        domain = plan.domain.project(margin)
        columns = value_columns(text, domain.size, len(column_names(margin)))
        shaped = [column.reshape(domain.shape) for column in columns]
        Table(domain, shaped[0])
    except PublicError as problem:
        reading.note(f"{csv_name} is not the table on {show_margin(margin)}: {problem}")
        return None
    except (pa.ArrowException, IndexError, TypeError, ValueError, MemoryError):
        reading.note(f"{csv_name} is not the table on {show_margin(margin)}.")
        return None
    return shaped


def _check_table(
    reading: _Reading,
    parquet: ParquetCheck,
    release: Release,
    margin: Margin,
    columns: Sequence[NDArray[Any]],
    csv_name: str,
    parquet_name: str,
) -> None:
    """Check that both files of a table hold what follows from the release.

    The Parquet file is compared with the CSV file, and only another process may unpack it.
    """
    packed = reading.read_as_stated(parquet_name) if parquet_name in reading.files else None
    if packed is None:
        return
    names = column_names(margin)
    expected = found = arrow_table(release[margin], release.plan)
    for name, column in zip(names, columns, strict=True):
        found = found.set_column(found.column_names.index(name), name, pa.array(column.reshape(-1)))
    if hashlib.sha256(csv_bytes(found)).hexdigest() != reading.files[csv_name].sha256:
        reading.note(f"{csv_name} does not have the columns, labels and order of its table.")
    # An end of an interval is a difference: where a count and its half-width are nearly equal, only rounding is left,
    # however small the end. A linear estimate is a sum of many numbers, and rounds as the largest of them does.
    rounding = _ROUNDING * np.abs(columns[3]).max(initial=0.0)
    for name in names:
        if not _same_column(found.column(name), expected.column(name), rounding):
            reading.note(f"{csv_name}: column {name!r} is not what the plan and the measurements give.")
    if not parquet.holds(packed, found):
        reading.note(f"{parquet_name} does not hold the same table as {csv_name}.")


def _same_column(
    found: pa.ChunkedArray, expected: pa.ChunkedArray, slack: float | NDArray[np.float64]
) -> bool:
    if pa.types.is_floating(expected.type):
        return found.type == expected.type and bool(
            np.isclose(found.to_numpy(), expected.to_numpy(), rtol=TOLERANCE, atol=slack).all()
        )
    return bool(found.equals(expected))
