"""A table as a document: a table builder sends it and its client reads it, as plain data that JSON can hold.

A document depends only on the question, the version of the dataset and its noise, not on the call: the same question
always gives the same document, to the last byte. Real numbers are written in Python's shortest form, which reads back
to the same number.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from tabulary.core.domain import MAX_CELLS, Domain
from tabulary.core.table import Table
from tabulary.errors import InvalidTable, PublicError
from tabulary.planning import Plan, StatedErrors
from tabulary.release.cutting import cut
from tabulary.release.signing import PublicKey, SigningKey, signature_from_text, signature_text
from tabulary.release.table import CONFIDENCE, VALUE_COLUMNS, ReleasedTable

SCHEMA = "tabulary-table/1"
"""The meaning of a document with this name never changes; another meaning gets another name."""

SIGNATURE_HEADER = "Tabulary-Signature"
"""The HTTP header that holds the signature over a document."""

_FIELDS = {
    *("schema", "dataset", "version", "method", "question", "variables", "impossible"),
    *VALUE_COLUMNS,
    *("estimate", "errors", "plan", "reconstructed", "perturbation", "promise"),
}
# Two machines may compute a standard error to a different last digit; a false claim differs by more.
_TOLERANCE = 1e-9


class WithheldCounts(Protocol):
    """A published table without a known law of its errors; its mask marks withheld counts."""

    @property
    def domain(self) -> Domain:
        """The attributes of this table and their levels."""
        ...

    @property
    def counts(self) -> "np.ma.MaskedArray[Any, np.dtype[np.int64]]":
        """The published counts, masked where one is withheld."""
        ...


@dataclass(frozen=True)
class Provenance:
    """The origin of a table and the promise that holds for it.

    `plan` is the digest of the plan behind it, None where there is no differential privacy. `reconstructed` says
    whether the table was made non-negative. `perturbation` describes the perturbation where there is no plan.
    """

    dataset: str
    version: str
    method: str
    promise: str
    plan: str | None = None
    reconstructed: bool = False
    perturbation: Mapping[str, object] | None = None


def table_document(
    table: ReleasedTable | WithheldCounts,
    provenance: Provenance,
    question: Mapping[str, object],
    labels: Mapping[str, str] | None = None,
) -> dict[str, object]:
    """Return a published table as plain data, its cells flat with the last attribute fastest.

    `question` is the question as plain data, and `labels` are the names of the attributes for readers. A withheld
    count is None. `impossible` lists the numbers of the cells that the domain declares impossible. `errors` says
    where the standard errors and intervals come from: they follow from the "plan", were "simulated" for a
    reconstructed table, or are "unknown" and left out. `estimate` holds the unbiased face of a table that has another
    published face.

    >>> from tabulary.planning import StatedErrors
    >>> errors = StatedErrors(np.array([1.5, 2.0]), np.array([3.0, 4.0]))
    >>> table = ReleasedTable(Table(Domain({"sex": ["F", "M"]}), [120, 98]), errors)
    >>> source = Provenance("census", "2026", "fixed", "ε = 1", plan="5f3a", reconstructed=True)
    >>> document = table_document(table, source, {"by": ["sex"]})
    >>> document["count"], document["upper_95"], document["errors"]
    ([120, 98], [123.0, 102.0], 'simulated')
    """
    domain = table.domain
    named = labels or {}
    released = isinstance(table, ReleasedTable)
    return {
        "schema": SCHEMA,
        "dataset": provenance.dataset,
        "version": provenance.version,
        "method": provenance.method,
        "question": dict(question),
        "variables": [
            {"name": a, "label": named.get(a, a), "levels": list(domain.levels_of(a))}
            for a in domain.attributes
        ],
        "impossible": np.flatnonzero(domain.impossible(domain.attributes)).tolist(),
        **_values(table),
        "errors": ("simulated" if provenance.reconstructed else "plan") if released else "unknown",
        "plan": provenance.plan,
        "reconstructed": provenance.reconstructed,
        "perturbation": None if provenance.perturbation is None else dict(provenance.perturbation),
        "promise": provenance.promise,
    }


def document_bytes(document: Mapping[str, object]) -> bytes:
    """Return a document as the one JSON text that it has: compact, UTF-8, no number that JSON does not know.

    >>> document_bytes({"count": [0.1, None], "promise": "ε = 1"}).decode()
    '{"count":[0.1,null],"promise":"ε = 1"}'
    """
    return json.dumps(document, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()


def signed_document(content: bytes) -> bytes:
    """Return the bytes that a signer of a table signs: a prefix that names their kind, then the document's bytes."""
    return f"{SCHEMA} signature\n".encode() + content


