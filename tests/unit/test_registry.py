"""Named things that a program or an installed package can add to."""

import importlib.metadata

import pytest

from tabulary.errors import ExtensionError
from tabulary.registry import Registry


@pytest.fixture
def laws() -> Registry[str]:
    found = Registry[str]("law", "tabulary.test-laws")
    found.register("laplace", "double exponential")
    return found


def offered(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    entry = importlib.metadata.EntryPoint(name, value, "tabulary.test-laws")
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: [entry])


def test_a_name_is_not_given_twice(laws: Registry[str]) -> None:
    with pytest.raises(ExtensionError, match="registered already"):
        laws.register("laplace", "something else")
    assert laws["laplace"] == "double exponential"


def test_an_unknown_name_is_refused_with_the_known_ones(laws: Registry[str]) -> None:
    with pytest.raises(ExtensionError, match="there is no law 'cauchy': 'laplace' are known"):
        laws["cauchy"]


def test_an_installed_package_adds_by_its_entry_point(
    laws: Registry[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    offered(monkeypatch, "maxsize", "sys:maxsize")
    assert "maxsize" in laws
    assert list(laws) == ["laplace", "maxsize"]
    assert len(laws) == 2


def test_a_package_that_cannot_be_loaded_is_named(
    laws: Registry[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    offered(monkeypatch, "broken", "no_such_package:law")
    for _ in range(2):
        with pytest.raises(ExtensionError, match="'no_such_package' cannot be loaded"):
            list(laws)
