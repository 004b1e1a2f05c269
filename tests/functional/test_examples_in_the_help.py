"""Every example in the help of the commands does what it says."""

import contextlib
import shlex
from pathlib import Path

import pyarrow.csv
import pytest
import typer

from docs.command_pages import every_command, examples
from tabulary.cli.app import run
from tests.functional.test_examples_in_the_docs import SERVICE, not_run, people_of, quietly, understood
from tests.pages import blocks

ATTACK = "docs/how-to/attack-suppressed-tables.md"
PLAN = """
[data]
source = "records.csv"
[domain.sex]
levels = ["F", "M"]
[domain.age]
bins = [0, 15, 65]
[domain.job]
levels = ["none", "paid"]
[privacy]
epsilon = 1
[tables]
margins = "[sex][sex age][sex age job]"
[mechanism]
reconstruct = "none"
"""


@pytest.mark.parametrize(
    ("name", "command"), every_command(), ids=lambda each: each if isinstance(each, str) else ""
)
def test_the_examples_in_the_help_run(name, command, tmp_path, capsys):
    for number, line in enumerate(examples(command)):
        words = shlex.split(line)
        understood(words)
        if not not_run(" ".join(words)):
            folder = tmp_path / str(number)
            folder.mkdir()
            with contextlib.chdir(folder):
                prepare(words)
                assert run(words[1:]) == 0, f"{line}: {capsys.readouterr().err}"
    assert examples(command) or hasattr(command, "commands"), f"{name} has no example in its help"


def prepare(words):
    """Put what an example takes for granted into this folder."""
    made = words[words.index("-o") + 1] if "-o" in words else None
    for word in dict.fromkeys(words):
        if word in FILES and word != made:
            FILES[word](word, words)


def _plan(name, words):
    # Rows cannot be made of tables that may be negative, and tests need those.
    text = PLAN.replace('reconstruct = "none"', 'reconstruct = "least-squares"') if "synth" in words else PLAN
    Path(name).write_text(text)
    pyarrow.csv.write_csv(people_of(text), "records.csv")


def _release(name, words):
    _plan("prepared.toml", words)
    paid = ("--ledger", "ledger.sqlite", "--account", "census", "--witness", "heads.txt")
    quietly("release", "prepared.toml", "-o", name, *(paid if "--against" in words else ()))


def _signed_release(name, words):
    _plan("prepared.toml", words)
    quietly("key", "create", "office.pem", "--name", "Statistics Office")
    quietly("release", "prepared.toml", "-o", name, "--sign", "office.pem")


def _key(name, words):
    if "create" not in words and not Path("office.pem").exists():
        quietly("key", "create", "office.pem", "--name", "Statistics Office")


def _ledger(name, words):
    if "create" not in words:
        quietly("ledger", "create", name, "--account", "census", "--epsilon", "4")


def _service(name, words):
    Path(name).write_text(blocks(SERVICE, "toml")[0])
    if "token" in words:
        quietly("serve", name, "--init")
        quietly("ledger", "create", "ledger.sqlite", "--account", "ada", "--rho", "1/100")


def _genes(name, words):
    quietly("suppress", "simulatable", "--dataset", "hair-eye-gene", "-o", name)


def _ages(name, words):
    Path("ages.csv").write_text(
        "age,sex,count\n0-14,F,3\n0-14,M,41\n15-17,F,38\n15-17,M,52\n18+,F,66\n18+,M,71\n"
    )
    quietly("suppress", "classical", "ages.csv", "--by", "age", "--by", "sex", "--threshold", "5", "-o", name)


def _rows(head, rows):
    return lambda name, words: Path(name).write_text("\n".join([head, *rows.split(), ""]))


FILES = {
    "census.toml": _plan,
    "census-2026": lambda name, words: (_signed_release if "--key" in words else _release)(name, words),
    "census-2027": _release,
    "office.pem": _key,
    "office.pem.pub": _key,
    "ledger.sqlite": _ledger,
    "service.toml": _service,
    "genes": _genes,
    "table.csv": lambda name, words: Path(name).write_text(blocks(ATTACK, "csv")[0]),
    "cells.csv": _rows(
        "eye,hair,people,count", "blue,fair,200,61 blue,dark,300,88 brown,fair,150,43 brown,dark,400,129"
    ),
    "people.csv": _rows(
        "age,region,ill,risk", "1,north,0,0.3 2,south,1,0.3 3,north,0,0.3 4,south,1,0.3 " * 50
    ),
    "firms.csv": _rows(
        "branch,region,turnover",
        "mining,n,900 mining,n,5 mining,n,6 mining,s,500 mining,s,600 trade,n,500 trade,n,700 trade,s,600 trade,s,500",
    ),
    "census-2025": _ages,
    "census-2026.csv": _rows("age,sex,count", "0-17,F,41 0-17,M,[c] 18+,F,66 18+,M,[c]"),
    "ages.toml": lambda name, words: Path(name).write_text('[age]\n"0-17" = ["0-14", "15-17"]\n'),
}


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ("tabulary nonsense --foo", "No such command 'nonsense'"),
        ("tabulary", "^Usage: tabulary"),
        ("tabulary ledger open ledger.sqlite", "No such command 'open'"),
        ("tabulary plan census.toml --comparison", "No such option: --comparison"),
        ("tabulary release census.toml", "Missing parameter: folder"),
        ("tabulary attack suppression table.csv --treshold 5", "No such option: --treshold"),
    ],
)
def test_a_command_line_that_cannot_be_is_not_understood(words, reason):
    with pytest.raises(typer.TyperException, match=reason):
        understood(words.split())
