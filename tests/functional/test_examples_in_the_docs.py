"""Plan files, commands and Python shown in the documentation do what it says."""

import re
from pathlib import Path

import pytest

import tabulary as tb
from tabulary.cli.app import run
from tabulary.workflows import read_plan_file

ROOT = Path(__file__).parents[2]


def blocks(page, language):
    """The fenced blocks of one language on a page of the documentation."""
    parts = re.split(r"^```(\w*)\n", (ROOT / page).read_text(encoding="utf-8"), flags=re.MULTILINE)
    # Fences alternate: what follows an opening one is a block, what follows a closing one is prose.
    fences = list(zip(parts[1::2], parts[2::2], strict=True))
    return [text for name, text in fences[::2] if name == language]


def _run_commands(block):
    for line in block.splitlines():
        command = line.split("#")[0].split()
        if command[:1] == ["tabulary"]:
            arguments = [word.strip("\"'") for word in command[1:]]
            assert run(arguments) == 0, line


@pytest.mark.parametrize("page", ["README.md", "docs/how-to/write-a-plan-file.md"])
def test_the_plan_file_on_the_page_works_with_the_commands_on_the_page(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    people = "sex,age_in_years,job\n" + "F,3,0\nM,40,1\nF,70,0\nM,20,\n" * 50
    (tmp_path / "people.csv").write_text(people)
    text = blocks(page, "toml")[0].replace("people.parquet", "people.csv")
    (tmp_path / "census.toml").write_text(text)
    _run_commands(blocks(page, "")[-1])
    assert len(tb.Release.load(tmp_path / "census-2026")) == 2
    for snippet in blocks(page, "python"):
        exec(compile(snippet, page, "exec"), {"Path": Path, "tb": tb})
    assert read_plan_file(tmp_path / "census.toml").plan.privacy == tb.PureDP(1)
