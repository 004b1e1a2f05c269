"""Which published cells are far off, and how many of them: by Nabar & Mishra (2010), by more than a quarter."""

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tabulary.studies import Proportion, Row, chosen, number

FAR = 0.25


def far_off(errors: NDArray[np.float64], truth: NDArray[Any]) -> NDArray[np.bool_]:
    """Return which cells are off by more than a quarter of their true value.

    >>> far_off(np.array([10.0, -11.0]), np.array([40, 40])).tolist()
    [False, True]
    """
    return np.asarray(np.abs(errors) > FAR * truth)


def distorted(rows: Iterable[Row], **which: object) -> Proportion:
    """Return how many of the published cells are far off, over all repetitions in the rows that have these values.

    >>> distorted([{"way": "cells", "far_off": 1, "cells": 9}, {"way": "cells", "far_off": 0, "cells": 9}])
    Proportion(times=1, trials=18)
    """
    own = chosen(rows, **which)
    far, cells = (sum(int(number(row, column)) for row in own) for column in ("far_off", "cells"))
    return Proportion(far, cells)
