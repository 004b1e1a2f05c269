"""The queries about records: yes or no, and how many records are in each cell of a margin."""

import functools
import math
import operator
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import ibis
import ibis.expr.datatypes as dt
import ibis.expr.types as ir

from tabulary.confidential.coding import Recoding
from tabulary.confidential.engines.database.places import KEY, NUMBER, Relation
from tabulary.confidential.engines.recoding.codes import code_of, number_of
from tabulary.confidential.validation import RecordFaults
from tabulary.confidential.weights import Weights
from tabulary.core.domain import Domain, Margin
from tabulary.errors import InvalidColumn

UNITS = "tabulary_units"
"""The function that turns a number into a weight in units, if the database runs in this process."""

# This many yes-or-no answers fit in one whole number, with room to spare.
_FLAGS = 48

# Texts with different characters that a collation may treat as equal.
_CONFUSABLE = (("a", "A"), ("a", "ä"), ("a", "a "))

_NUMERIC = dt.Decimal(None, None)


class RecodedQuery:
    """The records of one relation as codes, and the queries about them.

    Every query has a column `key` and a column `number`, both of whole numbers, and nothing else leaves the
    database. `probed` says that the database may compare texts in some columns by more than their characters.
    """

    def __init__(
        self,
        relation: Relation,
        domain: Domain,
        recodings: Sequence[Recoding],
        weights: Weights | None,
        dialect: str,
        *,
        probed: bool,
    ) -> None:
        self._domain = domain
        self._recodings = recodings
        self._weights = weights
        self._dialect = dialect
        self._called = relation.called
        wanted = [recoding.column for recoding in recodings] + ([] if weights is None else [weights.column])
        self._table, columns = relation.table(wanted)
        # Not strict: the weights, if any, come last.
        pairs = list(zip(columns, recodings, strict=False))
        self._codes = [_wide(code_of(column, recoding, dialect)) for column, recoding in pairs]
        self._number = None if weights is None else self._numbers(columns[-1], weights, dialect)
        self._probed = [(r, _is_confused(c)) for c, r in pairs if probed and c.type().is_string()]
        dropping = [c != r.unknown for c, r in zip(self._codes, recodings, strict=True) if r.drop]
        self._kept = functools.reduce(operator.and_, dropping) if dropping else None

    def _numbers(self, column: ir.Column, weights: Weights, dialect: str) -> ir.FloatingValue:
        found = number_of(column, dialect)
        if found is None:
            raise InvalidColumn(
                f"column {weights.column!r} of {self._called} has a type whose values are not numbers, so "
                "they cannot be weights. Nothing was counted. Name a column of numbers."
            )
        return found

    @functools.cached_property
    def findings(self) -> list[ir.Table]:
        """The queries whose answers `found` reads: each is one pass over the records."""
        return self._findings(self._table)

    @property
    def nothing(self) -> list[ir.Table]:
        """The same queries and a count, over zero rows, to check that the database accepts them."""
        none = self._table.limit(0)
        return [*self._findings(none), _total(self._admitted(none), ibis._.count())]

    def _findings(self, rows: ir.Table) -> list[ir.Table]:
        flags = [ibis.ifelse(flag, 1, 0).max().fill_null(0).cast("int64") for flag in self._flags]
        groups = [flags[start : start + _FLAGS] for start in range(0, len(flags), _FLAGS)]
        bits = [sum((flag * 2**place for place, flag in enumerate(group)), _integer(0)) for group in groups]
        asked = [_total(rows, number) for number in bits]
        return asked if self._weights is None else [*asked, _total(self._admitted(rows), ibis._.count())]

    @property
    def _flags(self) -> list[ir.BooleanValue]:
        """One boolean per finding, in the order that `found` reads them."""
        flags = [
            code == recoding.unknown
            for code, recoding in zip(self._codes, self._recodings, strict=True)
            if _refuses(recoding)
        ]
        flags += [confused for _, confused in self._probed]
        if self._number is not None:
            assert self._weights is not None
            clipped = self._number >= _first_clipped(self._weights)
            flags += [
                self._number.isnull(),
                self._number < 0,
                clipped if self._kept is None else clipped & self._kept,
            ]
        return flags

    def found(self, numbers: Sequence[int]) -> RecordFaults:
        """Return what the answers to `findings` say; refuse a column that does not compare texts by characters."""
        *bits, admitted = numbers if self._weights is not None else (*numbers, 0)
        answers = [bool(group >> place & 1) for group in bits for place in range(_FLAGS)]
        taken = iter(answers)
        refused = [place for place, r in enumerate(self._recodings) if _refuses(r) and next(taken)]
        confused = [recoding.column for recoding, _ in self._probed if next(taken)]
        findings = RecordFaults(refused=frozenset(refused), admitted=admitted)
        if self._weights is not None:
            absent, negative, clipped = next(taken), next(taken), next(taken)
            findings = replace(findings, absent=absent, negative=negative, clipped=clipped)
        if confused:
            raise InvalidColumn(
                f"column {confused[0]!r} of {self._called} has a collation that treats different texts as "
                "equal, so it cannot be recoded. Nothing was counted. Ask for a view in which the column "
                "has no collation."
            )
        return findings

    def counts(self, margin: Margin) -> ir.Table:
        """Return the query for the number of records in each cell; an empty cell has no row."""
        return self._grouped(margin, ibis._.count())

    def sums(self, margin: Margin) -> ir.Table:
        """Return the query for the weights in units, summed over each cell."""
        assert self._number is not None
        assert self._weights is not None
        units = _units(self._number, self._weights, self._dialect)
        return self._grouped(margin, units.sum().fill_null(0))

    def _grouped(self, margin: Margin, number: ir.Value) -> ir.Table:
        rows = self._admitted(self._table)
        if not margin:
            return _total(rows, number)
        # Mixed radix, the last attribute the fastest, as in the array that comes back.
        key, *rest = (self._level(attribute) for attribute in margin)
        for attribute, code in zip(margin[1:], rest, strict=True):
            key = key * len(self._domain.levels_of(attribute)) + code
        return rows.group_by(**{KEY: key}).aggregate(**{NUMBER: number})

    def _admitted(self, rows: ir.Table) -> ir.Table:
        return rows if self._kept is None else rows.filter(self._kept)

    def _level(self, attribute: str) -> ir.IntegerValue:
        place = self._domain.position(attribute)
        code, recoding = self._codes[place], self._recodings[place]
        if recoding.otherwise is None:
            return code
        # Not a CASE: it would compute the code twice.
        return code.nullif(recoding.unknown).fill_null(recoding.otherwise)


