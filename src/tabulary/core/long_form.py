"""Tables in long form: one column per attribute, then the values, one row per cell; as a frame of pandas or polars."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tabulary.core.domain import Domain
from tabulary.errors import MissingExtra

if TYPE_CHECKING:
    import pandas
    import polars


class OrderedLabels(NamedTuple):
    """A column of labels whose levels have an order: the levels, and the place of each row's level among them."""

    levels: tuple[str, ...]
    codes: NDArray[np.integer[Any]]


class LongForm(ABC):
    """Something with columns, which pandas and polars can take."""

    @abstractmethod
    def columns(self) -> dict[str, NDArray[Any]]:
        """Return the columns in long form, by their names."""

    def ordered_columns(self) -> Mapping[str, OrderedLabels]:
        """Return those columns that hold labels in an order, by their names; by default none does."""
        return {}

    def to_pandas(self) -> "pandas.DataFrame":
        """Return the columns as a pandas frame; labels are ordered categoricals."""
        package = installed("pandas")
        frame: pandas.DataFrame = package.DataFrame(
            self._frame_columns(lambda c: package.Categorical.from_codes(c.codes, c.levels, ordered=True))
        )
        return frame

    def to_polars(self) -> "polars.DataFrame":
        """Return the columns as a polars frame; labels are Enums, and a withheld value is null."""
        package = installed("polars")
        frame: polars.DataFrame = package.DataFrame(
            self._frame_columns(
                lambda c: package.Series(values=c.levels, dtype=package.Enum(c.levels)).gather(c.codes)
            )
        )
        return frame

    def _frame_columns(self, labels: Callable[[OrderedLabels], Any]) -> dict[str, Any]:
        ordered = self.ordered_columns()
        return {
            name: labels(ordered[name]) if name in ordered else list(v) if v.dtype == object else v
            for name, v in self.columns().items()
        }


class TableForm(LongForm):
    """A table of a domain in long form: one row per cell, the last attribute fastest."""

    if TYPE_CHECKING:

        @property
        def domain(self) -> Domain:
            """The attributes of the table and their levels, in order."""

    def ordered_columns(self) -> Mapping[str, OrderedLabels]:
        """Return the labels of the attributes, in the order of their levels."""
        grids = np.indices(self.domain.shape, dtype=np.int32).reshape(
            len(self.domain.shape), self.domain.size
        )
        return {
            attribute: OrderedLabels(self.domain.levels_of(attribute), codes)
            for attribute, codes in zip(self.domain.attributes, grids, strict=True)
        }


def long_columns(domain: Domain, values: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Return arrays of the domain's shape as columns, the last attribute fastest, labels first."""
    grids = np.indices(domain.shape).reshape(len(domain.shape), domain.size)
    labels = {
        a: np.array(domain.levels_of(a), dtype=object)[codes]
        for a, codes in zip(domain.attributes, grids, strict=True)
    }
    return {**labels, **{name: array.reshape(-1) for name, array in values.items()}}


def ordered_axes(domain: Domain) -> "dict[str, pandas.CategoricalIndex]":
    """Return the levels of every attribute as the coordinates of an xarray, in their order."""
    index = installed("pandas").CategoricalIndex
    return {
        a: index(levels, categories=levels, ordered=True)
        for a, levels in zip(domain.attributes, domain.levels, strict=True)
    }


def value_name(name: str, attributes: Iterable[str]) -> str:
    """Return the name of a value column, with an underscore where an attribute has that name already.

    >>> value_name("count", ["sex", "count"])
    'count_'
    """
    taken = set(attributes)
    while name in taken:
        name += "_"
    return name


def installed(package: str) -> Any:
    """Return a package for frames, or say how to install it."""
    try:
        return import_module(package)
    except ImportError:
        raise MissingExtra(
            f"{package} is not installed. Install it with: pip install 'tabulary[frames]'."
        ) from None
