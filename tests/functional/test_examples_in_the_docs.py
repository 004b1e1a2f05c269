"""Every example in the documentation does what it says.

Sessions (`>>>`) are doctests of the pages, which pytest collects. Everything else is walked over here, block by block:
files are written and read by whom they are for, commands and programs are run in a prepared folder.
"""

import json
import re
import shlex
import subprocess
import tomllib
from itertools import islice, product

import pyarrow.csv
import pyarrow.parquet
import pytest
import typer

import tabulary as tb
from docs.command_pages import every_command, examples
from docs.small_builder import SmallBuilder
from tabulary.builder.configuration import read_service_file
from tabulary.cli.app import command_line, run
from tabulary.core.domain import bin_labels
from tabulary.workflows import read_plan_file
from tests.pages import (
    GENERATED,
    SHELL,
    blocks,
    blocks_of,
    copy_saved_folder,
    pages,
    prose_of,
    read,
)

pytestmark = pytest.mark.slow

PLAN = """
[data]
source = "people.csv"
[domain.sex]
levels = ["F", "M"]
[domain.age]
from = "age_in_years"
bins = [0, 15, 65]
[privacy]
epsilon = 1
[tables]
margins = "[sex age]"
[mechanism]
reconstruct = "least-squares"
"""
SERVICE = "docs/how-to/run-a-table-builder.md"
PREPARED = ("people.csv", "people.parquet")
HERE = "tests/functional/test_examples_in_the_docs.py"
ENGINES = "tests/unit/confidential/engines"
# What cannot run on its page, and the tests that run it. The command line still has to understand such a command.
NOT_RUN = {
    r"tabulary demo\b": "tests/functional/test_cli.py",
    r"tabulary serve --demo$": "tests/functional/test_serve_command.py",
    r"tabulary serve service.toml$": "tests/functional/test_serve_command.py",
    r"tabulary serve census-20": "tests/functional/test_serve_release.py",
    r"tabulary token revoke ": "tests/functional/test_serve_command.py",
    r"tabulary study sparse-tables": "tests/functional/test_study_sparse_tables.py",
    r"tabulary study (three-approaches|rap)": "tests/functional/test_study_dmt_rap.py",
    r"tabulary study (perturbation|noise-aware-tests|suppression)": "tests/functional/test_study_ross_nm.py",
    r"tabulary study risk-utility": "tests/functional/test_study_risk_utility.py",
    r"tabulary ledger create postgresql:": "tests/functional/test_ledger_command.py",
    r"curl .*\$ADDRESS/": "tests/functional/test_client.py",
    r"curl http://127.0.0.1:8000/api/datasets/census/": "tests/functional/test_serve_command.py",
    r"curl .*http://127.0.0.1:8000/api/custodian/": "tests/functional/test_serve_command.py",
    r"curl http://127.0.0.1:8000/api/datasets/people/": "tests/functional/test_pages_walkthrough.py",
    r"python3 -m venv |\. venv/bin/activate$": f"{HERE}::test_the_environment_of_the_tutorial_can_be_made",
    r"CREATE (ROLE|VIEW) ": f"{ENGINES}/database/test_engine.py",
    r"import tabulary as tb.*from_spark\(spark\.table": f"{ENGINES}/spark/test_engine.py",
    r"import tabulary as tb builder = tb.connect\(": "tests/functional/test_serve_release.py",
    r"people = tb.connect\(": f"{HERE}::test_the_question_to_a_table_builder_in_the_readme_is_answered",
}
LANGUAGES = {"python", "toml", "csv", "json", "text", "sql", *SHELL}
PLAN_KEYS = {"data", "domain", "structural_zeros", "privacy", "tables", "mechanism", "output", "ledger"}


def run_commands(block):
    for line in block.splitlines():
        command = line.split("#")[0].split()
        # What serves until it is stopped would never end here.
        if command[:1] == ["tabulary"] and not not_run(" ".join(command)):
            arguments = [word.strip("\"'") for word in command[1:]]
            assert run(arguments) == 0, line


def not_run(text):
    """Where an example that cannot run here is run, or None."""
    line = " ".join(text.split())
    return next((place for pattern, place in NOT_RUN.items() if re.match(pattern, line)), None)


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CENSUS_PASSWORD", "not asked for")
    return tmp_path


