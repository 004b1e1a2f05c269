"""Close connections that cost a service too much: slow ones, and too many from one address.

By default Uvicorn waits for ever for the rest of a request and accepts any number of connections. Here the header and
the body of a request must each arrive in time, and the caller must read the answer in time. Beyond the limits, the
service answers a connection with 503 and closes it at once.
"""

import asyncio
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from tabulary.builder.service import ServiceLimits
from tabulary.builder.throttle import address_of

PROXY = "127.0.0.1"
"""The address of a trusted proxy. It serves many callers, so the limit per caller does not apply to it."""

_LONGEST_HEADER = 1 << 16
_TOO_SLOW = "The request did not come in time. Nothing was asked, nothing was spent."
_TOO_LONG = "The header of the request is too long. Nothing was asked, nothing was spent."
_TOO_MANY = "Too many connections are open. Nothing was asked, nothing was spent. Come again later."


class GuardedConfig(uvicorn.Config):
    """The settings of a server whose connections are guarded."""

    def __init__(self, app: Any, *, limits: ServiceLimits, proxy: bool, **settings: Any) -> None:
        super().__init__(
            app,
            http=GuardedProtocol,
            # Trust only a proxy on this machine: the address decides who is slowed down.
            proxy_headers=proxy,
            forwarded_allow_ips=PROXY,
            **settings,
        )
        self.limits = limits


class GuardedProtocol(HttpToolsProtocol):
    """A connection that closes if its caller is too slow, and at once if there are too many connections."""

    config: GuardedConfig
    # Timers that end the connection: one waits for the rest of a request, the other for the caller to read an answer.
    _awaited: asyncio.TimerHandle | None = None
    _unread: asyncio.TimerHandle | None = None
    # Whether the last request is complete, so that the next bytes belong to a new one.
    _whole = False
    # Bytes of an unfinished header; None after its end.
    _header_bytes: int | None = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Accept a connection, if there are not too many."""
        super().connection_made(transport)
        if self._is_one_too_many():
            self._refuse(b"503 Service Unavailable", _TOO_MANY)
            return
        self._await(self.config.limits.header_seconds)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget a connection."""
        self._call_off()
        self._call_off_reading()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Process received bytes."""
        # After an answer, the server limits the wait only for the first byte of the next request, not for the rest.
        if self._whole and self._awaited is None:
            self._await(self.config.limits.header_seconds)
        if self._header_bytes is not None:
            self._header_bytes += len(data)
        super().data_received(data)
        if self._header_bytes is not None and self._header_bytes > _LONGEST_HEADER:
            self._refuse(b"431 Request Header Fields Too Large", _TOO_LONG)

    def on_message_begin(self) -> None:
        """Note that a request begins."""
        self._whole = False
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """Note that the header is complete, and wait for the body."""
        self._header_bytes = None
        self._await(self.config.limits.body_seconds)
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """Note that the request is complete: the caller has nothing more to send."""
        self._call_off()
        self._whole, self._header_bytes = True, 0
        super().on_message_complete()

    def pause_writing(self) -> None:
        """Note that the caller reads more slowly than the server answers."""
        super().pause_writing()
        self._await_reading()

    def resume_writing(self) -> None:
        """Note that the caller reads again."""
        self._call_off_reading()
        super().resume_writing()

    def timeout_keep_alive_handler(self) -> None:
        """Close an unused connection. While an answer is unread, it does not close by itself."""
        super().timeout_keep_alive_handler()
        self._await_reading()

    def _is_one_too_many(self) -> bool:
        limits, client = self.config.limits, self.client
        if len(self.connections) > limits.connections:
            return True
        if client is None or (self.config.proxy_headers and client[0] == PROXY):
            return False
        # Counted each time: there are a few hundred at most, and a separate counter could become wrong.
        own = address_of({"client": client})
        others = (each.client for each in self.connections if isinstance(each, GuardedProtocol))
        same = sum(address_of({"client": other}) == own for other in others if other is not None)
        return same > limits.connections_a_caller

    def _await(self, seconds: float) -> None:
        self._call_off()
        self._awaited = self.loop.call_later(seconds, self._too_slow, seconds)

    def _call_off(self) -> None:
        if self._awaited is not None:
            self._awaited.cancel()
            self._awaited = None

    def _await_reading(self) -> None:
        self._call_off_reading()
        self._unread = self.loop.call_later(self.config.limits.body_seconds, self.transport.abort)

    def _call_off_reading(self) -> None:
        if self._unread is not None:
            self._unread.cancel()
            self._unread = None

    def _too_slow(self, seconds: float) -> None:
        busy = self.cycle is not None and not self.cycle.response_complete
        # The caller is not to blame while the server does not read, or while they wait for an answer.
        if self.flow.read_paused or (busy and not self.cycle.more_body):
            self._await(seconds)
        elif busy and self.cycle.response_started:
            self.transport.abort()
        else:
            self._refuse(b"408 Request Timeout", _TOO_SLOW)

    def _refuse(self, status: bytes, sentence: str) -> None:
        """Answer without the application, which does not know this connection yet, and close."""
        body = sentence.encode()
        self.transport.write(
            b"HTTP/1.1 "
            + status
            + b"\r\ncontent-type: text/plain; charset=utf-8\r\ncontent-length: "
            + str(len(body)).encode()
            + b"\r\nretry-after: 5\r\ncache-control: no-store\r\nconnection: close\r\n\r\n"
            + body
        )
        self.transport.close()
        # Do not wait for a caller who does not read this either.
        self._await_reading()
