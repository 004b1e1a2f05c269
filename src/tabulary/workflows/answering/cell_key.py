"""Answers perturbed by cell keys: the same people get the same perturbation in every table. NOT differentially private.

Agencies run table builders like this: the Australian Bureau of Statistics' TableBuilder, and Cantabular at the Office
for National Statistics. Use it to compare with methods that have a guarantee. It states what it does not promise.
"""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from tabulary.cellkey import CellKeyTable, KeyedRecords, PTable, perturb
from tabulary.cellkey.promise import PROMISE
from tabulary.cellkey.sparsity import Sparsity
from tabulary.core.cache import ArrayCache, Cache
from tabulary.core.domain import Domain, Margin, check_same_domain
from tabulary.errors import InvalidArgument
from tabulary.noise.keyed import derived_key
from tabulary.planning.allowed_tables import AllowedTables
from tabulary.release.promise import Promise
from tabulary.workflows.answering.answers import ProtectionMethod, TableAnswer


class CellKeyAnswers:
    """A dataset that answers any number of tables, perturbed by cell keys. NOT differentially private.

    The record keys and the ptable decide every perturbation. So a question has the same answer for ever, on every
    machine with the same records. There is no budget and no limit on the number of answers: see `promise`. Tables do
    not add up to each other's margins.

    >>> import pyarrow as pa
    >>> from tabulary.cellkey import RecordKeys
    >>> domain = Domain({"sex": ["F", "M"]})
    >>> people = pa.table({"sex": ["F", "M", "F"], "record_key": [1, 0, 2]})
    >>> records = KeyedRecords.from_frame(people, domain, keys=RecordKeys(modulus=4))
    >>> ptable = PTable.from_array([[1, 0, 0, -1], [1, 0, 0, -1]], above="last")
    >>> answers = CellKeyAnswers.open(records, AllowedTables(domain, order=1), ptable, dataset="people", version="1")
    >>> answers.answer(("sex",)).table.counts.tolist()
    [1, 2]
    >>> print(answers.promise.statement[:46])
    This table is NOT differentially private. Its
    """

    method = ProtectionMethod.cell_key

    def __init__(
        self,
        records: KeyedRecords,
        allowed: AllowedTables,
        ptable: PTable,
        *,
        version: str,
        zeros: bytes | None,
        minimum: int | None,
        sparsity: Sparsity | None,
        cache: Cache,
    ) -> None:
        self._records = records
        self._allowed_tables = allowed
        self._ptable = ptable
        self._described = ptable.describe()
        self._version = version
        self._zeros = zeros
        self._minimum = minimum
        self._sparsity = sparsity
        self._promise = cell_key_promise(sparsity)
        self._perturbed: ArrayCache[Margin, np.int64] = ArrayCache(cache)

    @classmethod
    def open(
        cls,
        records: KeyedRecords,
        allowed: AllowedTables,
        ptable: PTable,
        *,
        dataset: str,
        version: str,
        secret: bytes | None = None,
        minimum: int | None = None,
        sparsity: Sparsity | None = None,
        cache: Cache | None = None,
    ) -> "CellKeyAnswers":
        """Return the dataset, ready to answer; refuse arguments that cannot answer every allowed table.

        `secret`, the custodian's key, is needed if the ptable perturbs zeros. The keys of empty cells depend on it and
        on the dataset's name, but not on the version. A cell whose people stay the same keeps its perturbation from
        version to version. Empty cells must do so too, or a reader could recognise them. Counts below `minimum` are
        withheld. `cache` keeps perturbed counts. One pass over the records finds errors now, before the first question.
        """
        check_same_domain(
            records.domain,
            allowed.domain,
            things="the records and the allowed tables",
            state="Nothing was counted.",
        )
        if ptable.above == "refuse":
            raise InvalidArgument(
                "this ptable refuses counts above its last row, and whether a table is refused must not depend on an "
                'exact count. Nothing was counted. Say what larger counts do: above="last", or ("repeat", row).'
            )
        zeros = None
        if secret is not None and ptable.perturbs_zeros:
            zeros = derived_key(secret, "keys of empty cells", dataset)
        made = cls(
            records,
            allowed,
            ptable,
            version=version,
            zeros=zeros,
            minimum=minimum,
            sparsity=sparsity,
            cache=Cache() if cache is None else cache,
        )
        perturb(records, (), ptable, minimum=minimum, secret=zeros)
        return made

    @property
    def domain(self) -> Domain:
        """The attributes and their levels."""
        return self._allowed_tables.domain

    @property
    def allowed_tables(self) -> AllowedTables:
        """Which tables may be asked for."""
        return self._allowed_tables

    @property
    def version(self) -> str:
        """Which version of the dataset this is."""
        return self._version

    @property
    def promise(self) -> Promise:
        """The promise, which is small, and what is not promised."""
        return self._promise

    def plan_of(self, margin: Margin) -> None:
        """Return None: without differential privacy there is no plan."""
        self._allowed(margin)

    def expected(self, margin: Margin, confidence: float = 0.95) -> None:
        """Return None: the error of a count depends on the count."""
        self._allowed(margin)

    def price(self, margin: Margin) -> None:
        """Return None: there is no budget, as `promise` says."""
        self._allowed(margin)

    def answer(self, margin: Margin, *, asker: str | None = None, linear: bool = False) -> TableAnswer:
        """Return the table on `margin`, the same for ever. Neither `asker` nor `linear` changes it."""
        named = self._allowed(margin)
        counts = self._perturbed.get(named, lambda: self._perturb(named))
        table = CellKeyTable(self.domain.project(named), np.ma.MaskedArray(counts), self._described)
        if self._sparsity is not None:
            self._sparsity.refuse(table)
        shown = table if self._minimum is None else table.withheld_below(self._minimum)
        return TableAnswer(shown, self._promise, plan=None)

    def close(self) -> None:
        """Forget the records, and the tables made from them."""
        self._perturbed.clear()
        self._records.close()

    def __repr__(self) -> str:
        return f"<CellKeyAnswers of version {self._version!r}, not differentially private>"

    def _allowed(self, margin: Margin) -> Margin:
        named = self.domain.margin(margin)
        self._allowed_tables.refuse(named)
        return named

    def _perturb(self, margin: Margin) -> NDArray[np.int64]:
        # Drop the custodian's own result, which holds exact counts.
        published, _ = perturb(
            self._records, margin, self._ptable, secret=self._zeros, max_cells=self._allowed_tables.max_cells
        )
        return published.counts.data


def cell_key_promise(sparsity: Sparsity | None) -> Promise:
    """Return what tables perturbed by cell keys promise and do not promise, if `sparsity` refuses some of them."""
    if sparsity is None:
        return PROMISE
    refusals = (
        "That a refusal tells nothing. A table is refused if it is empty, if more than "
        f"{sparsity.ones} of its counts above zero are 1, or if more than {sparsity.ones_and_twos} of them are 1 or 2. "
        "That depends on the data, through the perturbed counts."
    )
    return replace(PROMISE, not_promised=(*PROMISE.not_promised, refusals))
