"""From a pandas or polars frame to an Arrow table with only the wanted columns."""

from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any

from tabulary.errors import InvalidColumn

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow as pa


def pandas_table(frame: "pandas.DataFrame", columns: Iterable[str]) -> "pa.Table":
    """Return the wanted columns, each of which the frame has once.

    Column by column, so that an error names the column that cannot be converted, and no other column is touched.
    """
    import pyarrow as pa

    names = list(frame.columns)
    return pa.table({n: _converted(partial(_pandas_column, frame, names.index(n)), n) for n in columns})


def polars_table(frame: "polars.DataFrame", columns: Iterable[str]) -> "pa.Table":
    """Return the wanted columns, each of which the frame has once."""
    import pyarrow as pa

    return pa.table({name: _converted(frame.get_column(name).to_arrow, name) for name in columns})


def _pandas_column(frame: "pandas.DataFrame", place: int) -> Any:
    import pyarrow as pa

    series = frame.iloc[:, place]
    codes: Any = getattr(series.array, "codes", None)
    if codes is not None and len(codes) and codes.min() >= 0:
        # A category without missing values is used without a copy.
        categories = pa.array(getattr(series.array, "categories", None), from_pandas=True)
        return pa.DictionaryArray.from_arrays(codes, categories, safe=False)
    return pa.array(series, from_pandas=True)


def _converted(convert: Callable[[], Any], name: str) -> Any:
    try:
        return convert()
    except MemoryError:
        raise
    except Exception:
        pass
    # Raised here, outside the handler: the original error quotes the value that could not be converted.
    raise InvalidColumn(
        f"column {name!r} of the frame has values of more than one type, or of a type without text. Nothing "
        "was counted. Convert the column to text, to numbers or to a category first."
    )
