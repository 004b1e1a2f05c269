"""Serve a table builder with one process, or with several under a supervisor that replaces dead ones."""

import contextlib
import json
import logging
import multiprocessing
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import Any

import uvicorn
from fastapi import FastAPI
from uvicorn.config import STARTUP_FAILURE
from uvicorn.supervisors import Multiprocess

from tabulary.builder.app import create_app
from tabulary.builder.connections import GuardedConfig
from tabulary.builder.listening import Listening
from tabulary.builder.problems import place_of
from tabulary.builder.service import Service, ServiceLimits
from tabulary.builder.sources import ServiceSource, read_source
from tabulary.builder.state import Action
from tabulary.builder.state.log import SERVICE
from tabulary.core.progress import Progress
from tabulary.errors import ServiceError, TabularyError

_PATHS, _HOST = "TABULARY_SERVICE_PATHS", "TABULARY_SERVICE_HOST"
"""The environment variables by which the supervisor gives its workers the file or the folders, and the address."""

# A starting worker imports compilers and reads records; if it does not answer for this long, it hangs.
_PATIENCE = 60
# When the service must stop: seconds for requests under way, and seconds until it ends in any case. Nothing is lost:
# the same question has the same answer, and a debit is in the ledger or was never made.
_FAREWELL, _LAST = 1, 3
# The number of callers that may wait for a worker.
_BACKLOG = 2048

_log = logging.getLogger("tabulary.builder")

Announce = Callable[[str], None]
"""Called with the address once every worker answers."""

ShowingProgress = Callable[[], contextlib.AbstractContextManager[Progress | None]]
"""Makes a context in which progress is shown."""


def serve(
    source: ServiceSource,
    host: str | None = None,
    port: int | None = None,
    workers: int | None = None,
    *,
    announce: Announce = print,
    showing_progress: ShowingProgress = contextlib.nullcontext,
) -> None:
    """Serve until SIGTERM or Ctrl-C; then finish requests for one second, abandon the rest, and return.

    This process binds the address and opens the service before any worker starts. So an error appears once, the tables
    are paid for once, and a reconstruction is stored for the workers to load. The supervisor replaces a worker that
    dies. If a worker cannot open the service, everything ends, because a new worker would fail too. `announce` is
    called with the address when all workers answer; `showing_progress` is active while the service opens. `host`,
    `port` and `workers` override the source.
    """
    log_warnings()
    told = source.listening
    listening = replace(
        told,
        host=told.host if host is None else host,
        port=told.port if port is None else port,
        workers=told.workers if workers is None else workers,
    )
    with _stopping_gently(), _bound(listening) as listener, contextlib.ExitStack() as opened:
        address = _address(listener)
        source = source.at(listening)
        with showing_progress() as progress:
            service = source.open(progress=progress)
        opened.callback(service.close)
        if service.state is not None:
            service.state.log.add(SERVICE, Action.service_started, f"{address}, workers: {listening.workers}")
        # Two services can bind the same address as long as neither listens.
        with _free(listening, "Nothing is served."):
            listener.listen(_BACKLOG)
        if listening.workers == 1:
            _serve_alone(service, listening, listener, lambda: announce(address))
        else:
            opened.close()
            _serve_together(source, listener, lambda: announce(address))


def _serve_alone(
    service: Service, listening: Listening, listener: socket.socket, ready: Callable[[], None]
) -> None:
    server = _Server(_settings(create_app(service), listening, service.limits), ready)
    with contextlib.suppress(KeyboardInterrupt):
        server.run(sockets=[listener])


def _serve_together(source: ServiceSource, listener: socket.socket, ready: Callable[[], None]) -> None:
    os.environ[_PATHS] = json.dumps([str(path) for path in source.paths])
    os.environ[_HOST] = source.listening.host
    settings = _settings("tabulary.builder.serving:worker", source.listening, source.limits)
    supervisor = _Supervisor(settings, listener, ready)
    supervisor.run()
    if any(process.exitcode == STARTUP_FAILURE for process in supervisor.processes):
        raise ServiceError(
            "a worker could not open the service, and its successors would fail alike: see above. All workers have "
            "stopped. Answers that were given stay as they are."
        )


def worker() -> FastAPI:
    """Return the application of one worker process, which opens the service for itself.

    If it cannot, the worker ends with an exit code that tells the supervisor not to try again. Its message holds no
    value of a record, unless the author of the message meant it for the custodian.
    """
    log_warnings()
    _end_with_supervisor()
    _end_in_time()
    try:
        source = read_source([Path(path) for path in json.loads(os.environ[_PATHS])])
        listening = replace(source.listening, host=os.environ[_HOST])
        return create_app(source.at(listening).open())
    except TabularyError as problem:
        _log.error("A worker could not open the service: %s", problem)
    except Exception as defect:
        _log.error("A worker could not open the service: %s at %s", type(defect).__name__, place_of(defect))
    sys.exit(STARTUP_FAILURE)


