import json
import shutil
import sqlite3
from contextlib import closing

import pytest

import tabulary as tb
from tabulary.builder import opening
from tabulary.builder.configuration import read_service_file
from tabulary.builder.forecast import forecast
from tabulary.builder.key_file import read_key
from tabulary.builder.opening import initialise, open_service, open_state
from tabulary.builder.state import State
from tabulary.errors import (
    BudgetExceeded,
    ImpossibleRecord,
    LedgerMissing,
    ServiceError,
    UnknownLevel,
    UnreadableSource,
)
from tabulary.workflows.answering.answers import ProtectionMethod
from tabulary.workflows.answering.edition import key_fingerprint
from tests.service_files import dataset, places

PEOPLE = "sex,age,record_key\n" + "".join(f"{'FM'[i % 2]},{i % 3},{i * 37 % 256}\n" for i in range(60))

SERVICE = places("{state}", "{ledger}") + dataset(
    "census",
    {"sex": ["F", "M"], "age": [0, 1, 2]},
    privacy='rho = "1/8"',
    budget='rho = "1/4"',
    version="2026",
)

OTHERS = """
[dataset.panel]
version = "1"
source = "people.csv"
method = "interactive"
[dataset.panel.privacy]
epsilon = "1/10"
[dataset.panel.budget]
epsilon = 1
[dataset.panel.tables]
order = 1
[dataset.panel.domain.sex]
levels = ["F", "M"]
[dataset.survey]
version = "1"
source = "people.csv"
method = "cell-key"
[dataset.survey.tables]
order = 1
[dataset.survey.keys]
modulus = 256
[dataset.survey.ptable]
file = "ptable.csv"
[dataset.survey.domain.sex]
levels = ["F", "M"]
"""


@pytest.fixture
def write(tmp_path, database):
    """A function that writes a service file, on each database, and reads it."""
    (tmp_path / "people.csv").write_text(PEOPLE)
    places = {"state": database, "ledger": database}
    if "://" not in database:
        places = {"state": "state.sqlite", "ledger": "ledger.sqlite"}

    def write_text(text=SERVICE):
        for name, place in places.items():
            text = text.replace(f"{{{name}}}", place)
        (tmp_path / "service.toml").write_text(text)
        return read_service_file(tmp_path / "service.toml")

    return write_text


@pytest.fixture
def on_sqlite(tmp_path):
    """The same on SQLite alone, for what does not depend on the database."""
    (tmp_path / "people.csv").write_text(PEOPLE)

    def write_text(text=SERVICE):
        text = text.replace("{state}", "state.sqlite").replace("{ledger}", "ledger.sqlite")
        (tmp_path / "service.toml").write_text(text)
        return read_service_file(tmp_path / "service.toml")

    return write_text


def entries(file, account="census"):
    with tb.Ledger.open(file.ledger.where(), read_only=True) as ledger:
        return ledger.account(account).entries()


def answer(file, name="census", margin=("sex", "age")):
    service = open_service(file)
    counts = service.datasets[name].answers.answer(margin).table.counts.tolist()
    service.close()
    return counts


def test_a_service_is_created_once_and_then_opened_as_often_as_wanted(write, tmp_path):
    file = write()
    text = initialise(file)
    assert file.key.stat().st_mode & 0o777 == 0o600
    with State.open(file.state.where()) as state:
        assert state.tokens.find(text).role == "custodian"
    assert entries(file) == ()
    key = file.key.read_bytes()
    first = answer(file)
    assert initialise(file) is None
    assert file.key.read_bytes() == key
    assert answer(file) == first
    (paid,) = entries(file)
    assert (paid.cost, paid.neighbours) == (tb.ZCDP("1/8"), tb.Neighbours())


def test_serving_creates_nothing_and_says_what_is_missing(on_sqlite, tmp_path):
    file = on_sqlite()
    before = sorted(tmp_path.iterdir())
    with pytest.raises(ServiceError, match="no key file"):
        open_service(file)
    file.key.write_text("ab" * 32)
    file.key.chmod(0o600)
    with pytest.raises(ServiceError, match=r"[Ii]nitialise|not there"):
        open_service(file)
    assert sorted(tmp_path.iterdir()) == sorted([*before, file.key])


def test_what_readers_are_told_comes_from_the_file(on_sqlite):
    titled = SERVICE.replace('version = "2026"', 'version = "2026"\ntitle = "Census"')
    file = on_sqlite(
        titled.replace("[dataset.census.domain.age]", 'label = "Sex"\n[dataset.census.domain.age]')
    )
    initialise(file)
    service = open_service(file)
    census = service.datasets["census"]
    assert (census.title, census.account, census.answers.version) == ("Census", "census", "2026")
    assert census.variables["sex"].label == "Sex"
    assert service.key_fingerprint
    service.close()


