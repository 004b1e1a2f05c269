"""Tables and names as a reader would say them."""

from collections.abc import Sequence

from tabulary.core.domain import Margin


def table_name(margin: Margin) -> str:
    """Return a margin as a reader would say it.

    >>> table_name(("sex", "age")), table_name(())
    ('sex by age', 'total')
    """
    return " by ".join(margin) or "total"


def listed_words(names: Sequence[str]) -> str:
    """Return names for a sentence.

    >>> listed_words(["sex", "age", "job"])
    'sex, age and job'
    """
    if len(names) < 2:
        return names[0] if names else "nothing: the total"
    return f"{', '.join(names[:-1])} and {names[-1]}"
