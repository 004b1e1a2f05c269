"""Cell keys beside the package cell-key-perturbation of the ONS: `python -m bench.cellkey`.

One million records in a pandas frame, a four-way table of 140,000 cells, 256 keys, a ptable of 750 rows, counts below
ten withheld. Processor time from the frame to the published table, the least of some rounds, ours and theirs in the
same run; every published count must be equal. Three frames: columns of whole numbers, as in the peer's own test data,
of categories, and of text, where most of the time goes into reading four million texts, with us as with them. The peer
runs in an environment of its own.
"""

import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np

from bench.peers.environment import ROOT, interpreter, last_words
from bench.peers.keyed_frame import MINIMUM, frame_of
from bench.peers.question import CannotAnswer
from bench.report import line
from tabulary.cellkey import KeyedRecords, PTable, RecordKeys, perturb
from tabulary.core.domain import Domain

RECORDS = 1_000_000
SHAPE = (35, 20, 20, 10)
KEYS = 256
ROUNDS = 9
# Of each kind of column: how many times faster at least.
TARGETS = {"integers": 10, "categories": 10, "text": 10}
PEER = "cell_key_table"


def ptable() -> PTable:
    """Rows of three to eleven offsets that widen with the count; none leads below zero."""
    rows = []
    for count in range(1, 751):
        reach = min(count, 1 + count // 100, 5)
        rows.append(dict.fromkeys(range(-reach, reach + 1), f"1/{2 * reach + 1}"))
    return PTable.from_rows(rows, modulus=KEYS, first=1, above=("repeat", 501))


def theirs(folder: Path) -> None:
    command = [str(interpreter(PEER)), "-m", f"bench.peers.{PEER}", str(ROUNDS), str(folder)]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600)
    if ran.returncode:
        raise CannotAnswer(f"failed: {last_words(ran.stderr)}")


def main() -> None:
    generator = np.random.default_rng(11)
    # Crowded at the low levels, so that cells hold from none to more than a thousand records.
    codes = np.stack([(generator.random(RECORDS) ** 3 * n).astype(np.int64) for n in SHAPE], axis=1)
    keys = generator.integers(0, KEYS, RECORDS)
    with tempfile.TemporaryDirectory(prefix="tabulary-bench-") as name:
        folder = Path(name)
        np.save(folder / "codes.npy", codes)
        np.save(folder / "keys.npy", keys)
        ptable().to_csv(folder / "ptable.csv")
        # Both read the same file.
        table = PTable.from_csv(folder / "ptable.csv", above=("repeat", 501))
        theirs(folder)
        for kind in TARGETS:
            with np.load(folder / f"{kind}.npz") as answer:
                compare(kind, codes, keys, table, answer["counts"], float(answer["seconds"]))


def compare(
    kind: str, codes: np.ndarray, keys: np.ndarray, table: PTable, expected: np.ndarray, peer_seconds: float
) -> None:
    frame = frame_of(codes, keys, kind)
    label = "{}" if kind == "integers" else "level {:02}"
    domain = Domain({f"a{i}": [label.format(code) for code in range(n)] for i, n in enumerate(SHAPE)})
    described = RecordKeys(modulus=KEYS)
    seconds = []
    # The first round compiles, and is not counted: every process after the first finds it done.
    for _ in range(1 + ROUNDS):
        start = time.process_time()
        with KeyedRecords.from_frame(frame, domain, keys=described) as records:
            published, _ = perturb(records, domain.attributes, table, minimum=MINIMUM)
        seconds.append(time.process_time() - start)
    assert np.array_equal(published.counts.filled(-1), expected), kind
    line(
        f"cellkey: {kind}", "cell-key-perturbation", 1e3 * min(seconds[1:]), 1e3 * peer_seconds, TARGETS[kind],
        unit="ms of processor time from frame to table", records=RECORDS, cells=domain.size, equal=True,
    )  # fmt: skip


if __name__ == "__main__":
    main()
