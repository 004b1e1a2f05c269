"""Which files a path means, and what the header of a CSV file says."""

import csv
import glob
import gzip
from pathlib import Path

from tabulary.core.urls import scheme_of
from tabulary.errors import UnreadableSource

CSV = "CSV"
PARQUET = "Parquet"

_SUFFIXES = {".csv": CSV, ".csv.gz": CSV, ".parquet": PARQUET}


def format_of(path: Path) -> str | None:
    """Return the format of a file by the end of its name, or None.

    >>> format_of(Path("people.CSV.gz")), format_of(Path("people.xlsx"))
    ('CSV', None)
    """
    name = path.name.lower()
    return next((kind for suffix, kind in _SUFFIXES.items() if name.endswith(suffix)), None)


def find_files(path: str | Path, wanted: str | None = None) -> tuple[str, tuple[Path, ...]]:
    """Return the format and the files that a path means: a file, a folder of files, or a glob.

    The format is `wanted`, or otherwise what the names say. A folder must contain only files of one format, because
    leaving out a part silently is worse than an error. Names that begin with "." or "_" are skipped: tools leave
    such files next to the data. No network: an address is for `Records.from_database`.
    """
    text = str(path)
    # The address is not repeated: it may contain a password.
    if (scheme := scheme_of(text)) is not None:
        raise UnreadableSource(
            f"a path that begins with {scheme}: is an address, but files are read from this machine only. "
            "Nothing was read. Open records in a database or on a Spark cluster with "
            "Records.from_database(url, table, ...), or with `source` and `table` in [data] of a plan "
            "file; download files from other machines first."
        )
    place = Path(text).expanduser()
    if place.is_dir():
        files = _in_folder(place)
    elif place.is_file():
        files = [place]
    elif place.exists():
        raise UnreadableSource(f"{text!r} is neither a file nor a folder.")
    elif glob.has_magic(text):
        files = sorted(Path(found) for found in glob.glob(str(place), recursive=True))  # noqa: PTH207
        files = [file for file in files if file.is_file()]
        if not files:
            raise UnreadableSource(f"no file matches {text!r}.")
    else:
        raise UnreadableSource(f"there is no file or folder {text!r}.")
    formats = {wanted if wanted and len(files) == 1 else format_of(file) for file in files}
    for file in files:
        if None in formats and format_of(file) is None:
            raise UnreadableSource(
                f"the file {file.name!r} has no known format: its name must end in {', '.join(_SUFFIXES)}. "
                "Nothing was read."
            )
    if len(formats) > 1 or (wanted and formats != {wanted}):
        raise UnreadableSource(
            f"{text!r} contains files that are not all {wanted or 'of one format'}. Nothing was read. Name "
            "the files to read with a glob."
        )
    (kind,) = formats
    assert kind is not None
    return kind, tuple(file.resolve() for file in files)


def _in_folder(folder: Path) -> list[Path]:
    entries = sorted(entry for entry in folder.iterdir() if not entry.name.startswith((".", "_")))
    if not entries:
        raise UnreadableSource(f"the folder {str(folder)!r} is empty.")
    for entry in entries:
        if not entry.is_file():
            raise UnreadableSource(
                f"the folder {str(folder)!r} contains {entry.name!r}, which is not a file. To read folders "
                "within folders, use a glob such as 'people/**/*.parquet'."
            )
    return entries


def is_compressed(path: Path) -> bool:
    """Return whether a file's name says that it is compressed."""
    return path.name.lower().endswith(".gz")


def csv_header(path: Path, delimiter: str) -> tuple[str, ...]:
    """Return the names in the first line of a CSV file."""
    names: list[str] | None = None
    problem = f"the CSV file {path.name!r} is empty: it has no header."
    try:
        opened = gzip.open if is_compressed(path) else open
        with opened(path, "rt", encoding="utf-8-sig", newline="") as lines:
            names = next(csv.reader(lines, delimiter=delimiter, strict=True), None)
    except (OSError, EOFError, UnicodeError, csv.Error):
        problem = f"the CSV file {path.name!r} cannot be read: it must be UTF-8 text with a header line."
    # Raised here, outside the handler, so that the error does not carry the original one, whose text may quote the
    # file.
    if names is None:
        raise UnreadableSource(problem)
    return tuple(names)