def signature_headers(content: bytes, key: SigningKey) -> dict[str, str]:
    """Return the HTTP headers that go with a signed document: the signature, and the fingerprint of the key."""
    return {
        SIGNATURE_HEADER: signature_text(key.sign(signed_document(content))),
        "Tabulary-Signer": key.public.fingerprint,
    }


def is_signed(content: bytes, header: str | None, key: PublicKey) -> bool:
    """Return whether a document came with a signature of this key over exactly its bytes."""
    signature = None if header is None else signature_from_text(header)
    return signature is not None and key.holds(signature, signed_document(content))


def table_from_document(document: object, plan: Plan | None = None) -> ReleasedTable:
    """Return the released table that a document holds; refuse any other document and any false claim.

    Errors that follow from a plan are derived from it again, with their correlation: `plan` must be the one that the
    document names, and the stated standard errors must equal the derived ones. Simulated errors are taken as stated;
    the errors of the unbiased face of such a table follow from its plan.
    """
    read = _checked(document)
    if read["errors"] == "unknown":
        raise InvalidTable(
            f"the table is protected by the method {read['method']!r}, which is not differentially private, "
            "and the law of its errors is not known. So it cannot be read as a released table."
        )
    by, where, keep = _question(read["question"])
    counts = _numbers(read, "count")
    if read["errors"] == "simulated" and read["estimate"] is None:
        return ReleasedTable(Table(_domain(read), counts), _stated_errors(read, counts))
    if plan is None or plan.digest() != read["plan"]:
        raise InvalidTable(
            "the errors of this table follow from the plan that it names. Give exactly that plan."
        )
    blank = _blank(plan, by, where, keep)
    if [(v["name"], tuple(v["levels"])) for v in read["variables"]] != list(
        zip(blank.domain.attributes, blank.domain.levels, strict=True)
    ) or np.flatnonzero(blank.domain.impossible(by)).tolist() != read["impossible"]:
        raise InvalidTable("the attributes and levels of the table are not those of its plan and question.")
    if read["estimate"] is not None:
        linear = ReleasedTable(Table(blank.domain, _numbers(read, "estimate")), blank.errors)
        return ReleasedTable(Table(blank.domain, counts), _stated_errors(read, counts), linear)
    released = ReleasedTable(Table(blank.domain, counts), blank.errors)
    for name, derived in zip(VALUE_COLUMNS[1:], _error_columns(released), strict=True):
        if not np.allclose(_numbers(read, name), derived, rtol=_TOLERANCE, atol=_TOLERANCE):
            raise InvalidTable(f"the column {name!r} of the table is not what its plan gives.")
    return released


def counts_from_document(document: object) -> "tuple[Domain, np.ma.MaskedArray[Any, np.dtype[np.int64]]]":
    """Return the domain and the counts of a document whose errors are unknown, masked where one is withheld."""
    read = _checked(document)
    if read["errors"] != "unknown":
        raise InvalidTable("the errors of this table are known: read it as a released table.")
    domain = _domain(read)
    counts: list[Any] = read["count"]
    if len(counts) != domain.size or not {type(count) for count in counts} <= {int, type(None)}:
        raise InvalidTable("the document needs a whole number, or nothing, for each cell.")
    shown = Table(domain, np.array([count or 0 for count in counts]).reshape(domain.shape))
    withheld = np.array([count is None for count in counts]).reshape(domain.shape)
    return domain, np.ma.MaskedArray(shown.counts.astype(np.int64), withheld)


def _values(table: ReleasedTable | WithheldCounts) -> dict[str, object]:
    count, *others = VALUE_COLUMNS
    # A masked array lists what it withholds as None.
    counts: dict[str, object] = {count: table.counts.reshape(-1).tolist()}
    if not isinstance(table, ReleasedTable):
        return counts | dict.fromkeys((*others, "estimate"))
    columns = zip(others, _error_columns(table), strict=True)
    estimate = None if table.linear is None else table.estimate.reshape(-1).tolist()
    return counts | {name: array.reshape(-1).tolist() for name, array in columns} | {"estimate": estimate}


def _error_columns(table: ReleasedTable) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    lower, upper = table.interval(CONFIDENCE)
    return table.standard_errors, lower, upper


