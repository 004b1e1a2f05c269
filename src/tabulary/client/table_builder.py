"""The asker's side of a table builder: questions in Python, released tables as answers."""

import os
from collections.abc import Iterable, Mapping
from threading import Lock
from typing import Any, Literal

from tabulary.client.dataset import RemoteDataset, dataset_from_description
from tabulary.client.perturbed import RemoteCellKeyTable
from tabulary.client.transport import Transport
from tabulary.core.privacy import Privacy, privacy_from_description
from tabulary.errors import InvalidTable, PublicError, ServiceUnreachable
from tabulary.planning import ExpectedError, Plan, plan_from_description
from tabulary.release import PublicKey, ReleasedTable
from tabulary.release.bounds import MOST_TABLES, refuse_vast
from tabulary.release.exchange import counts_from_document, table_from_document
from tabulary.release.signing import public_key_of

Estimate = Literal["published", "linear"]

_PAGE = 100
_MOST_PAGES = 1_000


class TableBuilder:
    """A table builder at an address. Made by `connect`; it sends nothing before the first question.

    The client checks every answer: it answers this question, it has the shape that it claims, and its standard errors
    follow from the plan that it names. The client fetches a plan once, derives it again, and identifies it by its
    digest. So its tables are as reliable as those of a release on disk, and the functions of `tb.infer` accept them.
    """

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._plans: dict[str, Plan] = {}
        self._lock = Lock()

    @property
    def url(self) -> str:
        """The address of the table builder."""
        return self._transport.url

    def datasets(self) -> dict[str, str]:
        """Return the title of every dataset, by its name."""
        found: dict[str, str] = {}
        for page in range(1, _MOST_PAGES + 1):
            listing = self._transport.get(["datasets"], [("page", str(page)), ("size", str(_PAGE))])
            match listing:
                case {"items": list(items), "next": following}:
                    found |= dict(self._line(item) for item in items)
                    if following is None:
                        break
                case _:
                    raise self._unfit("the list of datasets")
        return found

    def dataset(self, name: str) -> RemoteDataset:
        """Return what is public about a dataset: attributes, levels, allowed tables, and the promise."""
        described = self._transport.get(["datasets", name])
        try:
            return dataset_from_description(described)
        except PublicError:
            raise self._unfit(f"the description of dataset {name!r}") from None

    def table(
        self,
        name: str,
        by: str | Iterable[str],
        where: Mapping[str, str | int] | None = None,
        keep: Mapping[str, Iterable[str | int]] | None = None,
        *,
        estimate: Estimate = "published",
    ) -> ReleasedTable:
        """Return the table by some attributes, for the people in the levels `where`, with the levels to `keep`.

        `estimate` is "published", the dataset's published table, or "linear", the unbiased estimate, which may be
        negative and which tests need. Both come from the same measurements, and a published table has the linear one
        as its `unbiased` face. If answers cost, a new question is paid for and a repeated one is free. The answer is
        the same for ever.
        """
        asked = _question(by, where, keep)
        document = self._transport.post(
            ["datasets", name, "tables"], {**asked, "estimate": estimate}, signed=True
        )
        self._check_answers(document, name, asked)
        plan = self._plan_behind(document, name, asked)
        try:
            return table_from_document(document, plan)
        except PublicError as problem:
            if isinstance(problem, InvalidTable) and document.get("errors") == "unknown":
                raise InvalidTable(
                    f"dataset {name!r} is not differentially private, and the law of its errors is not known, so that "
                    "no inference can trust it. Take its counts as they are with perturbed_table()."
                ) from None
            raise self._unfit("a table", str(problem)) from problem

    def perturbed_table(
        self,
        name: str,
        by: str | Iterable[str],
        where: Mapping[str, str | int] | None = None,
        keep: Mapping[str, Iterable[str | int]] | None = None,
    ) -> RemoteCellKeyTable:
        """Return a table of a dataset that is NOT differentially private. For all other datasets use `table`."""
        asked = _question(by, where, keep)
        document = self._transport.post(["datasets", name, "tables"], asked, signed=True)
        self._check_answers(document, name, asked)
        if document.get("errors") in ("plan", "simulated"):
            raise InvalidTable(f"the errors of the tables of {name!r} are known. Take them with table().")
        try:
            domain, counts = counts_from_document(document)
        except PublicError as problem:
            raise self._unfit("a table", str(problem)) from problem
        return RemoteCellKeyTable(domain, counts, document["promise"], document["perturbation"] or {})

    def expected_error(
        self, name: str, by: str | Iterable[str], where: Mapping[str, str | int] | None = None
    ) -> ExpectedError:
        """Return how accurate a table will be, without asking for the table. Costs nothing."""
        asked = _question(by, where, None)
        match self._accuracy(name, asked):
            case {
                "cells": int(cells),
                "standard_error": int() | float() as error,
                "half_width_95": width,
            } if isinstance(width, int | float):
                return ExpectedError(tuple(asked["by"]), cells, float(error), width)
            case {"standard_error": None}:
                raise InvalidTable(
                    f"how accurate a table of {name!r} is, is not known: it is not differentially private."
                )
        raise self._unfit("the accuracy of a table")

    def price(
        self, name: str, by: str | Iterable[str], where: Mapping[str, str | int] | None = None
    ) -> Privacy | None:
        """Return what asking for a table would cost now; None if it is free. Costs nothing."""
        match self._accuracy(name, _question(by, where, None)):
            case {"price": None}:
                return None
            case {"price": dict(price)}:
                try:
                    return privacy_from_description(price)
                except PublicError:
                    pass
        raise self._unfit("the price of a table")

    def plan(self, name: str, by: str | Iterable[str] = ()) -> Plan:
        """Return the plan behind a table: the measurements, their scale, and what they promise."""
        described = self._transport.get(["datasets", name, "plan"], [("by", a) for a in _names(by)])
        try:
            # The tables are fetched one at a time.
            refuse_vast(described, in_all=MOST_TABLES)
            return plan_from_description(described)
        except (PublicError, ArithmeticError, LookupError, TypeError, ValueError, RecursionError) as problem:
            reason = str(problem) if isinstance(problem, PublicError) else ""
            raise self._unfit("a plan", reason) from problem

    def __repr__(self) -> str:
        return f"<TableBuilder at {self.url}>"

    def _plan_behind(self, document: Mapping[str, Any], name: str, asked: Mapping[str, Any]) -> Plan | None:
        """Return the plan that a table names, if the errors of one of its faces follow from it."""
        digest = document.get("plan")
        follows = document.get("errors") == "plan" or document.get("estimate") is not None
        if not follows or not isinstance(digest, str):
            return None
        # To derive a plan of thousands of tables takes a while: one thread does it, and the others wait.
        with self._lock:
            if digest not in self._plans:
                plan = self.plan(name, [*asked["by"], *asked["where"]])
                if plan.digest() != digest:
                    raise self._unfit("a table", "it names another plan than the one that the service gives.")
                self._plans[digest] = plan
            return self._plans[digest]

    def _check_answers(self, document: Any, name: str, asked: Mapping[str, Any]) -> None:
        match document:
            case {"dataset": str(dataset), "question": {"by": by, "where": where}} if (
                dataset == name and by == asked["by"] and where == asked["where"]
            ):
                return
        raise self._unfit("a table", "it is not the answer to what was asked.")

    def _accuracy(self, name: str, asked: Mapping[str, Any]) -> Any:
        return self._transport.post(["datasets", name, "accuracy"], asked)

    def _line(self, item: object) -> tuple[str, str]:
        match item:
            case {"id": str(name), "title": str(title)}:
                return name, title
        raise self._unfit("the list of datasets")

    def _unfit(self, what: str, reason: str = "") -> ServiceUnreachable:
        return ServiceUnreachable(
            f"{self.url} sent {what} that this version of Tabulary cannot trust{f': {reason}' if reason else '.'} Do "
            "not use it. Compare the versions of Tabulary here and there, and ask its custodian."
        )


