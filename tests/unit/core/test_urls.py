from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tabulary.core.urls import scheme_of, shown


@pytest.mark.parametrize(
    ("text", "scheme"),
    [
        ("postgresql://db/census", "postgresql"),
        ("spark://127.0.0.1:7077", "spark"),
        ("postgresql+psycopg://db", "postgresql+psycopg"),
        ("postgresql:/db/census", "postgresql"),
        ("people.parquet", None),
        ("C:/people.parquet", None),
        ("/data/people*.csv", None),
        ("", None),
    ],
)
def test_an_address_has_a_scheme_and_a_path_has_none(text, scheme):
    assert scheme_of(text) == scheme


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("postgresql://db:5433/census", "postgresql://db:5433/census"),
        ("sqlite:///people.sqlite", "sqlite:///people.sqlite"),
        ("sqlite:////data/people.sqlite", "sqlite:////data/people.sqlite"),
        ("spark://127.0.0.1:7077", "spark://127.0.0.1:7077"),
        ("duckdb:///people.duckdb?token=secret", "duckdb:///people.duckdb"),
        ("postgresql://db/census?user=reader&password=secret", "postgresql://db/census"),
    ],
)
def test_what_is_public_of_an_address_is_shown(address, said):
    assert shown(address) == said


words = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1).map(lambda text: f"§{text}§")


@given(words, words, st.booleans())
def test_neither_user_nor_password_nor_options_are_shown_however_they_are_spelled(user, password, escaped):
    spelled = quote(password, safe="") if escaped else password
    told = shown(f"postgresql://{user}:{spelled}@db/census?sslpassword={password}")
    assert "§" not in told
    assert "%C2%A7" not in told
    assert told.startswith("postgresql://")
