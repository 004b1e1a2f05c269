"""Perturbation by cell keys: what may be published, and separately what the custodian keeps."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from tabulary.cellkey.promise import PROMISE
from tabulary.cellkey.ptable import PTable
from tabulary.cellkey.records import KeyedRecords
from tabulary.core.arrays import Integers
from tabulary.core.domain import MAX_CELLS, Domain, Margin
from tabulary.core.long_form import TableForm, long_columns, value_name
from tabulary.core.table import Table
from tabulary.core.uncopyable import Uncopyable
from tabulary.errors import InvalidArgument, InvalidTable
from tabulary.release.formats import csv_bytes
from tabulary.release.promise import Promise
from tabulary.release.table import arrow_labels

if TYPE_CHECKING:
    import pandas

SMALLEST_SECRET = 16
"""A secret has at least this many bytes."""


@dataclass(frozen=True, eq=False)
class CellKeyTable(TableForm):
    """A published table: perturbed counts, and what is known about the perturbation. NOT differentially private.

    `counts` is a masked array. A count below `minimum` is masked and not published; the value under the mask is
    zero. The table contains no exact count, no key and no way back to either.

    >>> table = CellKeyTable(Domain({"sex": ["F", "M"]}), np.ma.masked_less([12, 3], 10), {"keys": 256}, 10)
    >>> table
    <CellKeyTable sex 2, not differentially private>
    >>> table["F"], table["M"], table.counts.tolist()
    (12, None, [12, None])
    """

    domain: Domain
    counts: "np.ma.MaskedArray[Any, np.dtype[np.int64]]"
    ptable: dict[str, object] = field(repr=False)
    minimum: int | None = None

    def __post_init__(self) -> None:
        if np.shape(self.counts) != self.domain.shape:
            raise InvalidTable(
                f"the domain's shape is {self.domain.shape} but the array's is {np.shape(self.counts)}."
            )
        mask = np.ma.getmaskarray(self.counts).copy()
        # There is nothing under the mask: a reader who removes it must not find a count.
        shown = np.array(np.ma.filled(self.counts, 0), dtype=np.int64)
        shown.flags.writeable = False
        object.__setattr__(self, "counts", np.ma.MaskedArray(shown, mask, fill_value=0, hard_mask=True))

    @property
    def margin(self) -> Margin:
        """The attributes of this table, in its own order."""
        return self.domain.attributes

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of levels of each attribute."""
        return self.domain.shape

    @property
    def promise(self) -> Promise:
        """The promise of this table, which is little, and what is not promised."""
        return PROMISE

    def __getitem__(self, labels: str | int | tuple[str | int, ...]) -> int | None:
        """Return one published count by its labels, in the order of the attributes; None if it is withheld."""
        given = labels if isinstance(labels, tuple) else (labels,)
        if len(given) != len(self.margin):
            raise InvalidTable(
                f"a cell of this table has {len(self.margin)} labels, one for each of {list(self.margin)}."
            )
        index = tuple(self.domain.code(a, level) for a, level in zip(self.margin, given, strict=True))
        return None if np.ma.getmaskarray(self.counts)[index] else int(self.counts.data[index])

    def transpose(self, attributes: Sequence[str]) -> "CellKeyTable":
        """Return the same table with its attributes in another order.

        >>> table = CellKeyTable(Domain({"a": "xy", "b": "xy"}), np.ma.masked_less([[12, 3], [11, 14]], 10), {}, 10)
        >>> table.transpose(["b", "a"]).counts.tolist()
        [[12, 11], [None, 14]]
        """
        shown = Table(self.domain, self.counts.data).transpose(attributes)
        order = [self.domain.position(attribute) for attribute in attributes]
        return self._part(shown, np.ma.getmaskarray(self.counts).transpose(order))

    def slice(self, levels: Mapping[str, str | int] | None = None, **named: str | int) -> "CellKeyTable":
        """Return the table of those in the given levels, on the remaining attributes.

        >>> table = CellKeyTable(Domain({"a": "xy", "b": "xy"}), np.ma.masked_less([[12, 3], [11, 14]], 10), {}, 10)
        >>> table.slice(b="y").counts.tolist()
        [None, 14]
        """
        whole, wanted = Table(self.domain, self.counts.data), {**(levels or {}), **named}
        return self._part(whole.slice(wanted), np.ma.getmaskarray(self.counts)[whole.index(wanted)])

    def select(self, levels: Mapping[str, Iterable[str | int]]) -> "CellKeyTable":
        """Return the part of the table with some levels of some attributes, in the given order.

        >>> table = CellKeyTable(Domain({"a": "xyz"}), np.ma.masked_less([12, 3, 14], 10), {}, 10)
        >>> table.select({"a": ["x", "y"]}).counts.tolist()
        [12, None]
        """
        whole = Table(self.domain, self.counts.data)
        return self._part(whole.select(levels), np.ma.getmaskarray(self.counts)[whole.box(levels)])

    def withheld_below(self, minimum: int) -> "CellKeyTable":
        """Return the table without its counts below `minimum`."""
        hidden = np.ma.getmaskarray(self.counts) | (self.counts.data < minimum)
        counts = np.ma.MaskedArray(self.counts.data, hidden)
        return CellKeyTable(self.domain, counts, self.ptable, max(minimum, self.minimum or 0))

    def columns(self) -> dict[str, NDArray[Any]]:
        """Return the table in long form: the attributes, then `count`, with None for a withheld one."""
        counts = np.array(self.counts.reshape(-1).tolist(), dtype=object)
        return long_columns(self.domain, {value_name("count", self.margin): counts})

    def to_arrow(self) -> pa.Table:
        """Return the table in long form as an Arrow table, labels as ordered dictionaries; a withheld count is null."""
        *_, (name, counts) = self.columns().items()
        return pa.table({**arrow_labels(self), name: pa.array(counts, pa.int64())})

    def to_pandas(self) -> "pandas.DataFrame":
        """Return the table in long form as a pandas frame; a withheld count is missing."""
        frame = super().to_pandas()
        return frame.astype({frame.columns[-1]: "Int64"})

    def to_csv(self, path: str | Path) -> None:
        """Write the table in long form; a withheld count is an empty field."""
        table = self.to_arrow()
        written = pc.fill_null(table.column(-1).cast(pa.string()), "")
        last = table.num_columns - 1
        Path(path).write_bytes(csv_bytes(table.set_column(last, table.column_names[last], written)))

    def describe(self) -> dict[str, object]:
        """Return what is public besides the counts, as plain data."""
        return {
            "method": "cell keys",
            "differentially_private": False,
            "domain": self.domain.describe(),
            "minimum": self.minimum,
            "ptable": self.ptable,
            "promise": self.promise.describe(),
        }

    def __repr__(self) -> str:
        shown = " × ".join(f"{a} {len(self.domain.levels_of(a))}" for a in self.margin)
        return f"<CellKeyTable {shown or 'total'}, not differentially private>"

    def _part(self, shown: Table, withheld: NDArray[np.bool_]) -> "CellKeyTable":
        counts = np.ma.MaskedArray(shown.counts.astype(np.int64), withheld)
        return CellKeyTable(shown.domain, counts, self.ptable, self.minimum)


