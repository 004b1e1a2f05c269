"""What `tabulary study` finds in the package of the papers."""

import pickle
from importlib.metadata import entry_points

import pytest

from tabulary.studies import STUDIES
from tabulary_papers import commands

PAPERS = ("noise-aware-tests", "perturbation", "rap", "sparse-tables", "suppression", "three-approaches")


def test_every_study_is_found_by_its_entry_point():
    found = {each.name: each.load() for each in entry_points(group="tabulary.studies")}
    assert tuple(found[name] for name in PAPERS) == tuple(
        getattr(commands, name.replace("-", "_")) for name in PAPERS
    )


@pytest.mark.parametrize("name", PAPERS)
def test_the_work_of_every_study_can_go_to_another_process(name):
    small = STUDIES[name](quick=True)
    assert small.name == name
    assert pickle.dumps((small.tasks(), small.material()))


@pytest.mark.parametrize("name", PAPERS)
def test_every_study_repeats_as_often_as_is_asked_for(name):
    assert STUDIES[name](repetitions=7).repetitions == 7
