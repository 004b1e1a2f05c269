"""What a caller and the log are told when something fails: nothing that depends on a record."""

import asyncio
import inspect
import logging
from contextlib import contextmanager
from dataclasses import replace

import pytest

from tabulary import errors
from tabulary.builder.app import create_app
from tabulary.builder.problems import HTTPProblem, Unexpected, kind_of, problem
from tests.builders import Caller, service

TABLES = "/api/datasets/census/tables"
# A value that an error of a library might quote from a record.
VALUE = "4711-Müller"


class Failing:
    """A dataset whose tables cannot be made."""

    def __init__(self, answers, error):
        self._answers = answers
        self._error = error

    def __getattr__(self, name):
        return getattr(self._answers, name)

    def answer(self, margin, *, asker=None, linear=False):
        value = VALUE
        raise self._error(f"cannot count {value}")


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    held = service(tmp_path_factory.mktemp("builder"), only=["census"])
    yield held
    held.close()


@contextmanager
def failing(sound, error):
    """Someone who asks a builder in which `error` arises deep within."""
    dataset = sound.datasets["census"]
    broken = replace(dataset, answers=Failing(dataset.answers, error))
    yield Caller(create_app(replace(sound, datasets={"census": broken})))


CONFIDENTIAL = [
    each
    for _, each in inspect.getmembers(errors, inspect.isclass)
    if issubclass(each, errors.ConfidentialError)
]


@pytest.mark.parametrize(
    "error", [ValueError, KeyError, MemoryError, RuntimeError, errors.MissingExtra, *CONFIDENTIAL]
)
def test_an_unexpected_error_tells_its_kind_and_place_to_the_log_and_nothing_to_the_caller(
    sound, error, caplog
):
    with failing(sound, error) as ask, caplog.at_level(logging.DEBUG):
        found = ask.get(TABLES, [("by", "sex")])
    assert found.status_code == 500
    assert found.headers["content-type"] == "application/problem+json"
    assert found.headers["x-content-type-options"] == "nosniff"
    for said in (found.text, str(found.headers), caplog.text):
        assert VALUE not in said
        assert "cannot count" not in said
    assert error.__name__ not in found.text
    assert f"{error.__name__} at " in caplog.text
    assert "answers.py:" in caplog.text
    assert all(record.exc_info is None for record in caplog.records)


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (errors.TableRefused, 403),
        (errors.TooManyCells, 403),
        (errors.BudgetExceeded, 403),
        (errors.InvalidDomain, 422),
        (errors.InvalidWorkload, 422),
        (errors.InvalidNoise, 422),
        (errors.NotCertified, 422),
        (errors.UnknownMargin, 404),
    ],
)
def test_an_error_about_the_question_is_told_in_its_own_words(sound, error, status):
    with failing(sound, error) as ask:
        found = ask.get(TABLES)
    assert found.status_code == status
    assert found.json()["type"] == kind_of(error)
    assert found.json()["detail"] == f"cannot count {VALUE}"
    assert found.headers["cache-control"] == "no-store"


@pytest.mark.parametrize(
    "error",
    [
        errors.LedgerError,
        errors.LedgerBusy,
        errors.LedgerMissing,
        errors.LedgerCorrupt,
        errors.ServiceError,
    ],
)
def test_an_error_about_the_service_says_when_to_come_again_and_keeps_its_words_for_the_log(
    sound, error, caplog
):
    with failing(sound, error) as ask, caplog.at_level(logging.DEBUG):
        found = ask.get(TABLES)
    assert found.status_code == 503
    assert int(found.headers["retry-after"]) >= 1
    assert found.json()["type"] == kind_of(error)
    assert VALUE not in found.text
    assert VALUE in caplog.text


def test_an_answer_that_breaks_off_breaks_the_connection_without_a_word(caplog):
    async def half(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})
        raise ValueError(VALUE)

    async def send(message):
        pass

    with pytest.raises(RuntimeError, match=r"^an answer was cut short$") as broken:
        asyncio.run(Unexpected(half)({"type": "http"}, send, send))
    assert broken.value.__suppress_context__
    assert VALUE not in caplog.text


def test_a_public_error_that_nobody_thought_of_is_not_told(sound):
    class Brand(errors.PublicError):
        pass

    with failing(sound, Brand) as ask:
        found = ask.get(TABLES)
    assert found.status_code == 500
    assert VALUE not in found.text


def test_a_problem_of_any_length_and_any_letters_is_written():
    body = problem("/api/\ud800", 422, "kind", "x" * 10_000 + "\udfff").body
    assert len(body) < 3_000
    assert HTTPProblem(403, "kind", "No.").status_code == 403