def test_a_missing_key_stops_the_service_and_is_not_replaced_silently(write, tmp_path):
    file = write()
    initialise(file)
    first = answer(file)
    file.key.rename(tmp_path / "safe")
    with pytest.raises(ServiceError, match="no key file"):
        open_service(file)
    with pytest.raises(ServiceError, match="give every dataset a new version"):
        initialise(file)
    assert not file.key.exists()
    assert len(entries(file)) == 1
    (tmp_path / "safe").rename(file.key)
    assert answer(file) == first


def test_a_key_is_not_replaced_even_if_the_state_is_lost_with_it(on_sqlite, tmp_path):
    file = on_sqlite()
    initialise(file)
    answer(file)
    file.key.unlink()
    for lost in tmp_path.glob("state.sqlite*"):
        lost.unlink()
    with pytest.raises(ServiceError, match="give every dataset a new version"):
        initialise(file)
    assert not file.key.exists()


def test_another_key_is_refused_for_an_old_version_and_paid_for_with_a_new_one(write, tmp_path):
    file = write()
    initialise(file)
    first = answer(file)
    file.key.unlink()
    renewed = write(SERVICE.replace('"2026"', '"2026b"'))
    initialise(renewed)
    assert answer(renewed) != first
    old, new = entries(file)
    assert old.purpose != new.purpose
    with pytest.raises(ServiceError, match="the key of census 2026"):
        open_service(write())
    with pytest.raises(ServiceError, match="the key of census 2026"):
        initialise(file)
    assert len(entries(file)) == 2


def test_a_lost_ledger_is_an_error_and_not_a_fresh_budget(on_sqlite, tmp_path):
    file = on_sqlite()
    initialise(file)
    answer(file)
    for lost in tmp_path.glob("ledger.sqlite*"):
        lost.rename(tmp_path / f"lost-{lost.name}")
    with pytest.raises(LedgerMissing, match="there is no ledger at"):
        open_service(file)
    with pytest.raises(ServiceError, match="second budget"):
        initialise(file)
    assert not (tmp_path / "ledger.sqlite").exists()
    # Somebody makes an empty one all the same.
    with tb.Ledger.create(tmp_path / "ledger.sqlite") as other:
        other.create_account("census", tb.ZCDP("1/4"), tb.Neighbours())
    for attempt in (open_service, initialise):
        with pytest.raises(ServiceError, match="remembers ledger"):
            attempt(file)
    assert entries(file) == ()


def test_a_ledger_that_was_lost_with_the_state_is_not_replaced_while_there_is_a_key(on_sqlite, tmp_path):
    file = on_sqlite()
    initialise(file)
    for lost in [*tmp_path.glob("ledger.sqlite*"), *tmp_path.glob("state.sqlite*")]:
        lost.unlink()
    with pytest.raises(ServiceError, match="second budget"):
        initialise(file)
    assert not (tmp_path / "ledger.sqlite").exists()


def test_a_ledger_that_was_lost_in_postgresql_is_not_replaced_either(
    postgres_database, postgres_server, tmp_path
):
    (tmp_path / "people.csv").write_text(PEOPLE)
    text = SERVICE.replace("{state}", "state.sqlite").replace("{ledger}", postgres_database)
    (tmp_path / "service.toml").write_text(text)
    file = read_service_file(tmp_path / "service.toml")
    initialise(file)
    postgres_server.empty(postgres_database.rpartition("/")[2])
    with pytest.raises(ServiceError, match="second budget"):
        initialise(file)


def test_noise_that_is_drawn_otherwise_than_before_is_refused(on_sqlite, monkeypatch):
    file = on_sqlite()
    initialise(file)
    monkeypatch.setattr(opening, "noise_check", lambda key: "0" * 32)
    with pytest.raises(ServiceError, match="the noise of key"):
        open_service(file)
    assert entries(file) == ()


def test_changed_records_are_refused_until_their_version_is_new(on_sqlite, tmp_path):
    file = on_sqlite()
    initialise(file)
    first = answer(file)
    (tmp_path / "people.csv").write_text(PEOPLE + "F,0,7\n")
    with pytest.raises(ServiceError, match="new version"):
        open_service(file)
    assert len(entries(file)) == 1
    assert answer(on_sqlite(SERVICE.replace('"2026"', '"2027"'))) != first
    assert len(entries(file)) == 2
    with pytest.raises(BudgetExceeded):
        open_service(on_sqlite(SERVICE.replace('"2026"', '"2028"')))
    assert len(entries(file)) == 2


