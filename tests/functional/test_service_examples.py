"""The configurations in `examples/` run as their pages say."""

import asyncio
import http.client
import json
import os
import re
import shutil
import threading
from pathlib import Path

import pytest

import tabulary as tb
from tabulary.cli.app import run
from tests.databases import PASSWORD
from tests.services import Ask, ServerProcess, table_of
from tests.waiting import has_ended, wait_until

pytestmark = pytest.mark.slow

EXAMPLES = Path(__file__).parents[2] / "examples"


def _commands(folder):
    """What the page of an example types, line by line."""
    page = (folder / "README.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"^```\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    return [re.sub(r"\s+#.*", "", line) for line in block.splitlines()]


def _words(command):
    words = [word.strip("\"'") for word in re.findall(r"\"[^\"]*\"|'[^']*'|\S+", command)]
    return [os.path.expandvars(word) for word in words]


def test_the_release_of_the_example_is_served_as_its_page_says(tmp_path, monkeypatch):
    folder = tmp_path / "release"
    shutil.copytree(EXAMPLES / "release", folder)
    monkeypatch.chdir(folder)
    make, verify, serve, ask = _commands(folder)
    assert run(_words(make)[1:]) == 0
    assert run(_words(verify)[1:]) == 0
    assert serve == "tabulary serve demo/release"
    path = re.sub(r"^curl 'http://127.0.0.1:8000|'$", "", ask)
    with ServerProcess(folder / "demo" / "release", workers=1) as server:
        told = server.ask(Ask(path))
    assert told.body.startswith(b"sex,employment,count,")
    assert run(["serve", "service.toml", "--check"]) == 0
    assert run(["serve", "service.toml", "--init"]) == 0
    with ServerProcess(folder / "service.toml", workers=1) as server:
        asked = Ask(path.replace("/datasets/release/", "/datasets/people/"))
        assert server.ask(asked).body == told.body


def _prepare(name, tmp_path, monkeypatch, rows):
    """A copy of an example, after all that its page says before it is served."""
    folder = tmp_path / name
    shutil.copytree(EXAMPLES / name, folder)
    monkeypatch.chdir(folder)
    commands = _commands(folder)
    assert commands.count("tabulary serve service.toml") == 1
    for command in commands[: commands.index("tabulary serve service.toml")]:
        if command.startswith("tabulary "):
            # As many people as a test needs.
            assert run(_words(re.sub(r"--rows \d+", f"--rows {rows}", command))[1:]) == 0, command
    return folder


class Proxy:
    """A reverse proxy on a free port of this machine: it says, in the headers that nginx.conf sets, who has called.

    One request a connection. Used as a context.
    """

    def __init__(self, port, headers):
        self._behind, self._headers = port, headers
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)

    def __enter__(self):
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._listen(), self._loop).result()
        return self

    def __exit__(self, *_):
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.run_until_complete(self._close())
        self._loop.close()

    def get(self, path, headers=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.request("GET", path, headers=headers or {})
        response = connection.getresponse()
        found = response.status, response.read(), {n.lower(): v for n, v in response.getheaders()}
        connection.close()
        return found

    async def _listen(self):
        self._server = await asyncio.start_server(self._pass_on, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]

    async def _close(self):
        self._server.close()
        await self._server.wait_closed()

    async def _pass_on(self, reader, writer):
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        ours = {name.lower() for name in self._headers} | {"connection"}
        kept = [line for line in head[1:-2] if line.partition(":")[0].lower() not in ours]
        said = [f"{name}: {value}" for name, value in {**self._headers, "Connection": "close"}.items()]
        behind_reader, behind_writer = await asyncio.open_connection("127.0.0.1", self._behind)
        behind_writer.write("\r\n".join([head[0], *kept, *said, "", ""]).encode("latin-1"))
        writer.write(await behind_reader.read(-1))
        await writer.drain()
        for each in (behind_writer, writer):
            each.close()


def test_one_machine_serves_whole_tables_that_agree(tmp_path, monkeypatch, capsys):
    folder = _prepare("one-machine", tmp_path, monkeypatch, 2_000)
    (path,) = re.findall(r"curl 'http://127.0.0.1:8000(.*)'", "\n".join(_commands(folder)))
    with ServerProcess(folder / "service.toml", workers=1) as server:
        served = server.ask(Ask(path))
        assert served.status == 200
        assert served.body.startswith(b"region,sex,count")
        tables = {}
        for by in [("region", "sex"), ("sex", "birth_country"), ("sex",)]:
            told = json.loads(server.ask(table_of("census", *by)).body)
            assert told["reconstructed"]
            assert min(told["count"]) >= 0
            sexes = [0.0, 0.0]
            axis = by.index("sex")
            for i, count in enumerate(told["count"]):
                sexes[i % 2 if axis == len(by) - 1 else i // (len(told["count"]) // 2)] += count
            tables[by] = sexes
        assert server.ask(table_of("census", "region", "employment")).status == 403
    first, *others = tables.values()
    for other in others:
        assert other == pytest.approx(first, rel=1e-9)
    with tb.Ledger.open(folder / "ledger.sqlite", read_only=True) as ledger:
        assert str(ledger.account("census").remaining()) == "ρ = 0.375"


def _for(caller, server):
    return Proxy(server.port, {"X-Forwarded-For": caller, "X-Forwarded-Proto": "https"})


def test_several_workers_on_postgresql_behind_a_proxy_give_one_answer_and_pay_once(
    tmp_path, monkeypatch, capsys, postgres_database
):
    # The password stands neither in a file nor on a command line.
    monkeypatch.setenv("TABULARY_DATABASE", postgres_database.replace(f":{PASSWORD}@", "@"))
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    folder = _prepare("several-workers", tmp_path, monkeypatch, 2_000)
    (token,) = re.findall(r"tab_\w+", capsys.readouterr().out.partition("Ada Lovelace")[2])
    analyst = {"Authorization": f"Bearer {token}"}
    question = table_of("census", "region", "sex", "education").path
    server = ServerProcess(folder / "service.toml", workers=4)
    with server, _for("203.0.113.7", server) as proxy, _for("203.0.113.8", server) as other:
        assert len(server.workers()) == 4
        answers = set()
        for worker in server.workers():
            with server.only(worker):
                status, body, headers = proxy.get(question)
                assert status == 200
                answers.add((body, headers["etag"]))
        assert len(answers) == 1
        # The proxy is believed: the caller came over HTTPS.
        assert "strict-transport-security" in headers
        # A new question is paid for by its asker once, whoever answers it.
        panel = table_of("panel", "sex", "employment").path
        assert proxy.get(panel)[0] == 401
        paid = {proxy.get(panel, analyst)[:2] for _ in range(4)}
        assert {status for status, _ in paid} == {200}
        assert len(paid) == 1
        # Callers are told apart by the address that the proxy saw, and one who asks too often is slowed down alone.
        with server.only(server.workers()[0]):
            eager = {proxy.get("/api/datasets")[0] for _ in range(200)}
            assert other.get("/api/datasets")[0] == 200
        assert eager == {200, 429}
        # Workers do not outlive their supervisor: they would hold the address, and nobody could stop them.
        workers = server.workers()
        workers[0].parent().kill()
        wait_until(lambda: all(map(has_ended, workers)), "workers to end")
    with tb.Ledger.open(postgres_database, read_only=True) as ledger:
        assert [len(ledger.account(name).entries()) for name in ("census", "panel", "ada")] == [1, 1, 1]
    assert PASSWORD not in server.log()
