"""The result of a check of records: for the custodian only, and never a promise."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass

from tabulary.core.uncopyable import Uncopyable
from tabulary.toolbox.columns import Key, shown

NO_GUARANTEE = (
    "This is not a guarantee. It assumes an attacker who knows these columns and nothing else, and a world "
    "without other data; other columns, other tables or other knowledge can still identify people. "
    "Differential privacy is a promise that holds for any knowledge."
)


@dataclass(frozen=True)
class Exposed:
    """People who stand out: what is known about them, how many records they are, what can be learned about them."""

    known: Mapping[str, str]
    records: int
    values: tuple[str, ...] = ()


class Diagnosis(ABC, Uncopyable):
    """A finding about confidential records: it is as confidential as they are, and not a guarantee.

    It prints what was checked and nothing that was found. `finding` gives the result in words, `verdict` adds what
    it is worth, and `exposed`, if a check has it, lists the people concerned. None of it may be published, and it
    cannot be pickled or copied.
    """

    @property
    @abstractmethod
    def finding(self) -> str:
        """What was found, in words. Confidential."""

    @property
    @abstractmethod
    def checked(self) -> tuple[str, ...]:
        """The columns that were checked."""

    @property
    def verdict(self) -> str:
        """The result and what it is worth: not a guarantee. Confidential."""
        return f"{self.finding} {NO_GUARANTEE}"

    def __repr__(self) -> str:
        return f"<{type(self).__name__} by {shown(self.checked)}, confidential, no guarantee>"


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
