"""The words of a promise, and the number of the guesser in them, are the same wherever they are read."""

import json
import math
import re
from html.parser import HTMLParser

import pytest

import tabulary as tb
from tabulary.builder.app import create_app
from tabulary.builder.configuration import read_service_file
from tabulary.builder.forecast import forecast
from tabulary.builder.opening import initialise, open_service
from tabulary.cli.app import run
from tabulary.release.promise import promise_of, promise_of_budget
from tests.builders import Caller
from tests.service_files import places

PEOPLE = "sex,age,record_key\n" + "".join(f"{'FM'[i % 2]},{i % 3},{i * 37 % 256}\n" for i in range(600))
DOMAIN = tb.Domain({"sex": ["F", "M"], "age": ["0", "1", "2"]})
GUESSER = r"This person's guess is right at most ([\d.]+) % of the time\."

CENSUS = """
[dataset.census]
version = "2026"
source = "people.csv"
[dataset.census.privacy]
rho = "1/2"
[dataset.census.budget]
rho = "1/2"
[dataset.census.mechanism]
reconstruct = "none"
"""
PANEL = """
[dataset.panel]
version = "1"
source = "people.csv"
method = "interactive"
[dataset.panel.privacy]
rho = "1/20"
neighbours = "{neighbours}"
"""
BUDGET = """
[dataset.panel.budget]
rho = "1/2"
"""
OLD = """
[dataset.old]
version = "1"
source = "people.csv"
method = "cell-key"
[dataset.old.keys]
modulus = 256
[dataset.old.ptable]
file = "ptable.csv"
[dataset.old.sparsity]
"""


def tables_of(name):
    return f"""
[dataset.{name}.tables]
order = 2
[dataset.{name}.domain.sex]
levels = ["F", "M"]
[dataset.{name}.domain.age]
levels = [0, 1, 2]
"""


class Words(HTMLParser):
    """The text of a page."""

    def __init__(self, page):
        super().__init__()
        self.found = []
        self.feed(page)

    def handle_data(self, data):
        self.found.append(data)


def words(page):
    # A sentence may be cut by marks such as <sup>, never by spaces that were not there.
    return " ".join("".join(Words(page).found).split())


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "people.csv").write_text(PEOPLE)
    return tmp_path


def write_service(folder, *parts):
    (folder / "service.toml").write_text(places() + "".join(parts))
    return read_service_file(folder / "service.toml")


def checked(capsys):
    assert run(["serve", "service.toml", "--check"]) == 0
    # Points and line breaks are the terminal's.
    return " ".join(capsys.readouterr().out.replace("•", " ").split())


def test_what_a_guesser_gains_is_one_number_from_the_toolbox_to_the_pages(folder, capsys):
    promise = tb.ZCDP("1/2")
    percent = f"{math.ceil(1000 * tb.toolbox.guessing(promise)) / 10:.1f}"
    assert percent == "74.0"
    plan = tb.plan(DOMAIN, "[sex age]", privacy=promise)
    sentence = promise_of(plan).meaning[-1]
    assert re.search(GUESSER, sentence)[1] == percent

    records = tb.Records.from_file(folder / "people.csv", DOMAIN)
    with records:
        tb.release(records, plan).save(folder / "out")
    assert sentence in json.loads((folder / "out" / "manifest.json").read_text())["promise"]["meaning"]
    assert sentence in words((folder / "out" / "report.html").read_text())

    panel = PANEL.format(neighbours="add-remove") + BUDGET
    configured = write_service(folder, CENSUS, tables_of("census"), panel, tables_of("panel"))
    assert checked(capsys).count(sentence) == 2
    initialise(configured)
    service = open_service(configured)
    ask = Caller(create_app(service))
    for name in ("census", "panel"):
        assert sentence in ask.get(f"/api/datasets/{name}").json()["promise"]["meaning"]
        assert sentence in words(ask.get(f"/datasets/{name}").text)
        for told in (ask.get(f"/datasets/{name}").text, ask.get(f"/datasets/{name}/table?rows=sex").text):
            assert re.findall(GUESSER, words(told)) == [percent]
    service.close()


@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
def test_a_check_shows_word_for_word_what_the_public_will_read(folder, capsys, neighbours):
    panel = PANEL.format(neighbours=neighbours) + BUDGET
    configured = write_service(
        folder, panel, tables_of("panel"), CENSUS, tables_of("census"), OLD, tables_of("old")
    )
    said = checked(capsys)
    assert said.count("What the public will read:") == 3
    for declared in configured.datasets.values():
        promised = forecast(declared).promise
        for sentence in (promised.statement, *promised.meaning, promised.protected, *promised.not_promised):
            assert sentence in said
    assert "This table is NOT differentially private." in said
    assert "That a refusal tells nothing." in said
    assert sorted(path.name for path in folder.iterdir()) == ["people.csv", "service.toml"]


@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
def test_what_a_check_shows_is_what_the_service_then_says(folder, neighbours):
    panel = PANEL.format(neighbours=neighbours) + BUDGET
    census = CENSUS.replace('rho = "1/2"\n', f'rho = "1/2"\nneighbours = "{neighbours}"\n', 1)
    configured = write_service(folder, panel, tables_of("panel"), census, tables_of("census"))
    expected = {name: forecast(declared).promise for name, declared in configured.datasets.items()}
    initialise(configured)
    service = open_service(configured)
    assert {name: dataset.answers.promise for name, dataset in service.datasets.items()} == expected
    service.close()
    budget = promise_of_budget(tb.ZCDP("1/2"), tb.Neighbours(neighbours))
    assert (expected["panel"].statement, expected["panel"].meaning) == (budget.statement, budget.meaning)


def test_a_check_of_a_budget_that_only_the_ledger_knows_says_where_the_words_would_come_from(folder, capsys):
    write_service(folder, PANEL.format(neighbours="replace"), tables_of("panel"))
    said = checked(capsys)
    assert "[dataset.panel.budget]" in said
    assert "What the public will read:" not in said
    # The number of records is no table of this dataset: it counts as public.
    assert "3 tables of up to 2 attributes" in said
    assert "the total" not in said
