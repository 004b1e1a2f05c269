"""Small table builders in one process, and someone who asks them."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pyarrow as pa
from starlette.types import ASGIApp

from tabulary.builder.service import ServedDataset, Service, ServiceLimits
from tabulary.builder.state import State
from tabulary.cellkey import KeyedRecords, PTable, RecordKeys
from tabulary.confidential.records import Records
from tabulary.core.cache import Cache
from tabulary.core.domain import Domain
from tabulary.core.labels import Labels, VariableLabels
from tabulary.core.neighbours import Neighbours, Relation
from tabulary.core.privacy import ZCDP
from tabulary.ledger import Ledger
from tabulary.planning.allowed_tables import AllowedTables
from tabulary.workflows.answering.cell_key import CellKeyAnswers
from tabulary.workflows.answering.edition import key_fingerprint
from tabulary.workflows.answering.fixed import FixedAnswers
from tabulary.workflows.answering.interactive import InteractiveAnswers

SECRET = bytes(range(32))
"""The key of every builder here, so that a test sees the same noise every time."""

# A colon in a name and in a level, a letter beyond ASCII, and what CSV has to quote.
DOMAIN = Domain(
    {
        "sex": ["F", "M"],
        "age": ["0-14", "15-64", "65+"],
        "region": ["North", "South: east", 'Straße, "old"'],
        "job: kind": ["none", "paid"],
    }
)
ALLOWED = AllowedTables(DOMAIN, order=3, forbidden=[("region", "job: kind")], max_cells=100)
# A test is not a crowd.
GENEROUS = ServiceLimits(
    requests_a_minute=1_000_000,
    burst=1_000_000,
    tests_a_caller=1_000,
    tables_a_caller=1_000,
    answer_seconds=300,
)


def people(counts: np.ndarray, domain: Domain = DOMAIN) -> pa.Table:
    """Return records with the given count in every cell of the full table."""
    columns = {}
    for attribute, code in zip(domain.attributes, np.indices(domain.shape, dtype=np.int8), strict=True):
        labels = pa.array(domain.levels_of(attribute), pa.string())
        repeated = np.repeat(code.reshape(-1), counts.reshape(-1))
        columns[attribute] = pa.DictionaryArray.from_arrays(repeated, labels)
    return pa.table(columns)


def service(
    folder: Path,
    *,
    counts: np.ndarray | None = None,
    reconstruct: str = "none",
    rho: str = "1/2",
    budget: str = "1/8",
    question: str = "1/16",
    only: Sequence[str] = ("census", "survey", "old"),
    limits: ServiceLimits = GENEROUS,
    neighbours: Relation = "add-remove",
    cache: Cache | None = None,
) -> Service:
    """Return a builder with a dataset of each method: `census`, `survey` and `old`.

    The dataset `survey` has the budget for eight questions, and analyst `ada` for `budget`. What is promised is for
    `neighbours`.
    """
    near = Neighbours(neighbours)
    shared = Cache() if cache is None else cache
    held = np.arange(DOMAIN.size).reshape(DOMAIN.shape) * 7 + 40 if counts is None else counts
    records = people(held)
    ledger = Ledger.create(folder / "ledger.sqlite")
    datasets = []
    if "census" in only:
        account = ledger.create_account("census", ZCDP(rho), near)
        fixed = FixedAnswers.open(
            Records.from_arrow(records, DOMAIN),
            ALLOWED,
            privacy=ZCDP(rho),
            neighbours=near,
            account=account,
            secret=SECRET,
            dataset="census",
            version="2026",
            reconstruct=reconstruct,
            cache=shared,
        )
        variables = {"sex": VariableLabels("Sex"), "age": VariableLabels("Age", "In completed years.")}
        labels = Labels("Census 2026", "Everyone.", variables=variables)
        datasets.append(ServedDataset("census", fixed, (labels,), "census"))
    if "survey" in only:
        account = ledger.create_account("survey", ZCDP(8 * ZCDP(question).rho), near)
        ledger.create_account("ada", ZCDP(budget), near)
        ledger.create_account("bob", ZCDP(8), near)
        interactive = InteractiveAnswers.open(
            Records.from_arrow(records, DOMAIN),
            ALLOWED,
            cost=ZCDP(question),
            ledger=ledger,
            account=account,
            neighbours=near,
            secret=SECRET,
            dataset="survey",
            version="1",
            cache=shared,
        )
        datasets.append(ServedDataset("survey", interactive, (Labels("Survey", "Some."),), "survey"))
    if "old" in only:
        keys = pa.array(np.arange(len(records)) % 4)
        keyed = KeyedRecords.from_frame(
            records.append_column("record_key", keys), DOMAIN, keys=RecordKeys(modulus=4)
        )
        ptable = PTable.from_array([[0, 0, 0, 0], [1, 0, 0, -1], [2, 0, -1, -1]], above="last")
        old = CellKeyAnswers.open(
            keyed, ALLOWED, ptable, dataset="old", version="1", minimum=120, cache=shared
        )
        datasets.append(ServedDataset("old", old, (Labels("As it was", "Perturbed."),)))
    state = State.create(folder / "state.sqlite")
    return Service(
        {each.name: each for each in datasets},
        state,
        ledger,
        key_fingerprint(SECRET),
        limits,
        "Tables",
        cache=shared,
    )


class Caller:
    """Someone who asks an application in this process, one request after the other."""

    def __init__(self, app: ASGIApp, token: str | None = None) -> None:
        self.app = app
        self.headers = {} if token is None else {"Authorization": f"Bearer {token}"}

    def ask(self, method: str, path: str, **given: Any) -> httpx.Response:
        """Return the answer to one request."""
        return self.ask_all([(method, path, given)])[0]

    def ask_all(self, requests: Sequence[tuple[str, str, Mapping[str, Any]]]) -> list[httpx.Response]:
        """Return the answers to requests that are all made at once."""

        async def together() -> list[httpx.Response]:
            # An error of the application must be answered, not raised.
            transport = httpx.ASGITransport(self.app, raise_app_exceptions=True)
            async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
                return list(await asyncio.gather(*(self._one(client, *each) for each in requests)))

        return asyncio.run(together())

    def get(self, path: str, params: Any = None, **headers: str) -> httpx.Response:
        """Return the answer to a GET; an underscore in the name of a header stands for a hyphen."""
        return self.ask("GET", path, params=params, headers=_named(headers))

    def post(self, path: str, body: object, **headers: str) -> httpx.Response:
        """Return the answer to a POST of JSON."""
        named = {"Content-Type": "application/json", **_named(headers)}
        return self.ask("POST", path, content=json.dumps(body), headers=named)

    async def _one(
        self, client: httpx.AsyncClient, method: str, path: str, given: Mapping[str, Any]
    ) -> httpx.Response:
        headers = {**self.headers, **given.get("headers", {})}
        return await client.request(method, path, **{**given, "headers": headers})


def _named(headers: Mapping[str, str]) -> dict[str, str]:
    return {name.replace("_", "-"): value for name, value in headers.items()}
