"""What a check of records found: for the custodian's eyes, and never a promise."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NoReturn, SupportsIndex

from tabulary.toolbox.columns import Key, shown

NO_GUARANTEE = (
    "This is no guarantee. It speaks of an attacker who knows these columns and nothing else, in a world without "
    "any other data; other columns, other tables or other knowledge can name people all the same. A promise "
    "that holds whatever is known is differential privacy."
)


@dataclass(frozen=True)
class Exposed:
    """People who stand out: what is known of them, how many records they are, what can be learned of them."""

    known: Mapping[str, str]
    records: int
    values: tuple[str, ...] = ()


class Diagnosis(ABC):
    """A finding about confidential records: as confidential as they are, and no guarantee.

    It prints what was checked and nothing that was found. `finding` says that in words, `verdict` adds what it is
    worth, and `exposed`, where a check has it, says whom it is about. None of it may be published, and it cannot be
    pickled or copied.
    """

    @property
    @abstractmethod
    def finding(self) -> str:
        """What was found, in words. Confidential."""

    @property
    @abstractmethod
    def checked(self) -> tuple[str, ...]:
        """The columns that were looked at."""

    @property
    def verdict(self) -> str:
        """What was found and what it is worth: no guarantee. Confidential."""
        return f"{self.finding} {NO_GUARANTEE}"

    def __repr__(self) -> str:
        return f"<{type(self).__name__} by {shown(self.checked)}, confidential, no guarantee>"

    def __format__(self, specification: str) -> str:
        return repr(self)

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        raise TypeError(f"{type(self).__name__} is confidential: it cannot be pickled or copied.")


def share(part: int, whole: int) -> str:
    """Return a part of a whole for a sentence.

    >>> share(2, 9)
    '2 of 9 (22.2 %)'
    """
    return f"{part:,} of {whole:,} ({part / whole:.1%})".replace("%", " %") if whole else "0 of 0"


def known_by(names: tuple[str, ...], key: Key) -> dict[str, str]:
    """Return a key as what is known, by column.

    >>> known_by(("age", "zip"), ("50-59", "191**"))
    {'age': '50-59', 'zip': '191**'}
    """
    return dict(zip(names, key, strict=True))