class Walk:
    """One page, from its first block to its last, in a folder of its own."""

    def __init__(self, page, folder):
        self.page, self.folder, self.names = page, folder, {}
        self.plan, self.service = PLAN, ""
        self.made = set(re.findall(r"(?:-o|--output) (\S+)|title=\"([^\"]+)\"", read(page)))
        self.made = {name for pair in self.made for name in pair if name}

    def prepare(self):
        """Give the page what it takes for granted: people, a plan, a ledger, a release that others made."""
        used = "".join(each.text for each in blocks_of(self.page) if each.language in (*SHELL, "toml"))
        plans = [each.text for each in blocks_of(self.page) if is_plan(each)]
        people = people_of(plans[0] if plans else PLAN)
        pyarrow.csv.write_csv(people, self.folder / "people.csv")
        if "people.parquet" in used and "people.parquet" not in self.made:
            pyarrow.parquet.write_table(people, self.folder / "people.parquet")
        if "census.toml" in used:
            (self.folder / "census.toml").write_text(PLAN)
        if "service.toml" in used and "service.toml" not in self.made:
            (service,) = (each for each in blocks_of(SERVICE) if each.title == "service.toml")
            (self.folder / "service.toml").write_text(service.text)
        if "--ledger ledger.sqlite" in used and "ledger create ledger.sqlite" not in used:
            quietly("ledger", "create", "ledger.sqlite", "--account", "census", "--epsilon", "4")
        named = set(re.findall(r"^tabulary (?:show|test|verify|synth) ([\w-]+)(?= |$)", used, re.MULTILINE))
        for pair in re.findall(r"^tabulary compare ([\w-]+) ([\w-]+) ", used, re.MULTILINE):
            named |= set(pair)
        for name in named:
            if name not in self.made and ".save(folder)" not in read(self.page):
                (self.folder / "prepared.toml").write_text(PLAN)
                quietly("release", "prepared.toml", "-o", name)
        copy_saved_folder(self.page, self.folder)

    def take(self, block):
        """Run a block, or read it as what it is."""
        if block.is_session:
            assert block.language == "python", f"{block}: a session is Python"
        elif block.language in SHELL:
            for words, remark in block.commands():
                self.command(block, words, remark)
        elif block.language == "python":
            if not not_run(block.text):
                exec(compile(block.text, str(block), "exec"), self.names)
        elif block.language == "toml":
            self.toml(block)
        elif block.language == "sql":
            assert not_run(block.text), f"{block}: name the test that runs this"
        elif block.language == "json":
            json.loads(block.text)
        elif block.language == "text":
            hidden = re.search(r"^\s*(tabulary|>>>|curl|pip) ", block.text, re.MULTILINE)
            assert not hidden, f"{block}: this is no text but an example: say in which language"
        if block.title and block.language != "toml":
            (self.folder / block.title).write_text(block.text)

    def command(self, block, words, remark):
        line = " ".join(words)
        if words[0] == "tabulary":
            if not_run(line):
                understood(words)
            else:
                self.make_room(words)
                assert run(words[1:]) == (2 if remark.startswith("refused") else 0), f"{block}: {line}"
        elif words[:2] == ["pip", "install"]:
            extras = tomllib.loads(read("pyproject.toml"))["project"]["optional-dependencies"]
            # In the folder of the sources, a point is the project itself.
            (named,) = re.findall(r"^(?:tabulary|\.)(?:\[([\w,]+)\])?$", words[2])
            assert set(filter(None, named.split(","))) <= set(extras), f"{block}: {line}"
        elif words[0] == "make":
            assert re.search(rf"^{words[1]}:", read("Makefile"), re.MULTILINE), f"{block}: {line}"
        else:
            assert not_run(line), f"{block}: name the test that runs {line!r}, or say what the block is"

    def make_room(self, words):
        """What a command would write must not be there; the prepared people have been read by then."""
        target = self.folder / words[words.index("-o") + 1] if "-o" in words else None
        if target is not None and target.name in PREPARED:
            target.unlink(missing_ok=True)

    def toml(self, block):
        keys = set(tomllib.loads(block.text))
        path = self.folder / (block.title or "census.toml")
        if "dataset" in keys:
            path = self.folder / (block.title or "service.toml")
            path.write_text(block.text)
            self.service = block.text
            read_service_file(path)
        elif self.service and keys <= {"state", "ledger", "key", "server", "limits"}:
            (self.folder / "part.toml").write_text(overlaid(self.service, block.text))
            (self.folder / "database.password").write_text("not asked for\n")
            (self.folder / "database.password").chmod(0o600)
            read_service_file(self.folder / "part.toml")
        elif keys <= PLAN_KEYS:
            whole = is_plan(block)
            self.plan = block.text if whole else self.plan
            path = path if whole else self.folder / "part.toml"
            path.write_text(block.text if whole else overlaid(self.plan, block.text))
            read_plan_file(path)
        else:
            assert block.title, f"{block}: which file is this? Say title=..."
            path.write_text(block.text)


