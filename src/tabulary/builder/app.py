"""The application of a table builder: its routes, its checks, and its answers to errors."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tabulary.builder import problems
from tabulary.builder.api.answering import Answering
from tabulary.builder.api.custodian import router as custodian_router
from tabulary.builder.api.datasets import add_datasets
from tabulary.builder.api.describing import described
from tabulary.builder.api.hypotheses import add_tests
from tabulary.builder.api.tables import add_tables
from tabulary.builder.pages.custodian import add_custodian_pages
from tabulary.builder.pages.problem_pages import ProblemPages
from tabulary.builder.pages.rendering import Site
from tabulary.builder.pages.routes import add_pages
from tabulary.builder.pages.sessions import SessionGate
from tabulary.builder.security import protect
from tabulary.builder.service import Service

DESCRIPTION = """\
Build your own tables from confidential records. Every table is protected before it leaves; what is promised, and what
is not, is told with each dataset. The same question has the same answer, to the last byte, for ever.
"""


def create_app(service: Service) -> FastAPI:
    """Return the application of an open service. It closes the service at shutdown.

    It has none of FastAPI's own pages, which load scripts from other sites. It has no telemetry, which would record the
    messages of unexpected errors: such a message may hold the value of a record.
    """
    answering = Answering(service)
    site = Site(service.title, service.signer, has_custodian=service.state is not None)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        yield
        answering.close()
        service.close()

    app = FastAPI(
        title=service.title,
        description=DESCRIPTION,
        version="1",
        openapi_url="/api/openapi.json",
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        lifespan=lifespan,
        telemetry={
            "tracing": False,
            "metrics": False,
            "logs": False,
            "operation_spans": False,
            "auto_configure": False,
        },
    )
    app.state.service = service
    # On the application itself: FastAPI would match a router within a router twice for every table.
    add_tables(app, answering)
    add_tests(app, answering)
    add_datasets(app, answering)
    add_pages(app, answering, site, None if service.state is None else SessionGate(service.state))
    if service.state is not None:
        app.include_router(custodian_router)
        add_custodian_pages(app, service, site)
    problems.install(app)
    app.add_middleware(problems.Unexpected)
    protect(app, service)
    app.add_middleware(ProblemPages, site=site)
    app.add_middleware(HeadAsGet)
    _describe(app, service)
    return app


class HeadAsGet:
    """Pure ASGI: answers HEAD like GET, without the body."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request."""
        if scope["type"] != "http" or scope["method"] != "HEAD":
            await self.app(scope, receive, send)
            return

        async def bodiless(message: Message) -> None:
            await send({**message, "body": b""} if message["type"] == "http.response.body" else message)

        await self.app({**scope, "method": "GET"}, receive, bodiless)


def _describe(app: FastAPI, service: Service) -> None:
    """Make the OpenAPI description complete, once."""
    made: dict[str, Any] = {}

    def openapi() -> dict[str, Any]:
        if not made:
            plain = get_openapi(
                title=app.title, version=app.version, description=app.description, routes=app.routes
            )
            made.update(described(plain, list(service.datasets.values())))
        return made

    app.openapi = openapi  # type: ignore[method-assign]
