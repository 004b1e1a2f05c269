import re
import traceback
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tabulary as tb
from tabulary.confidential import sources
from tabulary.confidential.sources import Source
from tabulary.errors import InvalidAddress

DOMAIN = tb.Domain({"sex": ["F", "M"]})
SECRET = "open-sesame"
ADDRESS = f"postgresql://reader:{SECRET}@db/census?sslpassword={SECRET}"


@pytest.fixture
def asked(monkeypatch):
    """What a source asks of a database."""
    said = []
    monkeypatch.setattr(sources.Records, "from_database", lambda *given, **named: said.append((given, named)))
    return said


def test_a_path_is_relative_to_the_folder_of_the_file_that_names_it(tmp_path):
    assert Source.read(tmp_path, "people.csv").place == tmp_path / "people.csv"
    assert Source.read(tmp_path, "/data/*.parquet").place == Path("/data/*.parquet")


@pytest.mark.parametrize("scheme", ["duckdb", "sqlite"])
def test_a_database_in_a_file_is_relative_to_that_folder_too(tmp_path, scheme):
    assert Source.read(tmp_path, f"{scheme}:///people.db", "p").place == f"{scheme}:///{tmp_path}/people.db"
    assert Source.read(tmp_path, f"{scheme}:////data/people.db", "p").place == f"{scheme}:////data/people.db"


@pytest.mark.parametrize("engine", [None, "compiled"])
def test_files_are_opened_with_the_compiled_engine_unless_told(tmp_path, engine):
    (tmp_path / "people.csv").write_text("sex\nF\nM\nF\n")
    with Source.read(tmp_path, "people.csv", engine=engine).open(DOMAIN) as records:
        assert records.engine == "compiled"
        assert records.tally([["sex"]]).exact(["sex"]).tolist() == [2, 1]


def test_files_are_opened_with_the_engine_that_is_named(tmp_path, monkeypatch):
    said = []
    monkeypatch.setattr(sources.Records, "from_file", lambda *given, **named: said.append((given, named)))
    Source.read(tmp_path, "people.csv").counted_by("duckdb").open(DOMAIN)
    ((given, named),) = said
    assert given[:2] == (tmp_path / "people.csv", DOMAIN)
    assert named["engine"] == "duckdb"


def test_an_address_is_opened_with_its_table_codings_and_weights(asked, tmp_path):
    weights = tb.Weights("w", 5, unit=1)
    Source.read(tmp_path, "postgresql://db/census", "people").open(DOMAIN, {"sex": 1}, weights=weights)
    assert asked == [(("postgresql://db/census", "people", DOMAIN, {"sex": 1}), {"weights": weights})]


@given(st.text(st.characters(codec="utf-8", exclude_characters="\0", exclude_categories=["Cs"]), min_size=1))
def test_a_password_from_the_environment_arrives_as_it_is(password):
    source = Source("postgresql://reader:${CENSUS_PASSWORD}@${CENSUS_HOST}:5433/census", "people")
    with pytest.MonkeyPatch.context() as patch:
        said = []
        patch.setattr(sources.Records, "from_database", lambda *given, **_: said.append(given[0]))
        patch.setenv("CENSUS_PASSWORD", password)
        patch.setenv("CENSUS_HOST", "db.example")
        source.open(DOMAIN)
    address = urlsplit(said[0])
    assert unquote(address.password) == password
    assert (address.username, address.hostname, address.port) == ("reader", "db.example", 5433)


def test_a_variable_is_looked_up_when_the_source_is_opened_and_not_before(asked, monkeypatch):
    monkeypatch.delenv("CENSUS_PASSWORD", raising=False)
    source = Source("postgresql://reader:${CENSUS_PASSWORD}@db/census", "people")
    with pytest.raises(
        InvalidAddress, match=r"names 'CENSUS_PASSWORD', but the environment has no such variable"
    ):
        source.open(DOMAIN)
    assert not asked
    monkeypatch.setenv("CENSUS_PASSWORD", "")
    source.open(DOMAIN)
    assert asked[0][0][0] == "postgresql://reader:@db/census"


def test_what_a_source_prints_has_no_user_no_password_and_no_options(monkeypatch):
    monkeypatch.setenv("CENSUS_PASSWORD", SECRET)
    told = Source("postgresql://reader:${CENSUS_PASSWORD}@db/census", "people")
    for source in (Source(ADDRESS, "people"), told):
        for text in (repr(source), str(source), f"{source}", source.shown):
            assert SECRET not in text
            assert "reader" not in text
            assert "postgresql://db/census" in text
            assert "people" in text


@pytest.mark.parametrize(
    ("place", "table", "engine", "said"),
    [
        ("people.csv", "people", None, "Leave `table` out"),
        ("people.csv", None, "spark", "'compiled', 'duckdb', not by 'spark'"),
        ("people.csv", None, "", "'compiled', 'duckdb', not by ''"),
        (ADDRESS, None, None, "needs the name of a `table`"),
        (ADDRESS, "", None, "needs the name of a `table`"),
        (ADDRESS, "people", "duckdb", "is for files"),
        (ADDRESS.replace("postgresql:", "https:"), "people", None, "no engine counts records at https://"),
        (ADDRESS.replace("postgresql:", "carrier-pigeon:"), "people", None, "at carrier-pigeon://"),
        (ADDRESS.replace("://", ":/"), "people", None, "needs its scheme"),
        (ADDRESS.replace(SECRET, "${1}"), "people", None, "is written ${NAME}"),
        (ADDRESS.replace(SECRET, "${open"), "people", None, "is written ${NAME}"),
    ],
)
def test_what_cannot_be_is_refused_without_a_secret(tmp_path, place, table, engine, said):
    with pytest.raises(InvalidAddress, match=re.escape(said)) as refused:
        Source.read(tmp_path, place, table, engine)
    assert "Nothing was read." in str(refused.value)
    whole = "".join(traceback.format_exception_only(refused.value))
    assert SECRET not in whole
    assert "reader" not in whole


def test_an_address_does_not_take_another_engine():
    with pytest.raises(InvalidAddress, match="is for files"):
        Source("spark://host:7077", "people").counted_by("duckdb")


def test_where_ibis_is_missing_a_scheme_is_judged_when_the_source_is_opened(monkeypatch):
    monkeypatch.setattr(sources, "entry_points", lambda group: ())
    assert Source("postgresql://db/census", "people").table == "people"


@pytest.mark.parametrize("given", [ADDRESS, Path(ADDRESS)])
def test_files_refuse_an_address_with_the_way_to_go_and_without_a_secret(given):
    with pytest.raises(tb.errors.UnreadableSource, match=r"Records\.from_database") as refused:
        tb.Records.from_file(given, DOMAIN)
    assert SECRET not in str(refused.value)
    assert "reader" not in str(refused.value)
