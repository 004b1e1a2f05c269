"""`tabulary serve` as real processes on this machine: started, asked by many at once, killed and stopped."""

import http.client
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Self
from urllib.parse import urlencode

import psutil

from tests.waiting import PATIENCE, wait_until


@dataclass(frozen=True)
class Ask:
    """One request: a path, and the token of whoever asks."""

    path: str
    token: str | None = field(default=None, repr=False)


def table_of(dataset: str, *by: str, token: str | None = None, **where: str) -> Ask:
    """Return the request for a table, its filters as keywords."""
    query = [("by", a) for a in by] + [("where", f"{a}:{level}") for a, level in where.items()]
    return Ask(f"/api/datasets/{dataset}/tables?{urlencode(query)}", token)


@dataclass(frozen=True)
class Reply:
    """What came back. Status 0: the connection broke, or nobody listened, before there was a whole answer."""

    status: int
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)


class Connection:
    """One connection of one asker, opened again when it broke."""

    def __init__(self, port: int, *, timeout: float = PATIENCE) -> None:
        self._http = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)

    def ask(self, asked: Ask) -> Reply:
        """Return what comes back."""
        headers = {"Authorization": f"Bearer {asked.token}"} if asked.token else {}
        try:
            self._http.request("GET", asked.path, headers=headers)
            response = self._http.getresponse()
            return Reply(response.status, response.read(), dict(response.getheaders()))
        except (OSError, http.client.HTTPException):
            self.close()
            return Reply(0)

    def close(self) -> None:
        """Let the connection go."""
        self._http.close()


