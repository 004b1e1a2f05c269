"""Plan files, commands and Python shown in the documentation do what it says."""

import re
from pathlib import Path

import pytest

import tabulary as tb
from docs.small_builder import SmallBuilder
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
    for snippet in (each for each in blocks(page, "python") if "tb.connect" not in each):
        exec(compile(snippet, page, "exec"), {"Path": Path, "tb": tb})
    assert read_plan_file(tmp_path / "census.toml").plan.privacy == tb.PureDP(1)


def test_the_question_to_a_table_builder_in_the_readme_is_answered():
    (snippet,) = (each for each in blocks("README.md", "python") if "tb.connect" in each)
    running, names = SmallBuilder.start(), {"tb": tb}
    try:
        exec(snippet.replace("http://127.0.0.1:8000", running.url), names)
    finally:
        running.stop()
    assert names["people"].margin == ("sex", "employment")


def test_the_plan_file_for_a_comparison_works_with_its_command(tmp_path, monkeypatch, capsys):
    page = "docs/how-to/compare-mechanisms.md"
    monkeypatch.chdir(tmp_path)
    (tmp_path / "census.toml").write_text(blocks(page, "toml")[0])
    _run_commands(blocks(page, "")[0])
    said = " ".join(capsys.readouterr().out.split())
    # The numbers of the Python example on the page, which asks for the same tables.
    assert "● residual" in said
    assert "10.7 a cell; 'margins', the next, has 15.8" in said


def test_the_options_of_shrunk_tables_on_the_page_make_a_plan(tmp_path):
    page = "docs/how-to/write-a-plan-file.md"
    first, _, options = blocks(page, "toml")
    before, after = first.split("[mechanism]")
    text = f"{before}{options}\n[ledger]{after.split('[ledger]')[1]}"
    (tmp_path / "census.toml").write_text(text)
    planned = read_plan_file(tmp_path / "census.toml")
    assert (planned.plan.mechanism, planned.plan.reconstruct) == ("residual", "shrink")
    assert planned.about == 50_000


def test_the_source_in_a_database_on_the_page_makes_a_plan_that_asks_nobody(tmp_path, monkeypatch):
    monkeypatch.delenv("CENSUS_PASSWORD", raising=False)
    first, data, _ = blocks("docs/how-to/write-a-plan-file.md", "toml")
    (tmp_path / "census.toml").write_text(data + first[first.index("[domain.sex]") :])
    source = read_plan_file(tmp_path / "census.toml").source
    assert source.shown == "postgresql://db.example/census, table 'public.people'"