def test_a_broken_source_costs_nothing(on_sqlite, tmp_path):
    file = on_sqlite()
    initialise(file)
    (tmp_path / "people.csv").unlink()
    with pytest.raises(UnreadableSource, match="there is no file or folder"):
        open_service(file)
    assert entries(file) == ()


def test_what_is_wrong_with_one_dataset_of_several_is_said_with_its_name(on_sqlite, tmp_path):
    impossible = '[[dataset.census.structural_zeros]]\nsex = "F"\nage = "0"\n'
    file = on_sqlite(SERVICE + impossible)
    initialise(file)
    with pytest.raises(ImpossibleRecord, match="dataset 'census': "):
        open_service(file)
    assert entries(file) == ()


def test_the_budget_of_an_account_is_that_of_the_file_or_the_file_is_refused(on_sqlite):
    unpaid = SERVICE.replace('[dataset.census.budget]\nrho = "1/4"\n', "")
    with pytest.raises(ServiceError, match=r"\[dataset\.census\.budget\]"):
        initialise(on_sqlite(unpaid))
    initialise(on_sqlite())
    answer(on_sqlite(unpaid))
    other = on_sqlite(SERVICE.replace('"1/4"', '"1/2"'))
    for attempt in (open_service, initialise):
        with pytest.raises(ServiceError, match="never changes"):
            attempt(other)


def test_datasets_of_every_method_are_opened_from_one_file(on_sqlite, tmp_path):
    (tmp_path / "ptable.csv").write_text(
        "pcv,ckey,pvalue\n" + "".join(f"1,{k},{k % 3}\n" for k in range(256))
    )
    file = on_sqlite(SERVICE + OTHERS)
    initialise(file)
    service = open_service(file)
    assert {name: each.answers.method for name, each in service.datasets.items()} == {
        "census": ProtectionMethod.fixed,
        "panel": ProtectionMethod.interactive,
        "survey": ProtectionMethod.cell_key,
    }
    assert service.datasets["survey"].account is None
    assert "NOT differentially private" in service.datasets["survey"].answers.promise.statement
    service.ledger.create_account("ada", tb.PureDP(1), tb.Neighbours())
    service.datasets["panel"].answers.answer(("sex",), asker="ada")
    service.close()
    assert len(entries(file, "panel")) == len(entries(file, "ada")) == 1


def test_cell_keys_alone_need_neither_ledger_nor_key(on_sqlite, tmp_path):
    (tmp_path / "ptable.csv").write_text(
        "pcv,ckey,pvalue\n" + "".join(f"1,{k},{k % 3}\n" for k in range(256))
    )
    survey = OTHERS[OTHERS.index("[dataset.survey]") :]
    file = on_sqlite('[state]\ndatabase = "state.sqlite"\n' + survey)
    assert initialise(file)
    assert sum(answer(file, "survey", ("sex",))) >= 60
    assert not list(tmp_path.glob("ledger*"))


def test_another_folder_with_the_same_key_is_the_same_service(write, tmp_path, tmp_path_factory):
    file = write()
    initialise(file)
    first = answer(file)
    elsewhere = tmp_path_factory.mktemp("machine")
    shutil.copytree(tmp_path, elsewhere, dirs_exist_ok=True)
    shutil.rmtree(elsewhere / "artifacts", ignore_errors=True)
    assert answer(read_service_file(elsewhere / "service.toml")) == first


def test_progress_is_told_while_a_service_opens(on_sqlite):
    file = on_sqlite()
    initialise(file)
    told = set()
    open_service(file, progress=lambda what, done, total: told.add(what)).close()
    assert told


def test_a_forecast_reads_no_records_and_opens_nothing(on_sqlite, tmp_path):
    file = on_sqlite(SERVICE + OTHERS)
    (tmp_path / "people.csv").unlink()
    before = sorted(tmp_path.iterdir())
    made = {name: forecast(declared) for name, declared in file.datasets.items()}
    assert sorted(tmp_path.iterdir()) == before
    assert [row.margin for row in made["census"].errors] == [(), ("sex",), ("age",), ("sex", "age")]
    assert "ρ = 0.125" in made["census"].sentence
    assert [row.margin for row in made["panel"].errors] == [(), ("sex",)]
    assert "ε = 0.1" in made["panel"].sentence
    assert "NOT differentially private" in made["survey"].sentence
    assert made["survey"].errors == ()


