"""A small table builder for the pages: people who do not exist, and a key that is no secret.

Its noise is drawn from a key that stands here, so that the pages show the same numbers every time. It protects nobody.
"""

import tempfile
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import tabulary as tb
from tabulary.builder.service import ServedDataset, Service
from tabulary.builder.state import State
from tabulary.core.labels import Labels
from tabulary.ledger import Ledger
from tabulary.planning.allowed_tables import AllowedTables
from tabulary.workflows.answering.fixed import FixedAnswers
from tabulary.workflows.answering.interactive import InteractiveAnswers
from tests.serving import served

NO_SECRET = bytes(range(32))
PEOPLE = 20_000


def domain() -> tb.Domain:
    """Return four attributes of the generated people."""
    every = tb.datasets.people_domain()
    return tb.Domain({a: every.levels_of(a) for a in ("region", "sex", "employment", "education")})


def fixed_answers(ledger: Ledger, *, version: str = "2026", people: int = PEOPLE) -> FixedAnswers:
    """Return the generated people behind fixed answers: all tables of up to two attributes at ρ = 1/8."""
    return FixedAnswers.open(
        tb.Records.from_arrow(tb.datasets.people(people, seed=7), domain()),
        AllowedTables(domain(), order=2, forbidden=[("employment", "education")]),
        privacy=tb.ZCDP("1/8"),
        neighbours="add-remove",
        account=ledger.account("people"),
        secret=NO_SECRET,
        dataset="people",
        version=version,
        reconstruct="none",
    )


@dataclass
class SmallBuilder:
    """A builder that answers at `url` until it is stopped; `token` is that of an analyst."""

    url: str = ""
    token: str = field(default="", repr=False)
    _open: ExitStack = field(default_factory=ExitStack, repr=False)

    @classmethod
    def start(cls) -> "SmallBuilder":
        """Return a builder with the datasets `people`, of fixed answers, and `survey`, whose questions cost."""
        made = cls()
        folder = Path(made._open.enter_context(tempfile.TemporaryDirectory()))
        ledger = Ledger.create(folder / "ledger.sqlite")
        for name, budget in (("people", "1/8"), ("survey", "1/2"), ("ada", "1/50")):
            ledger.create_account(name, tb.ZCDP(budget), tb.Neighbours("add-remove"))
        survey = InteractiveAnswers.open(
            tb.Records.from_arrow(tb.datasets.people(PEOPLE, seed=8), domain()),
            AllowedTables(domain(), order=3),
            cost=tb.ZCDP("1/100"),
            ledger=ledger,
            account=ledger.account("survey"),
            neighbours="add-remove",
            secret=NO_SECRET,
            dataset="survey",
            version="1",
        )
        datasets = [
            ServedDataset("people", fixed_answers(ledger), (Labels("20,000 generated people"),), "people"),
            ServedDataset("survey", survey, (Labels("A survey whose questions cost"),), "survey"),
        ]
        state = State.create(folder / "state.sqlite")
        _, made.token = state.tokens.add("Ada", "analyst", account="ada")
        service = Service({each.name: each for each in datasets}, state, ledger)
        made.url = made._open.enter_context(served(service))
        return made

    def stop(self) -> None:
        """Stop answering, and remove what was written."""
        self._open.close()
