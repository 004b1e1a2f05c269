"""A table builder on loopback, in a thread of this process: for clients that speak HTTP."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn

from tabulary.builder.app import create_app
from tabulary.builder.connections import GuardedConfig
from tabulary.builder.service import Service
from tests.waiting import wait_until


@contextmanager
def served(service: Service, *, proxy: bool = False, farewell: int | None = None) -> Iterator[str]:
    """Yield the address at which a service answers; it is closed at the end."""
    app, limits = create_app(service), service.limits
    config = GuardedConfig(
        app,
        limits=limits,
        proxy=proxy,
        port=0,
        log_level="warning",
        access_log=False,
        # Otherwise uvicorn configures logging, which closes the handlers of everybody. That of absl closes the stream
        # it writes to, unless it is the standard error of the moment. Where a test captures standard error, that
        # stream belongs to pytest, and every later test fails: I/O operation on closed file.
        log_config=None,
        timeout_graceful_shutdown=farewell,
    )
    server = uvicorn.Server(config)
    # A test that failed before its end must not keep the process.
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    try:
        # A server that cannot start ends its thread.
        wait_until(lambda: server.started or not thread.is_alive(), "a table builder that listens")
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()
