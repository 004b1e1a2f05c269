"""`tabulary study perturbation`, `noise-aware-tests` and `suppression`: a folder with numbers, figures and a page."""

import pytest

from tabulary.cli.app import run

pytestmark = pytest.mark.slow

STUDIES = {
    "perturbation": (["perturbed", "fresh", "tables", "laws", "table-2"], 4),
    "noise-aware-tests": (["tests", "one-count", "one-count-law"], 2),
    "suppression": (["suppressed", "decisions", "noise", "first-tables", "attack"], 3),
}


@pytest.mark.parametrize("name", STUDIES)
def test_a_quick_study_leaves_a_page_with_its_numbers_and_figures(name, tmp_path, capsys):
    assert run(["study", name, "--quick", "-o", str(tmp_path / "out"), "--processes", "1"]) == 0
    printed = capsys.readouterr()
    assert "index.html" in printed.out
    sheets, figures = STUDIES[name]
    assert {path.stem for path in (tmp_path / "out" / "numbers").glob("*.csv")} >= set(sheets)
    for kind in ("svg", "png"):
        assert len(list((tmp_path / "out" / "figures").glob(f"*.{kind}"))) == figures
    page = (tmp_path / "out" / "index.html").read_text()
    assert "In short" in page
    assert "CONFIDENTIAL" not in page
    assert page.count("<img ") == figures


@pytest.mark.parametrize("name", STUDIES)
def test_the_help_of_a_study_has_an_example(name, capsys):
    assert run(["study", name, "--help"]) == 0
    assert f"tabulary study {name} --quick" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize("name", STUDIES)
def test_one_repetition_is_refused(name, tmp_path, capsys):
    assert run(["study", name, "--quick", "--repetitions", "1", "-o", str(tmp_path / "out")]) != 0
    assert not (tmp_path / "out").exists()
    assert "repetitions" in capsys.readouterr().err
