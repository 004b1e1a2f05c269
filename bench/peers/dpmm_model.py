"""MST as `dpmm` has it, as a program: `python -m bench.peers.dpmm_model ITERATIONS FOLDER`.

It runs in an environment of its own, because dpmm asks for older numpy, pandas and OpenDP than ours. Its answer
is not one table for each margin but its synthetic records, as many as it believes there are: they do not depend
on the margins that are wanted. The seed decides what it chooses and samples; its noise comes from OpenDP's
entropy. The iterations are those of its last fit: dpmm's default is 5,000.
"""

import sys
from pathlib import Path

import numpy as np
import pandas as pd
from dpmm.models.mst import MSTGM

from bench.peers.question import Question, Table, timed


def synthetic_records(question: Question, iterations: int) -> Table:
    model = MSTGM(
        epsilon=question.epsilon,
        delta=question.delta,
        n_iters=iterations,
        domain=question.levels,
        random_state=np.random.RandomState(question.seed),
        n_jobs=1,
    )
    model.fit(pd.DataFrame(question.codes, columns=list(question.levels)))
    records: Table = model.generate()[list(question.levels)].to_numpy(np.int64)
    return records


def main() -> None:
    iterations, folder = int(sys.argv[1]), Path(sys.argv[2])
    question = Question.read(folder)
    timed(lambda: [synthetic_records(question, iterations)]).write(folder)


if __name__ == "__main__":
    main()
