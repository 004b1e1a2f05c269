"""Requests to a server on this machine, many at once, and how long it took to answer them.

Two ways to ask. Closed: so many connections, each asking again as soon as it has its answer: how many a second the
server can do. Open: so many requests a second whether or not the server keeps up, each timed from the moment it was
due: how long a reader waits, without the waits that a closed loop leaves out because it was itself waiting.

The closed loop is wrk's where wrk is installed, and the same loop on asyncio where it is not; the open one is ours.
"""

import asyncio
import json
import math
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import numpy as np
import uvloop

CONNECTIONS = 16

# Each thread of wrk draws its own requests from the list; what they took is told in microseconds.
WRK_SCRIPT = """
local paths, threads = {}, 0
for path in io.lines(PATHS) do paths[#paths + 1] = path end
function setup(thread) thread:set("seed", threads); threads = threads + 1 end
function init() math.randomseed(seed) end
function request() return wrk.format("GET", paths[math.random(#paths)]) end
function done(summary, latency)
  local lost = summary.errors
  io.write(string.format('{"requests": %d, "microseconds": %d, "p50": %f, "p99": %f, "failed": %d}',
    summary.requests, summary.duration, latency:percentile(50), latency:percentile(99),
    lost.connect + lost.read + lost.write + lost.status + lost.timeout))
end
"""


@dataclass(frozen=True)
class Load:
    """What a server did under load: milliseconds, and requests that failed or got another status than 200."""

    generator: str
    requests: int
    failed: int
    seconds: float
    p50: float
    p99: float

    @property
    def requests_a_second(self) -> float:
        """How many requests it answered a second."""
        return (self.requests - self.failed) / self.seconds


def closed(port: int, paths: Sequence[str], *, seconds: float, connections: int = CONNECTIONS) -> Load:
    """Return what the server does when `connections` ask for random paths, each as soon as it has its answer."""
    if wrk := shutil.which("wrk"):
        return _by_wrk(wrk, port, paths, seconds, connections)
    name = f"asyncio, closed loop of {connections}"
    return _by_asyncio(name, port, _drawn(paths), seconds=seconds, connections=connections, rate=None)


def opened(
    port: int, paths: Sequence[str], *, rate: float, seconds: float, connections: int = 4 * CONNECTIONS
) -> Load:
    """Return what the server does when `rate` random paths a second are asked, timed from when each was due."""
    name = f"asyncio, open loop of {rate:g} a second"
    return _by_asyncio(name, port, _drawn(paths), seconds=seconds, connections=connections, rate=rate)


def once_each(port: int, paths: Sequence[str]) -> list[float]:
    """Return how many milliseconds each path takes, one after the other over one connection."""
    took = uvloop.run(_ask(port, iter(paths), math.inf, connections=1, rate=None))
    if any(status != 200 for status, _ in took):
        raise RuntimeError(f"the server answered with {sorted({status for status, _ in took})}.")
    return [1000 * seconds for _, seconds in took]


def _by_wrk(wrk: str, port: int, paths: Sequence[str], seconds: float, connections: int) -> Load:
    with tempfile.TemporaryDirectory(prefix="tabulary-bench-") as folder:
        listed, script = Path(folder, "paths"), Path(folder, "random.lua")
        listed.write_text("".join(f"{path}\n" for path in paths), "utf-8")
        script.write_text(WRK_SCRIPT.replace("PATHS", json.dumps(str(listed))), "utf-8")
        asked = (f"-c{connections}", f"-d{max(1, round(seconds))}s", "--timeout", "60s", "-s", str(script))
        ran = subprocess.run(
            [wrk, "-t1", *asked, f"http://127.0.0.1:{port}"], check=True, capture_output=True, text=True
        )
    return read_wrk(ran.stdout, connections)


def read_wrk(text: str, connections: int) -> Load:
    """Return what wrk printed: its own report, and the line of our script behind it.

    >>> line = '{"requests": 90, "microseconds": 3000000, "p50": 400.0, "p99": 800.0, "failed": 0}'
    >>> read_wrk("Running 3s test" + line, 1).requests_a_second
    30.0
    """
    told = json.loads(text[text.rindex("{") :])
    return Load(
        generator=f"wrk, closed loop of {connections}",
        requests=told["requests"],
        failed=told["failed"],
        seconds=told["microseconds"] / 1e6,
        p50=told["p50"] / 1000,
        p99=told["p99"] / 1000,
    )


def _by_asyncio(
    name: str, port: int, paths: Iterator[str], *, seconds: float, connections: int, rate: float | None
) -> Load:
    start = time.perf_counter()
    took = uvloop.run(_ask(port, paths, seconds, connections, rate))
    lasted = time.perf_counter() - start
    p50, p99 = np.quantile([each for _, each in took], [0.5, 0.99]) * 1000
    failed = sum(status != 200 for status, _ in took)
    return Load(name, len(took), failed, lasted, float(p50), float(p99))


def _drawn(paths: Sequence[str]) -> Iterator[str]:
    generator = np.random.default_rng(11)
    while True:
        yield from (paths[i] for i in generator.integers(len(paths), size=1024))


async def _ask(
    port: int, paths: Iterator[str], seconds: float, connections: int, rate: float | None
) -> list[tuple[int, float]]:
    """Return status and seconds of every request; without a rate, each is due when its connection is free."""
    start, numbers = time.perf_counter(), count()
    took: list[tuple[int, float]] = []

    async def asker() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 20)
        while True:
            offset = next(numbers) / rate if rate else time.perf_counter() - start
            if offset >= seconds or (path := next(paths, None)) is None:
                break
            due = start + offset
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            writer.write(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
            head = (await reader.readuntil(b"\r\n\r\n")).lower()
            length = int(head.partition(b"content-length:")[2].partition(b"\r\n")[0])
            await reader.readexactly(length)
            took.append((int(head[9:12]), time.perf_counter() - due))
        writer.close()

    await asyncio.gather(*(asker() for _ in range(connections)))
    return took