class Askers:
    """Threads that ask the same questions again and again, each from another start, and keep every reply.

    Used as a context: they ask until it ends. With two ports, every second one asks at the other.
    """

    def __init__(self, ports: Sequence[int], questions: Sequence[Ask], *, askers: int = 4) -> None:
        self.heard: list[tuple[Ask, Reply]] = []
        self._questions = questions
        self._ending = threading.Event()
        self._threads = [
            threading.Thread(
                target=self._keep_asking, args=(ports[i % len(ports)], i * len(questions) // askers)
            )
            for i in range(askers)
        ]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ending.set()
        for thread in self._threads:
            thread.join()

    def hear(self, more: int, status: int = 200) -> None:
        """Wait until there are so many more replies of this status than there were when this was called."""
        before = len(self.heard)
        wait_until(
            lambda: sum(reply.status == status for _, reply in self.heard[before:]) >= more,
            f"{more} replies with status {status}",
        )

    def _keep_asking(self, port: int, start: int) -> None:
        connection = Connection(port)
        for number in count(start):
            if self._ending.is_set():
                break
            asked = self._questions[number % len(self._questions)]
            reply = connection.ask(asked)
            self.heard.append((asked, reply))
            # Not as fast as the machine can: whatever is being repaired needs it too.
            self._ending.wait(0.01)
        connection.close()


def statuses(heard: Iterable[tuple[Ask, Reply]]) -> set[int]:
    """Return the statuses of some replies."""
    return {reply.status for _, reply in heard}


def answers(heard: Iterable[tuple[Ask, Reply]]) -> dict[str, bytes]:
    """Return the answer to every path that got one; fail if one got two, whoever asked."""
    found: dict[str, bytes] = {}
    for asked, reply in heard:
        if reply.status == 200:
            assert found.setdefault(asked.path, reply.body) == reply.body, asked
    return found


class ServerProcess:
    """A `tabulary serve` on a free port, with its workers. Used as a context: it is stopped at the end.

    What it logs goes through a pipe, so that a limit on the size of files does not touch it.
    """

    def __init__(
        self,
        file: Path,
        *,
        workers: int = 2,
        environment: Mapping[str, str] | None = None,
        program: Sequence[str] = ("-m", "tabulary"),
    ) -> None:
        self.file, self.count, self.port = file, workers, 0
        self._program = program
        # No line of what it says is folded.
        self._environment = {**os.environ, "COLUMNS": "1000", **(environment or {})}
        self._process: psutil.Popen | None = None
        self._log: list[str] = []
        self._reading: threading.Thread | None = None

    def __enter__(self) -> Self:
        self.launch()
        try:
            self._wait_for_address()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def launch(self) -> None:
        """Start it, and wait for nothing."""
        command = ["serve", str(self.file), "--port", "0", "--workers", str(self.count)]
        self._process = psutil.Popen(
            [sys.executable, *self._program, *command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            env=self._environment,
            cwd=self.file.parent,
        )
        self._reading = threading.Thread(target=self._log.extend, args=(self._process.stdout,))
        self._reading.start()

    def wait_until_served(self) -> None:
        """Wait until as many workers serve as there should be, each of them by itself."""
        served: set[psutil.Process] = set()

        def all_serve() -> bool:
            present = set(self.workers())
            served.update(worker for worker in present - served if self._serves(worker))
            return len(served & present) == self.count

        wait_until(all_serve, f"{self.count} workers that serve")

    def exit_code(self) -> int:
        """Wait until it ends by itself, and return its exit code."""
        try:
            return int(self._running().wait(PATIENCE))
        finally:
            self.stop()

    def terminate(self) -> None:
        """Ask it to end, and wait for nothing."""
        self._running().terminate()

    def stop(self) -> None:
        """Ask it to end, and make sure that nothing of it is left."""
        if self._process is None or self._reading is None:
            return
        family = [self._process, *self._children()]
        with suppress(psutil.Error):
            self.terminate()
            self._process.wait(20)
        for process in family:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        self._process.wait(PATIENCE)
        self._reading.join()
        self._process.stdout.close()
        self._process = None

    def ask(self, asked: Ask) -> Reply:
        """Return what one request over a connection of its own brings back."""
        connection = Connection(self.port)
        reply = connection.ask(asked)
        connection.close()
        return reply

    def ask_all(self, questions: Iterable[Ask]) -> list[tuple[Ask, Reply]]:
        """Return what each question brings back, one after the other."""
        return [(asked, self.ask(asked)) for asked in questions]

    def workers(self) -> list[psutil.Process]:
        """Return the workers; a single one is the server itself."""
        return self._children() if self.count > 1 else [self._running()]

    def log(self) -> str:
        """Return what it has logged so far."""
        return "".join(self._log)

    def kill(self) -> None:
        """Kill the server itself without notice, and leave its workers alone."""
        self._running().kill()
        self._running().wait()

    def kill_worker(self) -> psutil.Process:
        """Kill the oldest worker without notice, and return it once it is gone."""
        victim = min(self.workers(), key=psutil.Process.create_time)
        victim.kill()
        wait_until(lambda: victim not in self.workers(), "a killed worker to be gone")
        return victim

    @contextmanager
    def only(self, worker: psutil.Process) -> Iterator[None]:
        """Let one worker answer while the others stand still."""
        others = [other for other in self.workers() if other != worker]
        for other in others:
            with suppress(psutil.NoSuchProcess):
                other.suspend()
        try:
            yield
        finally:
            for other in others:
                with suppress(psutil.NoSuchProcess):
                    other.resume()

    def _wait_for_address(self) -> None:
        """Wait until it says where it is, which it does once all its workers serve."""

        def address() -> re.Match[str] | None:
            assert self._running().poll() is None, f"the server ended:\n{self.log()}"
            return re.search(r"http://127\.0\.0\.1:(\d+)", self.log())

        self.port = int(wait_until(address, "the address")[1])

    def _running(self) -> psutil.Popen:
        assert self._process is not None, "it was not started, or it was stopped"
        return self._process

    def _serves(self, worker: psutil.Process) -> bool:
        with self.only(worker):
            connection = Connection(self.port, timeout=0.5)
            reply = connection.ask(Ask("/api/health"))
            connection.close()
        return reply.status == 200

    def _children(self) -> list[psutil.Process]:
        """The processes below the server, without the one that tidies up after Python's own queues."""
        with suppress(psutil.NoSuchProcess):
            children = psutil.Process(self._running().pid).children()
            return [child for child in children if not _tidies_up(child)]
        return []


def _tidies_up(process: psutil.Process) -> bool:
    try:
        return "resource_tracker" in " ".join(process.cmdline())
    except psutil.Error:
        return False
