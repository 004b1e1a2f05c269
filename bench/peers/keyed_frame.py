"""The records that `bench.cellkey` and its peer read, as frames. Needs pandas alone."""

import numpy as np
import pandas as pd
from numpy.typing import NDArray

KINDS = ("integers", "text", "categories")

MINIMUM = 10


def frame_of(codes: NDArray[np.int64], keys: NDArray[np.int64], kind: str) -> pd.DataFrame:
    """Return records as a frame whose columns are whole numbers, text or categories."""
    columns: dict[str, object] = {}
    for place, column in enumerate(codes.T):
        if kind == "integers":
            columns[f"a{place}"] = column
        else:
            texts = pd.Series([f"level {code:02}" for code in range(column.max() + 1)]).take(column)
            columns[f"a{place}"] = texts.reset_index(drop=True).astype(
                "category" if kind == "categories" else "str"
            )
    return pd.DataFrame(columns | {"record_key": keys})