class _Server(uvicorn.Server):
    """A server that announces when it is ready."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        _end_in_time()
        await super().startup(sockets)
        self._ready()


class _Supervisor(Multiprocess):
    """Uvicorn's supervisor. It also announces when all workers are ready, and when it has replaced one."""

    def __init__(self, config: uvicorn.Config, listener: socket.socket, ready: Callable[[], None]) -> None:
        super().__init__(config, [listener])
        self._ready: Callable[[], None] | None = ready

    def keep_subprocess_alive(self) -> None:
        for process in self.processes:
            # The worker has this end of its pipe. If it stayed open here too, the supervisor would notice a worker that
            # dies during a health check only after the timeout.
            process.child_conn.close()
        before = list(self.processes)
        super().keep_subprocess_alive()
        if self.processes != before:
            _log.warning("A worker died, or did not answer for %d seconds, and was replaced.", _PATIENCE)
        if self._ready is None or self.should_exit.is_set():
            return
        if all(process.is_ready(_PATIENCE) for process in self.processes):
            self._ready()
            self._ready = None


class PlaceFormatter(logging.Formatter):
    """Log lines with only the kind and the place of an exception: its message may hold a value of a record."""

    def formatException(self, ei: Any) -> str:  # noqa: N802 — the name is logging's
        """Return the kind and the place of the exception."""
        kind, problem, _ = ei
        return "no exception" if problem is None else f"{kind.__name__} at {place_of(problem)}"


class StandardError(logging.Handler):
    """Writes to the standard error of the moment.

    A handler that keeps the stream it was made with would write to a closed one after somebody has replaced it.
    """

    def emit(self, record: logging.LogRecord) -> None:
        """Write one line."""
        try:
            print(self.format(record), file=sys.stderr, flush=True)
        except Exception:
            self.handleError(record)


def _settings(app: FastAPI | str, listening: Listening, limits: ServiceLimits) -> GuardedConfig:
    return GuardedConfig(
        app,
        limits=limits,
        proxy=listening.proxy,
        factory=isinstance(app, str),
        workers=listening.workers,
        # Requests are private, and a careless caller could put a token in an address.
        access_log=False,
        log_config=None,
        log_level="warning",
        server_header=False,
        ws="none",
        backlog=_BACKLOG,
        timeout_graceful_shutdown=_FAREWELL,
        timeout_worker_healthcheck=_PATIENCE,
    )


def log_warnings() -> None:
    """Log the warnings of the service and of its server to standard error, without a value of a record.

    It adds a handler and leaves all others alone. `logging.config`, which uvicorn would use, closes the handlers of
    everybody in the process, and a handler may then close the stream that it writes to.
    """
    for name in ("uvicorn", "tabulary"):
        logger = logging.getLogger(name)
        logger.setLevel(logging.WARNING)
        logger.propagate = False
        if _HANDLER not in logger.handlers:
            logger.addHandler(_HANDLER)


_HANDLER = StandardError()
_HANDLER.setFormatter(PlaceFormatter("%(asctime)s %(levelname)s %(message)s"))


@contextlib.contextmanager
def _bound(listening: Listening) -> Iterator[socket.socket]:
    """Yield a socket bound to the address. It does not listen yet, so no caller waits while records are read."""
    family = socket.AF_INET6 if ":" in listening.host else socket.AF_INET
    with socket.socket(family) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        with _free(listening, "Nothing was opened, nothing was spent."):
            listener.bind((listening.host, listening.port))
        yield listener


@contextlib.contextmanager
def _free(listening: Listening, state: str) -> Iterator[None]:
    """Say what to do if the address is not free."""
    try:
        yield
    except OSError as problem:
        raise ServiceError(
            f"nothing can listen on {listening.host} port {listening.port}: {problem.strerror}. {state} Stop what "
            "listens there, or choose another port. Port 0 takes any port that is free."
        ) from None


def _address(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    shown = f"[{host}]" if ":" in host else host
    return f"http://{shown}:{port}"


@contextlib.contextmanager
def _stopping_gently() -> Iterator[None]:
    """Make SIGTERM stop the work like Ctrl-C, so that files and connections are closed."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    usual = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, usual)


def _end_in_time() -> None:
    """Make this process end a few seconds after SIGTERM or Ctrl-C, even if a running thread cannot be stopped.

    Python waits for such a thread before it ends, and closing the records waits for a query.
    """
    if threading.current_thread() is not threading.main_thread():
        return

    def ending(number: int, usual: Callable[[int, FrameType | None], Any]) -> None:
        def end(given: int, frame: FrameType | None) -> None:
            last = threading.Timer(_LAST, os._exit, [0])
            last.daemon = True
            last.start()
            usual(given, frame)

        signal.signal(number, end)

    for number in (signal.SIGTERM, signal.SIGINT):
        if callable(usual := signal.getsignal(number)):
            ending(number, usual)


def _end_with_supervisor() -> None:
    """Stop this worker when its supervisor is gone: otherwise it would hold the address, and nobody could stop it."""
    supervisor = multiprocessing.parent_process()
    if supervisor is None:
        return

    def watch() -> None:
        supervisor.join()
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, daemon=True).start()
