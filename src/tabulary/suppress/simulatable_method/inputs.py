"""The input of a custodian, people in cells or one row per person, as people and counts."""

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tabulary.core.domain import Domain
from tabulary.core.table import Table
from tabulary.errors import InvalidArgument, InvalidTable, listed
from tabulary.suppress.simulatable_method.person_frame import PersonFrame, is_frame
from tabulary.table_samplers.people import People, PeopleByKind

_AXES = ("row", "column", "layer")


def read_people(
    people: Any,
    counts: Any,
    probability: Any,
    *,
    attributes: Iterable[str] | None = None,
    domain: Domain | None = None,
) -> tuple[People, NDArray[np.int64]]:
    """Return the people of a table, and the confidential counts of its cells. See `simulatable` for what it takes.

    >>> people, counts = read_people([[20, 30], [10, 40]], [[5, 9], [2, 16]], [0.3, 0.4], attributes=["eye", "hair"])
    >>> people.domain.levels, people.probability[0].ravel().tolist(), counts.tolist()
    ((('1', '2'), ('1', '2')), [0.3, 0.4], [[5, 9], [2, 16]])
    """
    names = None if attributes is None else _names(attributes)
    if isinstance(people, People):
        if probability is not None or names is not None or domain is not None:
            raise InvalidArgument(
                "a `People` has its own probabilities and labels. Leave `probability`, `attributes` and `domain` out. "
                "Nothing was released."
            )
        return people, _counts(counts, people)
    if probability is None:
        raise InvalidArgument(
            "`probability` is missing: the prior probability of the private attribute. Nothing was released."
        )
    if is_frame(people):
        return _of_persons(PersonFrame(people), counts, probability, names, domain)
    made = _of_cells(people, counts, probability, names, domain)
    return made, _counts(counts, made)


def _of_persons(
    persons: PersonFrame, private: Any, probability: Any, names: list[str] | None, domain: Domain | None
) -> tuple[People, NDArray[np.int64]]:
    if domain is None:
        if names is None:
            raise InvalidArgument(
                "name the columns of the frame that are the attributes of the table: attributes=[...]. Nothing was "
                "released."
            )
        domain = persons.domain(names)
    elif names is not None and tuple(names) != domain.attributes:
        raise InvalidArgument("`attributes` and `domain` name different attributes. Nothing was released.")
    cells = persons.cells(domain)
    if isinstance(probability, str) or np.shape(probability) == (len(persons),):
        priors = persons.priors(probability)
    else:
        priors = _by_cell(probability, domain).ravel()[cells]
    counts = np.bincount(cells, weights=persons.truths(private), minlength=domain.size)
    kinds = PeopleByKind(domain, cells, priors)
    assert kinds.probability is not None
    made = People(domain, kinds.summed(np.ones(len(cells))), kinds.probability)
    return made, counts.astype(np.int64).reshape(domain.shape)


def _of_cells(
    people: Any, counts: Any, probability: Any, names: list[str] | None, domain: Domain | None
) -> People:
    labelled = [given.domain for given in (people, counts) if isinstance(given, Table)]
    number = _array(people, "the people")
    if domain is None:
        domain = labelled[0] if labelled else _numbered(number, _array(counts, "the counts"), names)
    for other in labelled:
        _check_same(domain, other)
    if names is not None and tuple(names) != domain.attributes:
        raise InvalidArgument("`attributes` does not name the attributes of the table. Nothing was released.")
    if isinstance(probability, Table):
        probability = _by_cell(probability, domain)
        probability = probability[..., None] if number.ndim > len(domain.shape) else probability
    return People.of(domain, number, probability)


def _numbered(number: NDArray[Any], counts: NDArray[Any], names: list[str] | None) -> Domain:
    """Return a domain for arrays without labels: levels are numbered from 1 on."""
    axes = min(number.ndim, counts.ndim) if names is None else len(names)
    if not 0 < axes <= number.ndim:
        raise InvalidTable(
            f"an array of people with {number.ndim} axes does not fit a table of {axes} attributes. Nothing was "
            "released."
        )
    if names is None:
        names = [*_AXES[:axes], *(f"axis {place}" for place in range(len(_AXES) + 1, axes + 1))]
    return Domain(
        {name: range(1, levels + 1) for name, levels in zip(names, number.shape[:axes], strict=True)}
    )


def _counts(counts: Any, people: People) -> NDArray[np.int64]:
    """Return the counts of the cells; counts of kinds are checked and added up."""
    if isinstance(counts, Table):
        _check_same(people.domain, counts.domain)
    array = _array(counts, "the counts")
    if not np.isfinite(array).all() or (array != np.round(array)).any():
        raise InvalidTable("a count is not a whole number. Nothing was released.")
    whole = array.astype(np.int64)
    if whole.shape != people.number.shape:
        return whole
    if (whole < 0).any() or (whole > people.number).any():
        raise InvalidTable(
            "a count is below zero or above the number of people of its cell and kind. Nothing was released."
        )
    return np.asarray(whole.sum(axis=-1))


def _by_cell(probability: Any, domain: Domain) -> NDArray[np.float64]:
    """Return a number, an array or a table on some of the attributes, spread over all the cells."""
    if isinstance(probability, Table):
        given = probability.domain
        if not {*given.attributes} <= {*domain.attributes} or any(
            given.levels_of(name) != domain.levels_of(name) for name in given.attributes
        ):
            raise InvalidTable(
                f"the probabilities are given by {listed(given.attributes)}, but the table does not have these "
                f"attributes with the same levels. It has {listed(domain.attributes)}. Nothing was released."
            )
        ordered = probability.transpose(domain.margin(given.attributes))
        summed = [axis for axis, name in enumerate(domain.attributes) if name not in given.attributes]
        array = np.expand_dims(ordered.counts.astype(np.float64), summed)
    else:
        array = _array(probability, "the probabilities")
    try:
        return np.broadcast_to(array, domain.shape)
    except ValueError:
        raise InvalidTable(
            f"probabilities of shape {array.shape} do not fit a table of shape {domain.shape}: give one number, one "
            "for each cell or one for each person. Nothing was released."
        ) from None


def _check_same(domain: Domain, other: Domain) -> None:
    if (domain.attributes, domain.levels) != (other.attributes, other.levels):
        raise InvalidTable(
            "the people, the counts and the domain do not have the same attributes and levels in the same order. "
            "Nothing was released."
        )


def _array(given: Any, name: str) -> NDArray[np.float64]:
    try:
        return np.array(given.counts if isinstance(given, Table) else given, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidTable(f"{name} are not an array of numbers. Nothing was released.") from None


def _names(attributes: Iterable[str]) -> list[str]:
    if isinstance(attributes, str):
        raise InvalidArgument(
            "`attributes` must be a list of names, such as ['eye', 'hair']. Nothing was released."
        )
    return list(attributes)
