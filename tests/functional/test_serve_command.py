"""`tabulary serve` and `tabulary token`, as a custodian types them."""

import http.client
import json
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
from contextlib import suppress

import pytest

import tabulary as tb
from tabulary.builder.configuration import read_service_file
from tabulary.builder.serving import PlaceFormatter
from tabulary.builder.state import State
from tabulary.cli.app import run
from tests.pages import blocks, lines_of, run_curl
from tests.services import Ask, ServerProcess, table_of
from tests.waiting import has_ended

pytestmark = pytest.mark.slow

PAGE = "docs/how-to/run-a-table-builder.md"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The service file of the documentation, beside some people. Its tables are not made non-negative: that is slow."""
    monkeypatch.chdir(tmp_path)
    people = "sex,age_in_years,job\n" + "F,3,0\nM,40,1\nF,70,0\nM,20,\n" * 50
    (tmp_path / "people.csv").write_text(people)
    text = blocks(PAGE, "toml")[0].replace(
        "[dataset.census.tables]",
        '[dataset.census.mechanism]\nreconstruct = "none"\n\n[dataset.census.tables]',
    )
    (tmp_path / "service.toml").write_text(text)
    return tmp_path


@pytest.fixture
def ready(folder, capsys):
    """The same, with all that a service needs."""
    assert run(["serve", "service.toml", "--init"]) == 0
    capsys.readouterr()
    return folder


def _entries(folder):
    with tb.Ledger.open(folder / "ledger.sqlite", read_only=True) as ledger:
        return ledger.account("census").entries()


def test_a_check_says_how_accurate_tables_will_be_and_opens_nothing(folder, capsys):
    (folder / "people.csv").unlink()
    assert run(["serve", "service.toml", "--check"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "census, version 2026: Census 2026" in said
    assert "6 tables of up to 2 attributes" in said
    assert "ρ = 0.125" in said
    assert "Expected accuracy, before any budget is spent" in said
    assert re.search(r"2 │ 2 │ [\d.]+( – [\d.]+)? │ [\d.]+( – [\d.]+)? │ \[\w+ \w+\]", said)
    assert sorted(path.name for path in folder.iterdir()) == ["service.toml"]


def test_what_a_service_needs_is_made_once_and_its_token_shown_once(folder, capsys):
    assert run(["serve", "service.toml", "--init"]) == 0
    first = capsys.readouterr().out
    (token,) = re.findall(r"tab_\w+", first)
    with State.open(folder / "state.sqlite") as state:
        assert state.tokens.find(token).role == "custodian"
    assert "safe place" in first
    key = (folder / "secret.key").read_text()
    assert key.strip() not in first
    assert run(["serve", "service.toml", "--init"]) == 0
    second = capsys.readouterr().out
    assert "tab_" not in second
    assert (folder / "secret.key").read_text() == key


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], ["--demo"]),
        (["absent.toml"], ["absent.toml"]),
        (["service.toml", "--demo"], ["a service file", "--demo"]),
        (["--demo", "--workers", "2"], ["--workers", "--demo"]),
        (["service.toml", "--init", "--check"], ["--check", "--init"]),
        (["service.toml", "--init", "--port", "1"], ["--port", "--init"]),
        (["service.toml", "--port", "70000"], ["port", "65535"]),
        (["service.toml", "--workers", "0"], ["workers"]),
        (["service.toml"], ["key file", "--init"]),
    ],
)
def test_a_wrong_command_line_is_refused_with_the_remedy(folder, capsys, arguments, words):
    before = sorted(folder.iterdir())
    assert run(["serve", *arguments]) == 2
    said = " ".join(capsys.readouterr().err.split())
    for word in words:
        assert word in said
    assert sorted(folder.iterdir()) == before


def test_an_address_that_is_taken_is_an_error_before_anything_is_spent(ready, capsys):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        assert run(["serve", "service.toml", "--port", str(port)]) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert f"port {port}" in said
    assert "nothing was spent" in said
    assert _entries(ready) == ()


def test_of_two_services_that_open_at_once_with_one_address_the_second_says_so(ready, monkeypatch, capsys):
    """Both have it before either listens: a socket that is merely bound keeps nobody out."""
    from tabulary.builder import opening

    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        other.bind(("127.0.0.1", 0))
        opened = opening.open_service

        def open_second(*given, **named):
            other.listen()
            return opened(*given, **named)

        monkeypatch.setattr(opening, "open_service", open_second)
        assert run(["serve", "service.toml", "--port", str(other.getsockname()[1])]) == 2
    assert "Nothing is served" in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize("missing", ["uvicorn", "fastapi"])
def test_without_the_packages_of_a_service_the_command_says_how_to_install_them(
    folder, monkeypatch, capsys, missing
):
    for name in list(sys.modules):
        if name.startswith("tabulary.builder") or name.partition(".")[0] == missing:
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.delattr(tb, "builder", raising=False)
    monkeypatch.setitem(sys.modules, missing, None)
    for arguments in (["serve", "service.toml"], ["serve", "--demo"], ["token", "list", "service.toml"]):
        assert run(arguments) == 2
        said = " ".join(capsys.readouterr().err.split())
        assert missing in said
        assert "pip install 'tabulary[serve]'" in said


def test_tokens_are_made_listed_and_taken_back(ready, capsys):
    (block,) = (text for text in blocks(PAGE, "sh") if "tabulary token add" in text)
    for line in block.splitlines():
        assert run(shlex.split(line)[1:]) == 0, line
    said = capsys.readouterr().out
    (text,) = re.findall(r"tab_\w+", said)
    assert "Ada Lovelace" in said
    with State.open(ready / "state.sqlite") as state:
        made = state.tokens.find(text)
        assert (made.role, made.account, (made.expires - made.created).days) == ("analyst", "ada", 90)
        assert run(["token", "revoke", "service.toml", made.id]) == 0
        assert state.tokens.find(text) is None
    capsys.readouterr()
    assert run(["token", "list", "service.toml"]) == 0
    listed = capsys.readouterr().out
    assert "revoked" in listed
    assert "until revoked" in listed  # the custodian's
    assert text not in listed
    assert run(["token", "revoke", "service.toml", "0" * 12]) == 2


def test_what_is_done_on_the_command_line_is_logged_and_copied_to_the_file_that_is_named(ready, capsys):
    assert run(["token", "add", "service.toml", "Carl", "--custodian"]) == 0
    (text,) = re.findall(r"tab_\w+", capsys.readouterr().out)
    identifier = text.split("_")[1]
    assert run(["token", "revoke", "service.toml", identifier]) == 0
    assert run(["token", "add", "service.toml", "Ada"]) == 2
    lines = [json.loads(line) for line in (ready / "custodian.jsonl").read_text().splitlines()]
    assert {line["actor"] for line in lines} == {"command line"}
    assert [line["action"] for line in lines[:3]] == ["ledger made", "key made", "account opened"]
    assert [(line["action"], line["object"]) for line in lines[4:]] == [
        ("token made", f"{identifier}, Carl, custodian"),
        ("token revoked", f"{identifier}, Carl, custodian"),
    ]
    assert text not in (ready / "custodian.jsonl").read_text()


def test_workers_that_start_on_what_somebody_changed_warn_of_it_and_serve_the_same(ready):
    asked = table_of("census", "sex", "age")
    with ServerProcess(ready / "service.toml", workers=1) as server:
        first = server.ask(asked)
        assert "seal" not in server.log()
    (place,) = (ready / "artifacts").glob("plan-*")
    (place / "plan.json").write_text("{}")
    with ServerProcess(ready / "service.toml", workers=2) as server:
        assert server.ask(asked).body == first.body
        assert server.log().count("does not fit its seal") == 1
        assert str(place) in server.log()
    assert len(_entries(ready)) == 1
    lines = [json.loads(line) for line in (ready / "custodian.jsonl").read_text().splitlines()]
    assert [line["action"] for line in lines[4:]] == [
        "version opened",
        "service started",
        "artifact made again",
        "service started",
    ]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--account", "nobody"], "no account 'nobody'"),
        (["--account", "census"], "account of a dataset"),
        ([], "needs the account"),
        (["--custodian", "--account", "census"], "account of a dataset"),
        (["--custodian", "--days", "0"], "days"),
    ],
)
def test_a_token_that_could_not_be_used_is_not_made(ready, capsys, options, words):
    assert run(["token", "add", "service.toml", "Ada", *options]) == 2
    assert words in " ".join(capsys.readouterr().err.split())
    with State.open(ready / "state.sqlite") as state:
        assert len(state.tokens.list()) == 1


@pytest.mark.parametrize("command", [["serve"], ["token", "add"], ["token", "list"], ["token", "revoke"]])
def test_every_command_has_help_with_an_example(command, capsys):
    assert run([*command, "--help"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "Example" in said
    assert f"tabulary {' '.join(command)}" in said


def test_a_log_line_has_the_kind_and_place_of_an_error_and_never_its_words():
    import logging

    try:
        raise ValueError("7391846 people")
    except ValueError:
        record = logging.LogRecord("x", logging.ERROR, "x", 1, "It failed", (), sys.exc_info())
    said = PlaceFormatter("%(message)s").format(record)
    assert "ValueError at test_serve_command.py:" in said
    assert "7391846" not in said


def test_a_service_with_workers_answers_keeps_quiet_and_stops_when_a_worker_cannot_open_it(ready):
    secret = f"tab_{'0' * 12}_{'f' * 64}"
    with ServerProcess(ready / "service.toml", workers=2) as server:
        # The address is printed once, and only when every worker serves.
        assert server.log().count(f"http://127.0.0.1:{server.port}") == 1
        first, second = server.workers()
        bodies = set()
        for worker in (first, second):
            with server.only(worker):
                bodies.add(server.ask(table_of("census", "sex", "age")).body)
        assert len(bodies) == 1
        assert len(_entries(ready)) == 1
        refused = server.ask(Ask("/api/custodian/accounts", token=secret))
        assert refused.status == 401
        assert "server" not in {name.lower() for name in refused.headers}
        # The next worker finds no key: nobody goes on without it, and nobody tries for ever.
        (ready / "secret.key").rename(ready / "safe")
        first.kill()
        assert server.exit_code() == 2
        said = " ".join(server.log().split())
    assert "no key file" in said
    assert "A worker died" in said
    assert "a worker could not open the service" in said
    for word in (secret, "GET", "/api/custodian", "Traceback"):
        assert word not in said
    assert has_ended(second)
    assert len(_entries(ready)) == 1


def test_what_the_page_asks_of_its_service_is_answered(ready):
    *_, serve = (line for line in lines_of(PAGE, "tabulary") if line.startswith("tabulary serve"))
    table, log = lines_of(PAGE, "curl")
    assert serve == "tabulary serve service.toml"
    with State.open(ready / "state.sqlite") as state:
        _, token = state.tokens.add("Carl", "custodian")
    with ServerProcess(ready / "service.toml", workers=1) as server:
        said, logged = (
            run_curl(line.replace(":8000/", f":{server.port}/"), ready, TOKEN=token) for line in (table, log)
        )
    assert said.startswith("sex,age,count,")
    assert len(said.splitlines()) == 1 + 6
    assert json.loads(logged.splitlines()[-1])["action"] == "service started"
    assert logged == (ready / "custodian.jsonl").read_text()


def _demonstration(temporary):
    return subprocess.Popen(
        [sys.executable, "-m", "tabulary", "serve", "--demo", "--port", "0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, "TMPDIR": str(temporary)},
    )


def test_a_demonstration_prints_an_address_answers_and_leaves_nothing_behind(tmp_path):
    process = _demonstration(tmp_path)
    try:
        said = process.stdout.readline() + process.stdout.readline()
        (address,) = set(re.findall(r"127\.0\.0\.1:\d+", said))
        (path,) = re.findall(r"curl 'http://[^/]+(/[^']+)'", said)
        connection = http.client.HTTPConnection(address, timeout=60)
        connection.request("GET", path)
        response = connection.getresponse()
        assert response.status == 200
        assert response.read().startswith(b"sex,employment,count")
        connection.close()
        assert list(tmp_path.iterdir())
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        process.stdout.close()
        process.wait()
    assert not list(tmp_path.iterdir())


def test_the_service_file_of_the_page_is_complete_and_its_other_parts_go_with_it(folder, monkeypatch):
    whole, behind_a_proxy, _, databases = blocks(PAGE, "toml")
    assert read_service_file(folder / "service.toml").datasets["census"].allowed_tables.order == 2
    changed = whole[whole.index("[key]") :]
    (folder / "shared.toml").write_text(f"{behind_a_proxy}\n{databases}\n{changed}")
    (folder / "database.password").write_text("open-sesame")
    (folder / "database.password").chmod(0o600)
    monkeypatch.setenv("TABULARY_DATABASE", "postgresql://me:open-sesame@db/name")
    shared = read_service_file(folder / "shared.toml")
    assert shared.listening.proxy
    assert shared.listening.hosts.allow("tables.example")
    assert shared.state.where() == "postgresql://me:open-sesame@db/name"
    assert shared.ledger.where() == "postgresql://tabulary:open-sesame@db.example/tabulary"
