"""The bench of error bars: its lines say what was measured, and bars that are too short are not met."""

import json
from dataclasses import replace

import numpy as np
import pytest

from bench import release
from tabulary.planning import Face

PEOPLE = release.by_few(release.generated(3_000), ("sex", "age"))


@pytest.fixture(scope="module")
def found():
    return release.bars(PEOPLE, Face("shrink", "controlled"), "1", releases=3)


def test_every_class_of_true_counts_has_a_line(found, capsys):
    list(release.tell_bars("people", Face("shrink", "controlled"), "1", found, 3))
    lines = [json.loads(text) for text in capsys.readouterr().out.splitlines()]
    assert [line["peer"] for line in lines][-4:] == [
        "not empty, at least",
        "not empty, at most",
        "95 of 100 cells",
        "every cell",
    ]
    assert all(line["met"] == (line["ratio"] >= line["target"]) for line in lines)


def test_bars_that_hold_nothing_are_not_met(found, capsys):
    short = replace(found, widths=np.full_like(found.widths, 1e-6))
    met = list(release.tell_bars("people", Face("shrink", "controlled"), "1", short, 3))
    assert not met[0]
    assert capsys.readouterr().out


def test_data_that_are_not_there_are_left_out(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(release, "DATA", tmp_path)
    assert release.stored("adult") is None
    assert "are not there" in capsys.readouterr().out
    assert list(release.cost()) == []
