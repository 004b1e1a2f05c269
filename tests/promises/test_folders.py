"""A release folder holds nothing exact: no count of the records, in no file and in no form."""

import io
import struct
import zipfile
from itertools import combinations

import numpy as np
import pyarrow.parquet as pq
import pytest

import tabulary as tb
from tabulary.mechanisms import MECHANISMS
from tabulary.release.writers import FORMATS
from tests.entropy import SeededEntropy

DOMAIN = tb.Domain({"sex": ["F", "M"], "age": ["0-14", "15-64", "65+"], "job": ["none", "paid"]})
# Nine digits each, so that no other number of a file is one of them by chance.
COUNTS = np.random.default_rng(8).integers(10**8, 10**9, DOMAIN.shape)


def contents(folder):
    """The bytes of every file, unpacked where it is an archive, and every number of a Parquet file."""
    for file in sorted(f for f in folder.rglob("*") if f.is_file()):
        data = file.read_bytes()
        yield data
        if zipfile.is_zipfile(io.BytesIO(data)):
            with zipfile.ZipFile(file) as archive:
                yield from map(archive.read, archive.namelist())
        if file.suffix == ".parquet":
            yield str(pq.read_table(file).to_pydict()).encode()


def forms(number):
    """How a file could hold a whole number."""
    number = int(number)
    yield from (
        str(number).encode(),
        f"{number:,}".encode(),
        f"{number:,}".replace(",", "\N{NO-BREAK SPACE}").encode(),
    )
    yield from (struct.pack("<q", number), struct.pack("<d", number))


def held(numbers, everything):
    """Which of these numbers stand in any of these contents."""
    return {int(n) for n in numbers if any(form in data for form in forms(n) for data in everything)}


@pytest.mark.parametrize("mechanism", sorted(MECHANISMS))
def test_no_file_of_a_folder_holds_an_exact_count(mechanism, tmp_path):
    plan = tb.plan(DOMAIN, "[sex age job]", privacy=tb.PureDP("1/1000"), mechanism=mechanism)
    release = tb.release(tb.Table(DOMAIN, COUNTS), plan, entropy=SeededEntropy(9))
    release.save(tmp_path / "out", formats=FORMATS)
    everything = list(contents(tmp_path / "out"))
    kept = [axes for n in range(4) for axes in combinations(range(3), n)]
    exact = {n for axes in kept for n in np.atleast_1d(COUNTS.sum(axis=axes)).reshape(-1).tolist()}
    assert not held(exact, everything)
    # The twin: what is published is found in this way.
    published = release["sex", "age", "job"].counts.reshape(-1)
    assert held(published, everything) == set(map(int, published))
