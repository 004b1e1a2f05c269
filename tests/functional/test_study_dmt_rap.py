"""`tabulary study three-approaches` and `tabulary study rap`, as anyone runs them."""

from importlib import import_module

import pytest

from tabulary.cli.app import run

pytestmark = pytest.mark.slow


def told(capsys):
    captured = capsys.readouterr()
    return captured.out + captured.err


@pytest.mark.parametrize("name", ["three-approaches", "rap"])
def test_a_quick_study_leaves_a_page(name, tmp_path, capsys, monkeypatch):
    # Pictures take long; the unit tests look at them.
    monkeypatch.setattr(import_module("tabulary.release.drawing"), "png", lambda chart: b"")
    monkeypatch.setattr(import_module("tabulary.release.drawing"), "svg", lambda chart: "")
    assert run(["study", name, "--quick", "-o", str(tmp_path / "out"), "--processes", "1"]) == 0
    assert "Page:" in told(capsys)
    assert "<figure>" in (tmp_path / "out" / "index.html").read_text()


def test_a_file_that_is_not_adult_is_an_error_that_leaves_nothing(tmp_path, capsys):
    (tmp_path / "mine.csv").write_text("name,age\nEve,3\n")
    arguments = [
        "study",
        "rap",
        "--quick",
        "--adult",
        str(tmp_path / "mine.csv"),
        "-o",
        str(tmp_path / "out"),
    ]
    assert run(arguments) != 0
    assert "risk-utility" in told(capsys)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", ["three-approaches", "rap"])
def test_help_has_an_example(name, capsys):
    assert run(["study", name, "--help"]) == 0
    assert f"tabulary study {name} --quick" in told(capsys)