def _checked(document: object) -> dict[str, Any]:
    """Return a document whose fields are of the kinds that they should be."""
    read: dict[str, Any] = document if isinstance(document, dict) else {}
    match read:
        case {
            "schema": str(schema),
            "dataset": str(),
            "version": str(),
            "method": str(),
            "question": dict(),
            "variables": list(variables),
            "impossible": list(),
            "count": list(),
            "estimate": list() | None,
            "errors": "plan" | "simulated" | "unknown",
            "plan": str() | None,
            "reconstructed": bool(),
            "perturbation": dict() | None,
            "promise": str(),
        } if schema == SCHEMA and read.keys() == _FIELDS and all(map(_is_variable, variables)):
            return read
        case {"schema": str(schema)} if schema != SCHEMA:
            raise InvalidTable(
                f"this is a document of the schema {schema!r}, but this version of Tabulary reads {SCHEMA!r}."
            )
    raise InvalidTable("this is not a document of a table that Tabulary writes.")


def _is_variable(variable: object) -> bool:
    match variable:
        case {"name": str(), "label": str(), "levels": list(levels), **rest} if not rest:
            return all(isinstance(level, str) for level in levels)
    return False


def _question(question: Mapping[str, Any]) -> tuple[tuple[str, ...], dict[str, str], dict[str, list[str]]]:
    match question:
        case {"by": list(by), "where": dict(where), "keep": dict(keep), **rest} if not rest:
            levels = (*where.values(), *(level for kept in keep.values() for level in _sequence(kept)))
            if all(isinstance(name, str) for name in (*by, *where, *keep, *levels)):
                return tuple(by), where, keep
    raise InvalidTable("the document does not state its question in the form that Tabulary writes.")


def _sequence(value: object) -> Sequence[object]:
    return value if isinstance(value, list) else [None]


def _domain(read: Mapping[str, Any]) -> Domain:
    """Return the domain of the document's own variables, its impossible cells named one by one."""
    levels = {v["name"]: v["levels"] for v in read["variables"]}
    if len(levels) < len(read["variables"]):
        raise InvalidTable("the document names an attribute twice.")
    domain = Domain(levels)
    numbers: list[int] = read["impossible"]
    if any(type(n) is not int or not 0 <= n < domain.size for n in numbers):
        raise InvalidTable("the document names impossible cells that the table does not have.")
    if not numbers or len(numbers) == domain.size:
        return domain
    cells = zip(*np.unravel_index(numbers, domain.shape), strict=True)
    zeros = [{a: levels[a][i] for a, i in zip(levels, cell, strict=True)} for cell in cells]
    return Domain(levels, zeros)


def _numbers(read: Mapping[str, Any], name: str) -> NDArray[Any]:
    """Return one column of the document in the shape of its table."""
    values = read[name]
    shape = tuple(len(v["levels"]) for v in read["variables"])
    if not isinstance(values, list) or len(values) != math.prod(shape):
        raise InvalidTable(f"the document does not have one number under {name!r} for each cell.")
    # A truth value would pass for a number.
    if not {type(value) for value in values} <= {int, float}:
        raise InvalidTable(f"the document has values under {name!r} that are not numbers.")
    try:
        array = np.array(values).reshape(shape)
    except OverflowError:
        array = np.array([math.inf])
    if array.dtype.kind not in "if" or not np.isfinite(array).all():
        raise InvalidTable(f"the document has numbers under {name!r} that no table can have.")
    return array


def _stated_errors(read: Mapping[str, Any], counts: NDArray[Any]) -> StatedErrors:
    deviations = _numbers(read, "standard_error").astype(np.float64)
    lower, upper = _numbers(read, "lower_95"), _numbers(read, "upper_95")
    # What numpy computes on no axes is a scalar.
    widths = np.asarray(upper - counts, dtype=np.float64)
    # An interval ends at zero, since no count is below it.
    ends = np.maximum(counts - widths, 0)
    if (deviations < 0).any() or (widths < 0).any() or not np.allclose(lower, ends, atol=1e-6):
        raise InvalidTable("the standard errors and intervals in the document are not those of any table.")
    return StatedErrors(deviations, widths, CONFIDENCE)


def _blank(
    plan: Plan, by: tuple[str, ...], where: Mapping[str, str], keep: Mapping[str, list[str]]
) -> ReleasedTable:
    """Return the answer to a question with its errors and no counts."""
    try:
        margin = plan.domain.margin((*by, *where))
        plan.domain.check_cells(margin, MAX_CELLS)
        domain = plan.domain.project(margin)
        return cut(
            ReleasedTable(Table(domain, np.zeros(domain.shape)), plan.error_of(margin)), by, where, keep
        )
    except PublicError as problem:
        raise InvalidTable(f"the table does not follow from its plan: {problem}") from problem
