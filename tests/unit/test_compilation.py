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
