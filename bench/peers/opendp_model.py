"""OpenDP's AIM, as a program: `python -m bench.peers.opendp_model MEGABYTES FOLDER`.

It runs in an environment of its own, because `opendp[mbi]` asks for another polars than ours. The noise comes
from OpenDP's own entropy, so the question's seed is not used. The tables are those of the fitted model itself:
synthetic records sampled from it would only add error. It is told the margins that are wanted. The megabytes
bound its model: 80 is OpenDP's default and takes a quarter of an hour on Adult.
"""

import sys
from pathlib import Path

import numpy as np
import opendp.prelude as dp
import polars as pl

from bench.peers.opendp_loss import zcdp_loss
from bench.peers.question import Question, Table, timed


def tables(question: Question, megabytes: float) -> list[Table]:
    """Return the model's table on every margin, axes in the margin's order."""
    levels = question.levels
    if question.delta:
        loss = {"rho": zcdp_loss(question.epsilon, question.delta)}
    else:
        loss = {"epsilon": float(question.epsilon)}
    context = dp.Context.compositor(
        data=pl.DataFrame(question.codes, schema=list(levels)).lazy(),
        privacy_unit=dp.unit_of(contributions=1),
        privacy_loss=dp.loss_of(**loss),
    )
    keys = {name: list(range(count)) for name, count in levels.items()}
    wanted = [dp.mbi.Count(by=margin) for margin in question.margins]
    algorithm = dp.mbi.AIM(queries=wanted, max_size=megabytes)
    model = context.query(**loss).contingency_table(keys=keys, algorithm=algorithm).release()
    # OpenDP adds a last level for what is missing, which no record here has.
    return [
        np.asarray(model.project(margin))[tuple(slice(levels[name]) for name in margin)]
        for margin in question.margins
    ]


def main() -> None:
    megabytes, folder = float(sys.argv[1]), Path(sys.argv[2])
    dp.enable_features("contrib")
    question = Question.read(folder)
    timed(lambda: tables(question, megabytes)).write(folder)


if __name__ == "__main__":
    main()