def connect(
    url: str,
    token: str | None = None,
    timeout: float = 30,
    *,
    insecure: bool = False,
    key: PublicKey | str | os.PathLike[str] | None = None,
) -> TableBuilder:
    """Return the table builder at an address, such as "https://tables.example.org".

    `token` is an analyst's token, for datasets whose answers cost. The client sends it to that address only, over https
    or to this machine; `insecure=True` also allows plain http. `timeout` is the most seconds that an answer may take.
    If the service is busy, the client asks again when the service says so, at most three times. `key` is the
    publisher's public key or its file: the client then accepts only tables that this key has signed. Sends nothing yet.

    >>> connect("http://127.0.0.1:8000")
    <TableBuilder at http://127.0.0.1:8000>
    >>> connect("http://tables.example.org", token="tab_1_secret")
    Traceback (most recent call last):
    ...
    tabulary.errors.ServiceUnreachable: a token would go to http://tables.example.org in plain text, ...
    """
    return TableBuilder(Transport(url, token, timeout, insecure, public_key_of(key)))


def _question(
    by: str | Iterable[str],
    where: Mapping[str, str | int] | None,
    keep: Mapping[str, Iterable[str | int]] | None,
) -> dict[str, Any]:
    """Return a question as plain data; a level may be a whole number, as in a domain."""
    return {
        "by": _names(by),
        "where": {a: str(level) for a, level in (where or {}).items()},
        "keep": {a: [str(level) for level in levels] for a, levels in (keep or {}).items()},
    }


def _names(by: str | Iterable[str]) -> list[str]:
    return [by] if isinstance(by, str) else list(by)
