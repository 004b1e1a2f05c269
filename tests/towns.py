"""A small town whose table builder holds a dataset of each kind: fixed twice, interactive, and by cell keys."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path

import numpy as np

from tabulary.builder.configuration import read_service_file
from tabulary.builder.opening import initialise
from tabulary.builder.state import State
from tabulary.cellkey import PTable
from tabulary.core.neighbours import Neighbours
from tabulary.core.privacy import ZCDP
from tabulary.ledger import Ledger
from tests.services import Ask, Reply, answers, table_of

LEVELS = {
    "sex": ["F", "M"],
    "age": ["0-14", "15-64", "65+"],
    "job": ["none", "paid"],
    "region": ["north", "east", "south", "west"],
    "faith": ["a", "b", "c"],
}
PEOPLE = 3_000
AFFORDABLE = 20
"""How many questions the budget of the interactive dataset pays for: fewer than there are tables."""
ANALYSTS = ("ann", "bob")

# No limit on how fast anyone asks: everybody here asks from one address, as fast as the machine can.
SERVICE = """
title = "Tables of a town"
[state]
database = "{state}"
[ledger]
database = "{ledger}"
[key]
file = "secret.key"
[limits]
requests_a_minute = 100000000
burst = 100000000

[dataset.town]
version = "{version}"
source = "people.csv"
[dataset.town.privacy]
rho = "1/8"
[dataset.town.budget]
rho = "1/4"
[dataset.town.mechanism]
reconstruct = "none"
[dataset.town.tables]
order = 3
{town_domain}

[dataset.whole]
version = "{version}"
source = "people.csv"
[dataset.whole.privacy]
rho = "1/8"
[dataset.whole.budget]
rho = "1/4"
[dataset.whole.mechanism]
reconstruct = "shrink"
[dataset.whole.tables]
order = 2
{whole_domain}

[dataset.diary]
version = "{version}"
source = "people.csv"
method = "interactive"
[dataset.diary.privacy]
rho = "1/100"
[dataset.diary.budget]
rho = "{affordable}/100"
[dataset.diary.tables]
order = 3
{diary_domain}

[dataset.street]
version = "{version}"
source = "people.csv"
method = "cell-key"
[dataset.street.keys]
modulus = 256
[dataset.street.ptable]
file = "ptable.csv"
[dataset.street.tables]
order = 3
{street_domain}
"""


@dataclass(frozen=True)
class Town:
    """A configured table builder: its file, where its books are, and the tokens of its analysts."""

    file: Path
    ledger: Path | str = field(repr=False)
    state: Path | str = field(repr=False)
    tokens: dict[str, str] = field(repr=False)

    @property
    def folder(self) -> Path:
        """Where everything is that is not in a database."""
        return self.file.parent


def kept_in(database: str) -> dict[str, str]:
    """Return where a town keeps its books: in a PostgreSQL database, or in two SQLite files of its folder."""
    return {"ledger": database, "state": database} if "://" in database else {}


def write_town(
    folder: Path, *, state: str = "state.sqlite", ledger: str = "ledger.sqlite", version: str = "2026"
) -> Path:
    """Write the records and the configuration into a folder; return the configuration. Nothing is opened."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "people.csv").write_text(people(), "utf-8")
    PTable.from_rows([{0: 1}, {-1: "1/4", 0: "1/2", 1: "1/4"}], modulus=256).to_csv(folder / "ptable.csv")
    domains = {
        f"{name}_domain": "".join(
            f"[dataset.{name}.domain.{a}]\nlevels = {json.dumps(levels)}\n" for a, levels in LEVELS.items()
        )
        for name in ("town", "whole", "diary", "street")
    }
    file = folder / "service.toml"
    places = {"state": state, "ledger": ledger}
    told = SERVICE.format(**places, **domains, version=version, affordable=AFFORDABLE)
    file.write_text(told, "utf-8")
    return file


def found_town(folder: Path, *, state: str = "state.sqlite", ledger: str = "ledger.sqlite") -> Town:
    """Write a town into a folder and initialise it, with an account and a token for each of two analysts."""
    file = write_town(folder, state=state, ledger=ledger)
    initialise(read_service_file(file))
    books, memory = (place if "://" in place else folder / place for place in (ledger, state))
    tokens = {}
    with Ledger.open(books) as opened, State.open(memory) as remembered:
        for analyst in ANALYSTS:
            if analyst not in {account.name for account in opened.accounts()}:
                opened.create_account(analyst, ZCDP(1), Neighbours())
            tokens[analyst] = remembered.tokens.add(analyst, "analyst", account=analyst)[1]
    return Town(file, books, memory, tokens)


def people() -> str:
    """Return generated people as CSV, with a record key each."""
    generator = np.random.default_rng(9)
    columns = [generator.choice(levels, PEOPLE) for levels in LEVELS.values()]
    keys = generator.integers(256, size=PEOPLE)
    rows = [",".join(map(str, row)) for row in zip(*columns, keys, strict=True)]
    return "\n".join([",".join([*LEVELS, "record_key"]), *rows]) + "\n"


def free_questions() -> list[Ask]:
    """Return questions that anyone may ask: of every free dataset, with every kind of table and a filter."""
    return [
        *(table_of("town", *by) for k in (1, 2, 3) for by in combinations(LEVELS, k)),
        table_of("town", "sex", "age", region="south"),
        *(table_of(dataset, *by) for dataset in ("whole", "street") for by in combinations(LEVELS, 2)),
    ]


def paid_questions(tokens: Iterable[str], tables: Sequence[tuple[str, ...]] | None = None) -> list[Ask]:
    """Return questions to the interactive dataset, each asked by every analyst."""
    asked = tables if tables is not None else [by for k in (1, 2, 3) for by in combinations(LEVELS, k)]
    return [table_of("diary", *by, token=token) for by in asked for token in tokens]


def check_books(town: Town, heard: Iterable[tuple[Ask, Reply]]) -> int:
    """Fail unless the ledger is sound, nothing is overspent, no question was paid for twice, and none that was
    answered was not paid for. Return how many questions of the interactive dataset were paid for.
    """
    plans = {
        path: json.loads(body)["plan"] for path, body in answers(heard).items() if "/diary/tables" in path
    }
    with Ledger.open(town.ledger) as ledger:
        ledger.check()
        for account in ledger.accounts():
            spent = account.spent()
            assert spent is None or spent.rho <= account.budget.rho, account.name
        entries = ledger.account("diary").entries()
        paid = [entry.plan_digest for entry in entries]
        assert len(set(paid)) == len(paid)
        assert set(plans.values()) <= set(paid)
        assert len(set(plans.values())) == len(plans)
        # Whatever the dataset paid, one of the analysts paid too.
        theirs = [entry.plan_digest for analyst in ANALYSTS for entry in ledger.account(analyst).entries()]
        assert sorted(theirs) == sorted(paid)
        for dataset in ("town", "whole"):
            assert len(ledger.account(dataset).entries()) == 1
    return len(paid)