def _wide(code: ir.IntegerValue) -> ir.IntegerValue:
    """Return a code in 64 bits for computing keys: a database multiplies in the width of its input."""
    # Ibis does not widen what it takes for 64 bits, but the database may have chosen eight.
    narrow = code.cast("int32") if code.type().is_int64() else code
    return narrow.cast("int64")


def _total(rows: ir.Table, number: ir.Value) -> ir.Table:
    """Return the query for one number over all rows."""
    return rows.aggregate(**{NUMBER: number}).select(**{KEY: _integer(0), NUMBER: ibis._[NUMBER]})


def _integer(number: int) -> ir.IntegerScalar:
    return ibis.literal(number, "int64")


def _refuses(recoding: Recoding) -> bool:
    return recoding.otherwise is None and not recoding.drop


def _is_confused(column: ir.StringColumn) -> ir.BooleanValue:
    """Return whether a column treats different texts as equal: its value is cut off, only its collation is left."""
    none = column.left(0)
    return functools.reduce(operator.or_, ((none + one) == other for one, other in _CONFUSABLE))


def _first_clipped(weights: Weights) -> float:
    """Return the smallest double whose shortest decimal form is above the maximum: the forms grow with the doubles."""
    number = float(weights.maximum)
    while Fraction(repr(number)) > weights.maximum:
        number = math.nextafter(number, 0)
    while Fraction(repr(number)) <= weights.maximum:
        number = math.nextafter(number, math.inf)
    return number


@ibis.udf.scalar.builtin(name=UNITS)  # type: ignore[untyped-decorator]
def _in_units(number: float) -> int:  # type: ignore[empty-body]
    """The function with that name in the connection."""


@ibis.udf.scalar.builtin(name="div", signature=((_NUMERIC, _NUMERIC), _NUMERIC))
def _whole_quotient(dividend, divisor):  # type: ignore[no-untyped-def]
    """PostgreSQL's division without remainder, exact for numbers of any length."""


def _units(number: ir.FloatingValue, weights: Weights, dialect: str) -> ir.IntegerValue:
    """Return weights in units, exactly as `weights.in_units` gives them."""
    if dialect != "postgres":
        return _in_units(number)
    # The text of a double is its shortest decimal form, and PostgreSQL's decimals are exact.
    unit = weights.unit
    amount = number.cast("string").cast(_NUMERIC) * _exact(unit.denominator)
    whole = _whole_quotient(amount, _exact(unit.numerator))
    twice = (amount - whole * _exact(unit.numerator)) * 2
    half, odd = _exact(unit.numerator), whole % 2 == 1
    rounded = ibis.ifelse((twice > half) | ((twice == half) & odd), whole + 1, whole)
    most = weights.sensitivity
    return ibis.ifelse(
        amount >= _exact(most * unit.numerator), ibis.literal(most, "int64"), rounded.cast("int64")
    )


def _exact(number: int) -> ir.DecimalScalar:
    return ibis.literal(str(number)).cast(_NUMERIC)
