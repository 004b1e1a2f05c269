"""All checks of one table of records in one text."""

from collections.abc import Iterable
from dataclasses import dataclass

from tabulary.toolbox.columns import Columns, named_columns
from tabulary.toolbox.diagnosis import Diagnosis
from tabulary.toolbox.k_anonymity import (
    CALLED,
    QUASI,
    Anonymity,
    Homogeneity,
    anonymity_of,
    check_k,
    check_sensitive,
    homogeneity_of,
)
from tabulary.toolbox.linkage import REGISTER, Linkage, linkage_of


@dataclass(frozen=True, repr=False)
class Risks(Diagnosis):
    """What the checks of a table found, one after the other. Confidential, no guarantee."""

    anonymity: Anonymity
    homogeneity: tuple[Homogeneity, ...]
    linkage: Linkage | None

    @property
    def checked(self) -> tuple[str, ...]:
        """The quasi-identifiers and the sensitive columns."""
        return (*self.anonymity.checked, *(each.sensitive for each in self.homogeneity))

    @property
    def finding(self) -> str:
        """What was found, in words. Confidential."""
        linked = () if self.linkage is None else (self.linkage,)
        return " ".join(each.finding for each in (self.anonymity, *self.homogeneity, *linked))


def risks(
    records: object,
    quasi_identifiers: Iterable[str],
    *,
    k: int,
    sensitive: Iterable[str] = (),
    register: object | None = None,
) -> Risks:
    """Return k-anonymity, homogeneity of each sensitive column and linkage with a register, if there is one.

    Confidential, and not a guarantee: the checks find weaknesses of a table, but never prove that there are none.

    >>> import pyarrow
    >>> people = pyarrow.table({"age": ["50-60"] * 2 + ["60-70"] * 2, "illness": ["flu", "flu", "gout", "flu"]})
    >>> found = risks(people, ["age"], k=2, sensitive=["illness"])
    >>> found
    <Risks by age × illness, confidential, no guarantee>
    >>> found.anonymity.holds, found.homogeneity[0].disclosed
    (True, 2)
    """
    names = named_columns(quasi_identifiers, QUASI)
    secrets = named_columns(sensitive, "sensitive columns") if sensitive != () else ()
    check_k(k)
    for secret in secrets:
        check_sensitive(secret, names)
    columns = Columns.read(records, (*names, *secrets), CALLED)
    classes = columns.classes(names)
    linkage = None
    if register is not None:
        linkage = linkage_of(columns, Columns.read(register, names, REGISTER), names)
    return Risks(
        anonymity_of(classes, k),
        tuple(homogeneity_of(columns, classes, secret) for secret in secrets),
        linkage,
    )
