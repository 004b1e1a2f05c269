import json
import sys
from math import prod

import pytest

from bench import serve
from tabulary.builder.api.hypotheses import MOST_CELLS
from tabulary.builder.configuration import read_service_file


def test_there_is_a_table_of_a_thousand_cells_and_every_table_has_at_most_three_attributes():
    assert prod(serve.ATTRIBUTES[a] for a in serve.THOUSAND) == 1000
    assert len(serve.tables()) == 12 + 66 + 220
    assert {len(margin) for margin in serve.random_tables(200)} == {1, 2, 3}
    assert all(len(set(margin)) == len(margin) for margin in serve.random_tables(200))
    assert serve.path_of(("a01", "a00")) == "/api/datasets/people/tables?by=a01&by=a00"


def test_the_service_file_declares_the_attributes_that_are_asked_for(tmp_path):
    file = read_service_file(serve.configure(tmp_path, 1_000))
    domain = file.datasets["people"].allowed_tables.domain
    assert dict(zip(domain.attributes, domain.shape, strict=True)) == serve.ATTRIBUTES
    assert file.datasets["people"].allowed_tables.order == serve.ORDER


def test_hostile_tests_are_slow_ones_that_the_service_takes():
    for text in serve.slow_tests():
        asked = json.loads(text)
        assert prod(serve.ATTRIBUTES[a] for a in asked["by"]) <= MOST_CELLS
        assert len(asked["by"]) + len(asked["where"]) <= serve.ORDER
    assert len(set(serve.slow_tests())) > serve.HOSTILE


@pytest.mark.audit
def test_a_quick_run_prints_a_line_for_every_promise(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["serve", "--quick"])
    serve.main()
    printed = [json.loads(text) for text in capsys.readouterr().out.splitlines()]
    lines = [line for line in printed if line["bench"] != "serve: start"]
    assert len(printed) == len(lines) + 2
    assert [line["target"] for line in lines] == [1, 1, 1, 1, 0.3333, 0.3333, 0.1, 1]
    assert all(line["met"] == (line["ratio"] >= line["target"]) for line in lines)
    assert not any(line.get("failed") for line in lines)
