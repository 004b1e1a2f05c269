"""A table builder whose one table of two variables has ten thousand cells."""

from pathlib import Path

import numpy as np

from tabulary.builder.service import ServedDataset, Service
from tabulary.builder.state import State
from tabulary.confidential.records import Records
from tabulary.core.domain import Domain
from tabulary.core.labels import Labels
from tabulary.core.neighbours import Neighbours
from tabulary.core.privacy import ZCDP
from tabulary.ledger import Ledger
from tabulary.planning.allowed_tables import AllowedTables
from tabulary.workflows.answering.fixed import FixedAnswers
from tests.builders import GENEROUS, SECRET, people

DOMAIN = Domain({"home": [f"h{i}" for i in range(100)], "work": [f"w{i}" for i in range(100)]})
CELLS = DOMAIN.size
TABLE = "/datasets/commuters/table?rows=home&columns=work&totals=off"


def commuters(folder: Path) -> Service:
    """Return the builder: a hundred places, and twenty people who go from each to each."""
    ledger = Ledger.create(folder / "ledger.sqlite")
    answers = FixedAnswers.open(
        Records.from_arrow(people(np.full(DOMAIN.shape, 20), DOMAIN), DOMAIN),
        AllowedTables(DOMAIN, order=2),
        privacy=ZCDP("1/2"),
        neighbours="add-remove",
        account=ledger.create_account("commuters", ZCDP("1/2"), Neighbours()),
        secret=SECRET,
        dataset="commuters",
        version="1",
        reconstruct="none",
    )
    dataset = ServedDataset("commuters", answers, (Labels(title="Commuters"),), "commuters")
    state = State.create(folder / "state.sqlite")
    return Service({"commuters": dataset}, state, ledger, None, GENEROUS)
