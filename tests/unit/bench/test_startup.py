import json
import sys

import pytest

from bench import startup


def test_a_run_prints_a_line_for_every_target(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["startup", "--times", "1"])
    startup.main()
    lines = [json.loads(text) for text in capsys.readouterr().out.splitlines()]
    assert [line["bench"] for line in lines] == [f"startup: {name}" for name in startup.TARGETS]
    assert all(line["ours"] > line["nothing"] > 0 for line in lines)
    assert all(line["met"] == (line["ratio"] >= line["target"]) for line in lines)


def test_a_program_that_fails_is_not_timed():
    with pytest.raises(RuntimeError, match="fails with the status"):
        startup.start("raise SystemExit(3)")
