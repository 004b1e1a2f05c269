"""`tabulary attack`: what an attack on a published table prints."""

import re

import pytest
import typer
from typer.testing import CliRunner

from tabulary.cli.attack import attack
from tabulary.errors import InvalidPrivacy
from tests.entropy import SeededEntropy


@pytest.fixture(autouse=True)
def _replayable(monkeypatch):
    monkeypatch.setattr("tabulary.attacks.differencing.SystemEntropy", lambda: SeededEntropy(11))


def said(*arguments):
    ran = CliRunner().invoke(attack, list(arguments), catch_exceptions=False)
    return ran.exit_code, " ".join(ran.output.split())


def test_the_differencing_attack_finds_bob_in_cell_keys_and_not_in_private_answers():
    code, text = said("differencing", "--trials", "4000", "--epsilon", "1/2")
    assert code == 0
    assert "cell keys" in text
    assert "differential privacy" in text
    found = re.search(
        r"answers differ in (\d+)% of the cases in which Bob earns more than s, and in (\d+) of", text
    )
    assert int(found[1]) > 70
    assert int(found[2]) == 0
    gained = re.search(
        r"says yes (-?\d+)% more often when it is true; no attacker can gain more than (\d+)%", text
    )
    # tanh(1/4) is 24.5 %, rounded up; the best attacker gets about half of it.
    assert int(gained[1]) < int(gained[2]) == 25


def test_the_averaging_attack_cancels_fresh_perturbations_alone():
    code, text = said("averaging", "--answers", "150", "--trials", "400")
    assert code == 0
    assert "right after 150 answers" in text
    rates = [int(rate) for rate in re.findall(r"[█░]+ (\d+)%", text)]
    (fresh_once, fresh), (keys_once, keys), (_, private) = zip(rates[::2], rates[1::2], strict=True)
    assert fresh_once < 60 < fresh
    assert keys_once == keys
    assert private < 15


def test_a_budget_that_cannot_be_is_refused():
    with pytest.raises(InvalidPrivacy, match="epsilon must be positive"):
        said("differencing", "--epsilon", "0")


def test_every_attack_has_help_with_an_example():
    commands = typer.main.get_command(attack).commands
    assert {"differencing", "averaging"} <= set(commands)
    for name in commands:
        code, text = said(name, "--help")
        assert code == 0
        assert f"tabulary attack {name}" in text
