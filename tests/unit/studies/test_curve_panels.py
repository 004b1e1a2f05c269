"""`tabulary.studies.curve_panels`: curves with bands."""

import pytest

from tabulary.studies.curve_panels import Curve, PanelAxis, curves


def drawn(points, scale="linear"):
    return curves(
        points, x=PanelAxis("ε"), y=PanelAxis("people", scale), title="Errors", subtitle="of tables"
    ).to_dict()


@pytest.mark.parametrize(
    ("scale", "lows", "shown"),
    [("log", (2, 0), [2, 2]), ("log", (0, 0), [3, 3]), ("log", (2, 1), [2, 1]), ("linear", (2, 0), [2, 0])],
)
def test_a_band_is_cut_only_where_it_reaches_the_zero_of_a_logarithmic_axis(scale, lows, shown):
    points = [Curve("all", "cells", 1, 5.0, lows[0], 9.0), Curve("all", "cells", 2, 3.0, lows[1], 8.0)]
    assert [row["low"] for row in drawn(points, scale)["data"]["values"]] == shown


def test_words_have_room_for_a_wider_font():
    """They are measured in Helvetica; DejaVu Sans, a common substitute, is a sixth wider."""
    names = ["residual, shrunk (the plan's)", "margins"]
    (panel,) = drawn([Curve("all", name, at, 5.0) for name in names for at in (1, 2)])["concat"]
    encodings = [layer["encoding"] for layer in panel["layer"]]
    (padding,) = [each["shape"]["legend"]["columnPadding"] for each in encodings if "shape" in each]
    # Letters of twelve points are about half as wide.
    assert padding > len(names[0]) * 12 / 2 / 6
    assert all(each["y"]["axis"]["titlePadding"] > 4 for each in encodings)
