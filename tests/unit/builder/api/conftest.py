"""One table builder for all tests of its routes."""

from pathlib import Path

import pytest

from tabulary.builder.app import create_app
from tests.builders import Caller, service


class Builder:
    """A running table builder, and those who ask it."""

    def __init__(self, folder: Path, **given: object) -> None:
        self.service = service(folder, **given)
        self.app = create_app(self.service)
        self.anyone = Caller(self.app)

    def analyst(self, account: str) -> Caller:
        """Return an analyst whose account pays."""
        _, text = self.service.state.tokens.add(account, "analyst", account)
        return Caller(self.app, text)

    def spent(self, account: str) -> int:
        """Return how many entries the ledger has for an account."""
        return len(self.service.ledger.account(account).entries())


@pytest.fixture(scope="package")
def builder(tmp_path_factory):
    built = Builder(tmp_path_factory.mktemp("builder"))
    yield built
    built.service.close()


@pytest.fixture
def fresh(tmp_path):
    """A table builder with paid questions that nobody has asked yet."""
    built = Builder(tmp_path, only=["survey"])
    yield built
    built.service.close()