def test_a_forecast_is_what_the_open_service_says_of_its_tables(on_sqlite):
    file = on_sqlite(SERVICE + OTHERS[: OTHERS.index("[dataset.survey]")])
    initialise(file)
    service = open_service(file)
    for name, declared in file.datasets.items():
        answers = service.datasets[name].answers
        assert [answers.expected(row.margin) for row in forecast(declared).errors] == list(
            forecast(declared).errors
        )
    service.close()


def acts(file):
    with open_state(file) as state:
        return [(entry.actor, entry.action, entry.object) for entry in state.log.entries()]


def test_what_is_created_and_opened_is_logged_once_however_often_it_starts(write):
    file = write()
    for _ in range(2):
        initialise(file)
    with tb.Ledger.open(file.ledger.where()) as ledger:
        identity = ledger.identity
        ledger.create_account("ada", tb.ZCDP(1), tb.Neighbours())
    for _ in range(2):
        open_service(file).close()
    answer(write(SERVICE.replace('"2026"', '"2027"')))
    made = acts(file)
    assert [act for act in made if act[1] != "token made"] == [
        ("command line", "ledger made", identity),
        ("command line", "key made", key_fingerprint(read_key(file.key))),
        ("command line", "account opened", "census"),
        ("service", "version opened", "census 2026"),
        ("service", "account found", "ada"),
        ("service", "version opened", "census 2027"),
    ]
    assert len(made) == 7


def test_a_start_that_is_refused_is_logged_once_in_words_that_hold_nothing_of_a_record(on_sqlite, tmp_path):
    file = on_sqlite()
    initialise(file)
    answer(file)
    key = file.key.read_text()
    file.key.write_text("ab" * 32)
    for attempt in (open_service, open_service, initialise):
        with pytest.raises(ServiceError, match="the key of census 2026"):
            attempt(file)
    file.key.write_text(key)
    (tmp_path / "people.csv").write_text(PEOPLE + "secret,0,7\n")
    with pytest.raises(UnknownLevel, match="column 'sex' holds a value outside its domain"):
        open_service(file)
    refused = [act for act in acts(file) if act[1] == "start refused"]
    assert [(actor, words[:22]) for actor, _, words in refused[:2]] == [
        ("service", f"the state {str(tmp_path)!r}"[:22]),
        ("command line", f"the state {str(tmp_path)!r}"[:22]),
    ]
    assert refused[2] == ("service", "start refused", "UnknownLevel")
    assert key.strip() not in str(refused)


def test_a_log_in_which_an_entry_was_changed_stops_the_start(on_sqlite, tmp_path):
    file = on_sqlite()
    initialise(file)
    with closing(sqlite3.connect(tmp_path / "state.sqlite")) as connection, connection:
        connection.execute("DROP TRIGGER log_delete")
        connection.execute("DELETE FROM log WHERE number = 2")
    for attempt in (open_service, initialise):
        with pytest.raises(ServiceError, match=r"changed entry 2, or has lost it.*Nothing was opened"):
            attempt(file)
    assert entries(file) == ()


def test_the_log_has_a_copy_where_the_file_names_one(on_sqlite, tmp_path):
    file = on_sqlite(SERVICE.replace("[ledger]", 'log = "custodian.jsonl"\n[ledger]', 1))
    assert file.log == tmp_path / "custodian.jsonl"
    initialise(file)
    answer(file)
    lines = [json.loads(line) for line in file.log.read_text().splitlines()]
    assert [(line["actor"], line["action"], line["object"]) for line in lines] == acts(file)
    assert lines[-1]["action"] == "version opened"


def test_what_was_changed_in_the_folder_of_what_is_kept_is_warned_of_logged_and_made_anew(
    on_sqlite, tmp_path, caplog
):
    file = on_sqlite(SERVICE.replace('"none"', '"shrink"'))
    initialise(file)
    first = answer(file)
    for changed in ("plan-*/plan.json", "tables-*/release/manifest.json"):
        caplog.clear()
        (place,) = (tmp_path / "artifacts").glob(changed)
        place.write_bytes(place.read_bytes() + b" ")
        assert answer(file) == first
        assert str(tmp_path / "artifacts" / place.relative_to(tmp_path / "artifacts").parts[0]) in caplog.text
        actor, action, words = acts(file)[-1]
        assert (actor, action) == ("service", "artifact made again")
        assert words in caplog.text
    assert len(entries(file)) == 1
