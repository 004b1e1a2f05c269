"""Levels written as bits, so that a binary basis can serve attributes of any size.

An attribute of k levels becomes ⌈log₂ k⌉ binary ones that hold the level's number, most significant first.
The codes that no level has are structural zeros of the binary domain (Dwork, McSherry & Talwar 2007,
section 5). A binary attribute stays as it is.
"""

from functools import lru_cache
from itertools import product

import numpy as np
from numpy.typing import NDArray

from tabulary.core.basis import Number
from tabulary.core.domain import Domain, Margin
from tabulary.errors import TooManyCells

# The structural zeros for codes without a level are listed one by one.
MOST_CODES = 1 << 16


def bits_of(domain: Domain, margin: Margin) -> Margin:
    """Return the names of the bits that hold these attributes.

    >>> bits_of(Domain({"sex": "FM", "age": ["0-14", "15-64", "65+"]}), ("sex", "age"))
    ('sex', 'age.1', 'age.2')
    """
    return tuple(bit for attribute in margin for bit in _bits(domain, attribute))


def binary_domain(domain: Domain) -> Domain:
    """Return the same domain with every attribute as bits; codes without a level are impossible.

    >>> binary_domain(Domain({"sex": "FM", "age": ["0-14", "15-64", "65+"]})).structural_zeros
    ((('age.1', ('1',)), ('age.2', ('1',))),)
    """
    if all(len(labels) == 2 for labels in domain.levels):
        return domain
    levels = {
        bit: domain.levels_of(a) if bit == a else ("0", "1")
        for a in domain.attributes
        for bit in _bits(domain, a)
    }
    zeros = [
        _assignment(domain, a, code)
        for a in domain.attributes
        for code in range(len(domain.levels_of(a)), 2 ** len(_bits(domain, a)))
    ]
    for zero in domain.structural_zeros:
        codes = [[_assignment(domain, a, domain.code(a, level)) for level in labels] for a, labels in zero]
        zeros += [{bit: value for part in parts for bit, value in part.items()} for parts in product(*codes)]
        if len(zeros) > MOST_CODES:
            raise TooManyCells(
                f"as bits the domain has more than {MOST_CODES:,} structural zeros. Use the mechanism "
                "'efron-stein', which takes attributes of any size directly."
            )
    return Domain(levels, zeros)


def to_bits(domain: Domain, margin: Margin, table: NDArray[Number]) -> NDArray[Number]:
    """Return the table on `margin` over the bits of its attributes, zero where a code has no level.

    >>> to_bits(Domain({"age": ["0-14", "15-64", "65+"]}), ("age",), np.array([5, 7, 9])).tolist()
    [[5, 7], [9, 0]]
    """
    sides = [2 ** len(_bits(domain, a)) for a in margin]
    padded = np.zeros(sides, dtype=table.dtype)
    padded[tuple(slice(len(domain.levels_of(a))) for a in margin)] = table
    return padded.reshape((2,) * len(bits_of(domain, margin)))


def from_bits(domain: Domain, margin: Margin, table: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the table on `margin` from one over its bits; the values at other codes are dropped."""
    sides = [2 ** len(_bits(domain, a)) for a in margin]
    return table.reshape(sides)[tuple(slice(len(domain.levels_of(a))) for a in margin)]


def _bits(domain: Domain, attribute: str) -> Margin:
    return _bit_names(domain)[attribute]


@lru_cache(maxsize=64)
def _bit_names(domain: Domain) -> dict[str, Margin]:
    names: dict[str, Margin] = {a: (a,) for a in domain.attributes if len(domain.levels_of(a)) == 2}
    taken = set(domain.attributes)
    for attribute in domain.attributes:
        if attribute not in names:
            wanted, stem = (len(domain.levels_of(attribute)) - 1).bit_length(), attribute
            # An attribute may have the name that a bit would get.
            while taken & {f"{stem}.{i + 1}" for i in range(wanted)}:
                stem += "_"
            names[attribute] = tuple(f"{stem}.{i + 1}" for i in range(wanted))
            taken.update(names[attribute])
    return names


def _assignment(domain: Domain, attribute: str, code: int) -> dict[str, str]:
    bits = _bits(domain, attribute)
    if bits == (attribute,):
        return {attribute: domain.levels_of(attribute)[code]}
    return {bit: str(code >> (len(bits) - 1 - i) & 1) for i, bit in enumerate(bits)}
