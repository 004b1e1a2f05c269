"""`tabulary ledger` on a PostgreSQL database."""

import pytest

from tabulary.cli.app import run
from tests.databases import PASSWORD


def test_a_ledger_in_postgresql_is_created_and_shown_like_a_file(database, capsys):
    assert run(["ledger", "show", database]) == 2
    assert run(["ledger", "create", database, "--account", "census", "--epsilon", "1/2"]) == 0
    assert run(["ledger", "create", database, "--account", "ann", "--rho", "0.1"]) == 0
    assert run(["ledger", "create", database, "--account", "ann", "--rho", "0.2"]) == 2
    capsys.readouterr()
    assert run(["ledger", "show", database]) == 0
    shown = capsys.readouterr().out
    assert all(word in shown for word in ("census", "ε = 0.5", "ann", "ρ = 0.1"))
    assert run(["ledger", "show", database, "--account", "ann"]) == 0


def test_a_password_is_taken_from_the_environment_and_never_printed(
    postgres_database, postgres_server, capsys, monkeypatch
):
    without = postgres_database.replace(f":{PASSWORD}@", "@")
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    assert run(["ledger", "create", without, "--account", "census", "--epsilon", "1"]) == 0
    assert run(["ledger", "show", without]) == 0
    assert run(["ledger", "show", postgres_server.address("nowhere")]) == 2
    said = capsys.readouterr()
    assert 'database "nowhere" does not exist' in " ".join(said.err.split())
    assert PASSWORD not in said.out + said.err


@pytest.mark.parametrize("address", [f"mysql://ann:{PASSWORD}@db/x", f"postgresql://ann:a@{PASSWORD}@db/x"])
def test_an_address_that_cannot_be_read_is_not_repeated(address, capsys):
    assert run(["ledger", "show", address]) == 2
    said = capsys.readouterr()
    assert "Write postgresql://user:password@host:port/database" in " ".join(said.err.split())
    assert PASSWORD not in said.out + said.err
