"""Count requests by dataset, kind of request, outcome and caller."""

from collections.abc import Collection

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tabulary.builder.state import Token
from tabulary.builder.state.counter import RequestCounter
from tabulary.builder.state.usage import PUBLIC

CALLER = "tabulary.caller"
"""The key in a request's scope for its token, after the token was accepted."""

_OF_A_DATASET = frozenset({"tables", "accuracy", "tests", "plan"})


class CountRequests:
    """Pure ASGI: counts every request to the datasets and to the custodian's part, after the answer.

    It never stores a caller's text from an address: a name that the service does not know counts as empty.
    """

    def __init__(self, app: ASGIApp, counter: RequestCounter, datasets: Collection[str]) -> None:
        self.app = app
        self.counter = counter
        self.datasets = frozenset(datasets)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        status: int | None = None

        async def watched(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self.app(scope, receive, watched)
        except Exception:
            status = 500
            raise
        finally:
            # Without an answer, the caller had already left.
            if status is not None and (asked := what_was_asked(scope["path"])) is not None:
                self._count(*asked, status, scope.get(CALLER))

    def _count(self, dataset: str, kind: str, status: int, caller: Token | None) -> None:
        known = dataset if dataset in self.datasets else ""
        self.counter.count(known, kind, status, PUBLIC if caller is None else caller.id)


def what_was_asked(path: str) -> tuple[str, str] | None:
    """Return the dataset and the kind of a request from its path; None if it is not counted.

    >>> what_was_asked("/api/datasets/census/tables.csv")
    ('census', 'tables')
    >>> what_was_asked("/api/datasets"), what_was_asked("/api/health")
    (('', 'datasets'), None)
    """
    match path.rstrip("/").split("/")[1:]:
        case ["api", "datasets"]:
            return "", "datasets"
        case ["api", "datasets", dataset]:
            return dataset, "dataset"
        case ["api", "datasets", dataset, kind] if kind.partition(".")[0] in _OF_A_DATASET:
            return dataset, kind.partition(".")[0]
        case ["datasets", dataset, table] if table.partition(".")[0] == "table":
            # A page with a table counts like the same request to the API.
            return dataset, "tables"
        case ["api", "custodian", *_] | ["custodian", *_]:
            return "", "custodian"
        case _:
            return None