class Custody(Uncopyable):
    """What the custodian keeps about a table: exact counts, cell keys and perturbations. Confidential.

    `count`, `ckey`, `pcv` and `pvalue` are read-only arrays of the table's shape. It is made together with the
    published table but cannot be reached from it. It prints its shape, and cannot be copied or pickled.
    """

    __slots__ = ("__weakref__", "ckey", "count", "domain", "pcv", "pvalue")

    domain: Domain
    count: Integers
    ckey: Integers
    pcv: Integers
    pvalue: Integers

    def __init__(
        self, domain: Domain, count: Integers, ckey: Integers, pcv: Integers, pvalue: Integers
    ) -> None:
        for name, array in (("count", count), ("ckey", ckey), ("pcv", pcv), ("pvalue", pvalue)):
            held = np.array(array, dtype=np.int64)
            held.flags.writeable = False
            object.__setattr__(self, name, held)
        object.__setattr__(self, "domain", domain)

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError("a Custody records what was done and cannot be changed.")

    def __repr__(self) -> str:
        shown = " × ".join(f"{a} {len(self.domain.levels_of(a))}" for a in self.domain.attributes)
        return f"<Custody of {shown or 'total'}, confidential>"


def perturb(
    records: KeyedRecords,
    margin: Iterable[str],
    ptable: PTable,
    *,
    minimum: int | None = None,
    secret: bytes | None = None,
    max_cells: int = MAX_CELLS,
) -> tuple[CellKeyTable, Custody]:
    r"""Return a table to publish and, separately, what the custodian keeps. NOT differentially private.

    A cell's key (`ckey`) is the sum of its participants' record keys modulo the number of keys, its value (`pcv`)
    is the row of the ptable for its count, and `pvalue` = ptable[pcv, ckey] is added. So the same participants get
    the same perturbation in every table: asking again, or in other words, gains nothing. Unbiased if the ptable's
    rows are unbiased (`PTable.mean`). Published counts below `minimum` are withheld.

    A cell without participants has the key sum 0 in every table: one constant key would perturb all zeros in the
    same way and show them. If the ptable perturbs zeros, such a cell gets a key from its description instead,
    hashed with a `secret` that the custodian keeps for all tables. Its perturbation then repeats for the same
    description, but not for another description of the same empty set, so an average over descriptions finds the
    zeros. A cell that the domain declares impossible stays zero.

    One pass over the records. The differencing attack of Rinott, O'Keefe, Shlomo & Skinner (2018), section 2.2,
    works against every ptable: see `CellKeyTable.promise`.

    >>> from tabulary.cellkey.keys import RecordKeys
    >>> people = pa.table({"sex": ["F", "M", "F"], "record_key": [1, 0, 2]})
    >>> records = KeyedRecords.from_frame(people, Domain({"sex": ["F", "M"]}), keys=RecordKeys(modulus=4))
    >>> ptable = PTable.from_array([[1, 0, 0, -1], [1, 0, 0, -1]])
    >>> published, custody = perturb(records, ["sex"], ptable)
    >>> published.counts.tolist()
    [1, 2]
    >>> custody
    <Custody of sex 2, confidential>
    """
    if not isinstance(records, KeyedRecords) or not isinstance(ptable, PTable):
        raise InvalidArgument("perturb takes KeyedRecords and a PTable.")
    if records.keys.modulus != ptable.modulus:
        raise InvalidArgument(
            f"the records have {records.keys.modulus} keys and the ptable has {ptable.modulus}, so a key "
            "sum is not a key of the table. Nothing was counted. Use a ptable made for these keys; a "
            "ptable of intervals can be read for any number of keys: PTable.from_csv(path, modulus=…)."
        )
    if minimum is not None and (isinstance(minimum, bool) or not isinstance(minimum, int) or minimum < 0):
        raise InvalidArgument(f"the smallest published count must be a whole number, not {minimum!r}.")
    if ptable.perturbs_zeros and (not isinstance(secret, bytes) or len(secret) < SMALLEST_SECRET):
        raise InvalidArgument(
            f"this ptable perturbs zeros, which needs a secret of at least {SMALLEST_SECRET} bytes, the "
            "same for all tables of these records. Nothing was counted. Draw it once with "
            "secrets.token_bytes(32), and keep it."
        )
    named = records.domain.margin(margin)
    domain = records.domain.project(named)
    counts, ckeys = records.sums(named, max_cells=max_cells)
    if ptable.perturbs_zeros and secret is not None:
        ckeys = np.where(counts == 0, described_keys(domain, counts == 0, ptable.modulus, secret), ckeys)
    pcv = ptable.pcv(counts)
    pvalues = ptable.pvalues(pcv, ckeys)
    pvalues[domain.impossible(named)] = 0
    perturbed = counts + pvalues
    published = CellKeyTable(domain, np.ma.MaskedArray(perturbed), ptable.describe())
    return (
        published if minimum is None else published.withheld_below(minimum),
        Custody(domain, counts, ckeys, pcv, pvalues),
    )


