"""A table by the package cell-key-perturbation, as a program: `python -m bench.peers.cell_key_table ROUNDS FOLDER`.

It runs in an environment of its own, since its wheel puts files beside the packages. The folder holds the records as
codes, their keys and the ptable; the answer is the published count of every cell, -1 where it is withheld, and the
least processor time of the rounds, for each kind of column.
"""

import contextlib
import io
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
from cell_key_perturbation.create_perturbed_table import create_perturbed_table

from bench.peers.keyed_frame import KINDS, MINIMUM, frame_of


def main() -> None:
    rounds, folder = int(sys.argv[1]), Path(sys.argv[2])
    codes, keys = np.load(folder / "codes.npy"), np.load(folder / "keys.npy")
    ptable = pd.read_csv(folder / "ptable.csv")
    names = [f"a{place}" for place in range(codes.shape[1])]
    shape = tuple(codes.max(axis=0) + 1)
    for kind in KINDS:
        frame = frame_of(codes, keys, kind)
        seconds = []
        for _ in range(rounds):
            start = time.process_time()
            with contextlib.redirect_stdout(io.StringIO()):
                table = create_perturbed_table(
                    frame, ptable, names[:1], names[1:], "record_key", threshold=MINIMUM
                )
            seconds.append(time.process_time() - start)
        places = tuple(
            table[name].to_numpy()
            if kind == "integers"
            else table[name].astype(str).str[-2:].astype(int).to_numpy()
            for name in names
        )
        counts = np.zeros(shape, dtype=np.int64)
        counts[places] = table["count"].fillna(-1).to_numpy(np.int64)
        np.savez(folder / f"{kind}.npz", counts=counts, seconds=min(seconds), cells=len(table))


if __name__ == "__main__":
    main()
