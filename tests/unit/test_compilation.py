from types import SimpleNamespace

import numpy as np
import pytest

from tabulary import compilation


def test_an_install_without_a_place_for_a_cache_still_compiles(monkeypatch: pytest.MonkeyPatch) -> None:
    compile_ = compilation.numba.njit

    def refuses(**options: bool):
        if options.get("cache"):
            raise RuntimeError("cannot cache function: no locator available")
        return compile_(**options)

    monkeypatch.setattr(compilation, "numba", SimpleNamespace(njit=refuses))

    def ones(cells: np.ndarray) -> None:
        for i in range(cells.shape[0]):
            cells[i] = 1

    cells = np.zeros(3)
    compilation.compiled(ones)(cells)
    assert cells.tolist() == [1, 1, 1]


def test_an_inlined_division_by_zero_is_that_of_numpy() -> None:
    @compilation.inlined
    def ratio(a: float, b: float) -> float:
        return a / b

    @compilation.compiled
    def ratios(b: float) -> float:
        return ratio(1.0, b)

    assert ratios(0.0) == np.inf
    assert ratios(2.0) == 0.5
