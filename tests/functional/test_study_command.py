"""`tabulary study` with the studies that are installed, and one that a test adds in a file of its own."""

import textwrap

import pytest

from tabulary.cli.app import run
from tests.extensions import install, tabulary

STUDY = '''
from dataclasses import dataclass
from tabulary.noise import DiscreteLaplace
from tabulary.studies import ReportSection, Task

def drawn(lab, number):
    return {"draws": [{"draw": int(draw)} for draw in lab.sampler().draw(DiscreteLaplace(5), number)]}

@dataclass(frozen=True)
class Coins:
    number: int = 3
    name = "coins"
    title = "Draws of noise"
    source = "Nobody (2026)"
    about = "Noise is drawn."
    confidential = False

    @property
    def settings(self):
        return {"number": self.number}

    def tasks(self):
        return [Task("all", drawn, (self.number,))]

    def material(self):
        return None

    def report(self, sheets):
        return [ReportSection("In short", (f"{len(sheets['draws'])} numbers were drawn.",))]

def coins(number: int = 3, quick: bool = False):
    """Draw noise.

    Example: tabulary study coins --number 5
    """
    return Coins(1 if quick else number)
'''


@pytest.fixture
def package(tmp_path):
    """A folder with an installed package that adds the study `coins`."""
    install(tmp_path, "many_coins", STUDY, group="tabulary.studies", coins="coins")
    return tmp_path


@pytest.mark.slow
def test_a_study_of_another_package_is_listed_and_runs_with_its_options(package):
    assert "coins Draw noise." in tabulary("study", path=package)[1]
    code, said = tabulary("study", "coins", "--number", "5", "--processes", "1", path=package)
    assert (code, said) == (0, "Page: study-coins/index.html")
    assert "5 numbers were drawn." in (package / "study-coins" / "index.html").read_text()
    assert len((package / "study-coins" / "numbers" / "draws.csv").read_text().splitlines()) == 6


@pytest.mark.slow
def test_a_study_takes_the_options_of_every_study_and_no_option_that_it_does_not_name(package):
    assert tabulary("study", "coins", "--quick", "--seed", "7", "-o", "out", path=package)[0] == 0
    assert "1 numbers were drawn." in (package / "out" / "index.html").read_text()
    code, said = tabulary("study", "coins", "--repetitions", "2", path=package)
    assert code == 2
    assert "No such option" in said


def test_a_package_that_cannot_be_loaded_is_named(package):
    (package / "many_coins.py").write_text("raise RuntimeError('broken')")
    code, said = tabulary("study", path=package)
    assert code == 2
    assert "the study 'coins' of the installed package 'many_coins' cannot be loaded: RuntimeError" in said


WITHOUT = textwrap.dedent(
    """
    from importlib import metadata, util
    found, spec = metadata.entry_points, util.find_spec
    metadata.entry_points = lambda **which: [each for each in found(**which) if "papers" not in each.value]
    util.find_spec = lambda name, *rest: None if name == "tabulary_papers" else spec(name, *rest)
    """
)


@pytest.mark.parametrize("words", [("study",), ("study", "--help"), ("study", "rap")])
def test_without_the_papers_it_says_what_is_there_and_how_to_get_the_others(words, tmp_path):
    _, said = tabulary(*words, path=tmp_path, before=WITHOUT)
    assert "risk-utility" in said
    assert "pip install tabulary-papers" in said
    assert "sparse-tables" not in said


def test_other_commands_load_no_study(package):
    (package / "many_coins.py").write_text("raise RuntimeError('broken')")
    for words in (("--help",), ("datasets",)):
        assert tabulary(*words, path=package)[0] == 0


def test_a_study_that_nobody_has_is_refused(capsys):
    assert run(["study", "nonsense"]) == 2
    assert "there is no study 'nonsense'" in " ".join(capsys.readouterr().err.split())
