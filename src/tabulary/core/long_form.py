"""Tables in long form: one column per attribute, then the values, one row per cell; as a frame of pandas or polars."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tabulary.core.domain import Domain
from tabulary.errors import MissingExtra

if TYPE_CHECKING:
    import pandas
    import polars


class LongForm(ABC):
    """Something with columns, which pandas and polars can take."""

    @abstractmethod
    def columns(self) -> dict[str, NDArray[Any]]:
        """Return the columns in long form, by their names."""

    def to_pandas(self) -> "pandas.DataFrame":
        """Return the columns as a pandas frame."""
        frame: pandas.DataFrame = _frame("pandas", self.columns())
        return frame

    def to_polars(self) -> "polars.DataFrame":
        """Return the columns as a polars frame; a withheld value is null."""
        frame: polars.DataFrame = _frame("polars", self.columns())
        return frame


def long_columns(domain: Domain, values: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Return arrays of the domain's shape as columns, the last attribute fastest, labels first."""
    grids = np.indices(domain.shape).reshape(len(domain.shape), domain.size)
    labels = {
        a: np.array(domain.levels_of(a), dtype=object)[codes]
        for a, codes in zip(domain.attributes, grids, strict=True)
    }
    return {**labels, **{name: array.reshape(-1) for name, array in values.items()}}


def value_name(name: str, attributes: Iterable[str]) -> str:
    """Return the name of a value column, with an underscore where an attribute has that name already.

    >>> value_name("count", ["sex", "count"])
    'count_'
    """
    taken = set(attributes)
    while name in taken:
        name += "_"
    return name


def missing_package(package: str) -> str:
    """Return what to say where a package for frames is not installed."""
    return f"{package} is not installed. Install it with: pip install 'tabulary[frames]'."


def _frame(package: str, columns: Mapping[str, NDArray[Any]]) -> Any:
    try:
        module = __import__(package)
    except ImportError:
        raise MissingExtra(missing_package(package)) from None
    return module.DataFrame({name: list(v) if v.dtype == object else v for name, v in columns.items()})