def is_plan(block):
    """Whether a block is a whole plan file."""
    return block.language == "toml" and {"data", "domain", "privacy", "tables"} <= set(
        tomllib.loads(block.text)
    )


def people_of(plan):
    """Some people whose columns and values are those that a plan file reads."""
    read_as = tomllib.loads(plan)
    columns = []
    for name, said in read_as["domain"].items():
        if "bins" in said:
            values = dict(zip(said["bins"], bin_labels(said["bins"]), strict=True))
        else:
            values = said.get("map") or {level: level for level in said["levels"]}
        columns.append((name, said.get("from", name), values))
    zeros = read_as.get("structural_zeros", [])
    rows = [
        [value for value, _ in person]
        for person in islice(product(*(values.items() for _, _, values in columns)), 2_000)
        if not any(
            all(
                level == zero.get(name, level)
                for (name, _, _), (_, level) in zip(columns, person, strict=True)
            )
            for zero in zeros
        )
    ]
    rows = rows * (1 + 400 // len(rows))
    return pyarrow.table({column: [row[i] for row in rows] for i, (_, column, _) in enumerate(columns)})


def overlaid(whole, part):
    """A TOML file with the tables of a part in place of its own."""
    new = set(tomllib.loads(part))
    kept = [
        section
        for section in re.split(r"^(?=\[)", whole, flags=re.MULTILINE)
        if not (head := re.match(r"\[+([\w-]+)", section)) or head[1] not in new
    ]
    # What stands before any table must stay there.
    return "\n".join([kept[0], part, *kept[1:]]) if not kept[0].startswith("[") else "\n".join([part, *kept])


def understood(words):
    """Fail unless the command line takes these words: commands and options that there are, arguments in their place."""
    name, *words = words
    assert name == "tabulary"
    command, context = typer.main.get_command(command_line()), None
    while True:
        context = command.make_context(name, words, parent=context)
        if not hasattr(command, "commands"):
            return
        # The group has its say: that of attacks takes a file for one of `suppression`.
        name, command, words = command.resolve_command(context, [*context._protected_args, *context.args])


def quietly(*words):
    assert run(list(words)) == 0, words


@pytest.mark.parametrize("page", [page for page in pages() if any(not b.is_session for b in blocks_of(page))])
def test_every_example_on_the_page_runs(page, here, capsys):
    walk = Walk(page, here)
    walk.prepare()
    for block in blocks_of(page):
        assert block.language in LANGUAGES, f"{block}: nothing here knows {block.language!r}"
        walk.take(block)


@pytest.mark.parametrize("page", pages())
def test_no_example_hides_outside_a_block(page):
    indented = re.findall(r"^ {4,}(?:tabulary|curl|pip) .*", prose_of(page), re.MULTILINE)
    bare = re.findall(r"^ *>>> .*", prose_of(page), re.MULTILINE)
    assert not indented, "put commands between fences, so that they are run"
    assert not bare, "put sessions between fences: Markdown would take them for quotations"


def test_pytest_collects_the_sessions_of_every_page():
    settings = tomllib.loads(read("pyproject.toml"))["tool"]["pytest"]["ini_options"]
    assert {"docs", "README.md"} <= set(settings["testpaths"])
    assert "--doctest-glob=*.md" in settings["addopts"]
    # Those in generated pages are doctests of the code that they are generated from.
    assert re.findall(r"--ignore=(\S+)", settings["addopts"]) == [GENERATED[0]]


def shown():
    """Every example as one line, with the page that it stands on; those of the help have no page."""
    for page in pages():
        for block in blocks_of(page):
            yield page, " ".join(block.text.split())
            if block.language in SHELL:
                yield from ((page, " ".join(words)) for words, _ in block.commands())
    for _, command in every_command():
        yield from ((None, " ".join(shlex.split(line))) for line in examples(command))


def tells_of(place, page, line):
    """Whether a test names the page of an example, or for a command of ours every command within it, as its words."""
    file, _, test = place.partition("::")
    text = read(file)
    if test:
        # In this very file, where examples are named for other reasons too.
        (text,) = re.findall(rf"^def {test}\(.*?(?=^\S|\Z)", text, re.MULTILINE | re.DOTALL)
    if page is not None and f'"{page}"' in text:
        return True
    words = re.match(r"tabulary((?: [a-z][a-z-]*(?!\S))+)", line)
    return words is not None and all(f'"{word}"' in text for word in words[1].split())


@pytest.mark.parametrize("pattern", NOT_RUN)
def test_what_is_not_run_here_is_on_a_page_and_run_elsewhere(pattern):
    examples_of = [(page, line) for page, line in shown() if re.match(pattern, line)]
    assert examples_of, "no page has such an example any more"
    untold = [each for each in examples_of if not tells_of(NOT_RUN[pattern], *each)]
    assert not untold, f"{NOT_RUN[pattern]} knows nothing of them"


def test_a_test_that_does_not_tell_of_an_example_is_found_out():
    line = "curl http://127.0.0.1:8000/api/datasets/census/tables.csv?by=sex&by=age"
    assert tells_of("tests/functional/test_serve_command.py", SERVICE, line)
    assert not tells_of("tests/functional/test_client.py", SERVICE, line)
    assert not tells_of("tests/functional/test_cli.py", None, "tabulary study rap --quick")


def test_the_environment_of_the_tutorial_can_be_made(tmp_path):
    block = next(each for each in blocks("docs/tutorial/first-release.md", "sh") if "venv" in each)
    # What comes next has to be fetched.
    lines = block.replace("pip install", "command -v pip #")
    done = subprocess.run(
        ["/bin/sh", "-e"], input=lines, cwd=tmp_path, text=True, capture_output=True, check=True
    )
    assert done.stdout.split() == [str(tmp_path / "venv" / "bin" / "pip")]


@pytest.mark.parametrize("page", ["README.md", "docs/how-to/write-a-plan-file.md"])
def test_the_plan_file_on_the_page_makes_the_release_on_the_page(page, here, capsys):
    text = blocks(page, "toml")[0].replace("people.parquet", "people.csv")
    pyarrow.csv.write_csv(people_of(text), here / "people.csv")
    (here / "census.toml").write_text(text)
    (commands,) = [each for each in blocks(page, "sh") if "tabulary release census.toml" in each]
    run_commands(commands)
    assert len(tb.Release.load(here / "census-2026")) == 2
    assert read_plan_file(here / "census.toml").plan.privacy == tb.PureDP(1)


def test_the_question_to_a_table_builder_in_the_readme_is_answered():
    (snippet,) = (each for each in blocks("README.md", "python") if "tb.connect" in each)
    running, names = SmallBuilder.start(), {"tb": tb}
    try:
        exec(snippet.replace("http://127.0.0.1:8000", running.url), names)
    finally:
        running.stop()
    assert names["people"].margin == ("sex", "employment")


def test_the_plan_file_for_a_comparison_gives_the_numbers_of_the_page(here, capsys):
    page = "docs/how-to/compare-mechanisms.md"
    (here / "census.toml").write_text(blocks(page, "toml")[0])
    run_commands(blocks(page, "sh")[0])
    said = " ".join(capsys.readouterr().out.split())
    # The numbers of the Python example on the page, which asks for the same tables.
    assert "● residual" in said
    assert "10.7 a cell; 'margins', the next, has 15.8" in said


def test_the_plan_file_for_choosing_epsilon_gives_the_numbers_of_the_page(here, capsys):
    page = "docs/how-to/choose-epsilon.md"
    (here / "census.toml").write_text(blocks(page, "toml")[0])
    assert run(["plan", "census.toml", "--target", "10% of cells of 1000"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    # The numbers of the Python example on the page, which asks for the same tables.
    assert "ε = 0.1231 is the smallest ε for ±100" in said
    assert "The table [sex age] decides" in said


def test_the_first_release_has_the_errors_that_the_tutorial_tells(here, capsys):
    page = "docs/tutorial/first-release.md"
    (here / "census.toml").write_text(blocks(page, "toml")[0])
    expected = read_plan_file(here / "census.toml").plan.expected_error()
    told = re.findall(r"^\| \[([\w ]+)\] \| (\d+) \| ([\d.]+) \| ([\d.]+) \|$", read(page), re.MULTILINE)
    assert told == [
        (" ".join(row.margin), str(row.cells), f"{row.standard_error:.1f}", f"{row.half_width:.1f}")
        for row in expected.rows
    ]


def test_the_options_of_shrunk_tables_on_the_page_make_such_a_plan(tmp_path):
    first, _, options = blocks("docs/how-to/write-a-plan-file.md", "toml")
    (tmp_path / "census.toml").write_text(overlaid(first, options))
    planned = read_plan_file(tmp_path / "census.toml")
    assert (planned.plan.mechanism, planned.plan.reconstruct) == ("residual", "shrink")
    assert planned.about == 50_000


def test_the_source_in_a_database_on_the_page_makes_a_plan_that_asks_nobody(tmp_path, monkeypatch):
    monkeypatch.delenv("CENSUS_PASSWORD", raising=False)
    first, data, _ = blocks("docs/how-to/write-a-plan-file.md", "toml")
    (tmp_path / "census.toml").write_text(overlaid(first, data))
    source = read_plan_file(tmp_path / "census.toml").source
    assert source.shown == "postgresql://db.example/census, table 'public.people'"
