"""Data to try things on: six published tables, and a generator of made-up people.

Nothing here is confidential. The tables are published; the people do not exist.
"""

from typing import TYPE_CHECKING

from tabulary.lazy import load_on_use

if TYPE_CHECKING:
    from tabulary.datasets.microdata import MAX_PEOPLE, people
    from tabulary.datasets.population import people_domain
    from tabulary.datasets.published import Dataset, describe, load, names

__all__ = [
    "MAX_PEOPLE",
    "Dataset",
    "describe",
    "load",
    "names",
    "people",
    "people_domain",
]

load_on_use(__name__)
