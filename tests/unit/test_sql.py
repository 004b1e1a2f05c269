import pytest
from hypothesis import given
from hypothesis import strategies as st

from tabulary.errors import LedgerError
from tabulary.ledger import Ledger
from tabulary.sql import address_of, shown

SECRET = "4f-open-sesame"


@pytest.mark.parametrize("path", ["ledger.sqlite", "/var/lib/ledger", "C:/ledger.sqlite", "a:b", "what? #1"])
def test_whatever_is_no_address_is_a_path(path):
    assert address_of(path, "the ledger", LedgerError) is None


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        (f"postgresql://ann:{SECRET}@db.example:5433/census", "postgresql://db.example:5433/census"),
        (f"postgresql://ann:{SECRET}@db/census?sslmode=require", "postgresql://db/census"),
        (f"postgresql://ann:p%40{SECRET}@[::1]/census", "postgresql://::1/census"),
        (f"postgresql:///census?host=/run/pg&password={SECRET}", "postgresql:///census?host=/run/pg"),
        (
            f"postgresql://ann:{SECRET}@/census?host=/run/pg&port=5433",
            "postgresql:///census?host=/run/pg&port=5433",
        ),
    ],
)
def test_an_address_is_shown_without_user_and_password(text, seen):
    assert shown(address_of(text, "the ledger", LedgerError)) == seen


@pytest.mark.parametrize(
    "text",
    [
        f"postgres://ann:{SECRET}@db/census",
        f"mysql://ann:{SECRET}@db/census",
        f"postgresql:/ann:{SECRET}@db/census",
        f"postgresql://ann:{SECRET}@db:port/census",
        f"postgresql://ann:x@{SECRET}@db/census",
        f"postgresql://ann:x@{SECRET}/y@db/census",
        f"postgresql://ann:x@y:{SECRET}@db/census",
        f"postgresql://an/n:{SECRET}@db/census",
    ],
)
def test_an_address_that_cannot_be_read_is_refused_and_not_repeated(text):
    for call in (Ledger.open, Ledger.create):
        with pytest.raises(
            LedgerError, match="Write postgresql://user:password@host:port/database"
        ) as refusal:
            call(text)
        assert SECRET not in str(refusal.value)


@given(st.text(alphabet="ab1@:/?#%&= []", max_size=12))
def test_no_password_is_shown_however_it_is_written(noise):
    # Written as it is, where %40 and the like would be needed.
    text = f"postgresql://ann:{SECRET}{noise}{SECRET}@db/census"
    try:
        told = shown(address_of(text, "the ledger", LedgerError))
    except LedgerError as refusal:
        told = str(refusal)
    assert SECRET not in told
