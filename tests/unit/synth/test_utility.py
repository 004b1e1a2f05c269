"""The report on rows, made from the public side."""

import numpy as np
import pytest

import tabulary as tb
from tabulary.errors import InvalidTable
from tabulary.synth import SyntheticRecords, utility
from tests.releases import release_of

DOMAIN = tb.Domain({"sex": ["F", "M"], "job": ["none", "paid"]})


def release():
    plan = tb.plan(DOMAIN, "[sex][sex job]", privacy=tb.PureDP(1), mechanism="margins")
    return release_of(plan, {("sex",): np.array([6, 4]), ("sex", "job"): np.array([[3, 3], [2, 2]])})


def test_the_distance_is_that_of_shares_and_the_noise_that_of_the_stated_errors():
    rows = SyntheticRecords(DOMAIN, np.array([[0, 0], [0, 1], [1, 0], [1, 1]]))
    found = utility(rows, release())
    by_margin = {fit.margin: fit for fit in found.fits}
    assert by_margin[("sex",)].distance == pytest.approx(0.2)
    assert by_margin[("sex", "job")].distance == pytest.approx(0.2)
    errors = release()["sex"].standard_errors
    assert by_margin[("sex",)].noise == pytest.approx(np.sqrt(2 / np.pi) * errors.sum() / 10)
    assert "1-way" in str(found)


def test_the_picture_is_written_twice(tmp_path):
    rows = SyntheticRecords(DOMAIN, np.array([[0, 0], [0, 1], [1, 0], [1, 1]]))
    drawn, painted = utility(rows, release()).draw(tmp_path / "utility")
    assert "What the rows add" in drawn.read_text("utf-8")
    assert painted.read_bytes().startswith(b"\x89PNG")


def test_rows_without_the_attributes_are_refused():
    rows = SyntheticRecords(DOMAIN.project(["sex"]), np.array([[0], [1]]))
    with pytest.raises(InvalidTable, match="attributes"):
        utility(rows, release())