def described_keys(
    domain: Domain, wanted: NDArray[np.bool_], modulus: int, secret: bytes
) -> NDArray[np.int64]:
    """Return a key for each wanted cell; it depends only on the cell's attributes and levels and on the secret.

    BLAKE2b with the secret as its key, over the attributes in alphabetical order, so that their order in a table
    does not matter; reduced from 128 bits, which favours no key by more than 2**-66.
    """
    keys = np.zeros(wanted.shape, dtype=np.int64)
    # BLAKE2b takes a key of up to 64 bytes; a secret of any length is first reduced to a digest.
    hidden = hashlib.blake2b(secret).digest()
    order = sorted(range(len(domain.attributes)), key=lambda i: domain.attributes[i])
    parts = [
        [_part(domain.attributes[i]) + _part(level) for level in domain.levels[i]]
        for i in range(len(domain.attributes))
    ]
    for cell in map(tuple, np.argwhere(wanted).tolist()):
        text = b"".join(parts[i][cell[i]] for i in order)
        digest = hashlib.blake2b(text, key=hidden, digest_size=16).digest()
        keys[cell] = int.from_bytes(digest, "big") % modulus
    return keys


def _part(text: str) -> bytes:
    # The length comes first, so that no two descriptions have the same bytes.
    spelled = text.encode()
    return len(spelled).to_bytes(8, "big") + spelled
