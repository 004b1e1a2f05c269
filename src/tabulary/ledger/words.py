"""What may be written into a ledger: plain words, and values of the right type."""

from types import UnionType

from tabulary.errors import LedgerError

_LONGEST = 200


def refuse_unprintable(text: str, name: str) -> None:
    """Refuse a text that does not fit on one line of a report.

    >>> refuse_unprintable("census 2021", "the name of an account")
    """
    if not isinstance(text, str) or not text or text != text.strip():
        wrong = "must not be empty, nor begin or end with a space"
    elif len(text) > _LONGEST:
        wrong = f"must have at most {_LONGEST} characters"
    elif not text.isprintable():
        wrong = "must be printable, on one line"
    else:
        return
    raise LedgerError(f"{name} {wrong}. Nothing was measured, nothing was spent.")


def refuse_other_than(kind: type | UnionType, value: object, name: str) -> None:
    """Refuse a value of another type: a bare number is not a budget, a bare word is not a relation.

    >>> refuse_other_than(int, 3, "the number of rooms")
    """
    if not isinstance(value, kind):
        kinds = kind.__args__ if isinstance(kind, UnionType) else (kind,)
        wanted = " or ".join(each.__name__ for each in kinds)
        raise LedgerError(f"{name} must be {wanted}, not {value!r}. Nothing was measured, nothing was spent.")
