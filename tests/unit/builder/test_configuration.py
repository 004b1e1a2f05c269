import os
import re
from dataclasses import fields

import pytest

import tabulary as tb
from tabulary.builder.configuration import read_service_file
from tabulary.builder.declarations import CellKeyProtection, FixedProtection, InteractiveProtection, Payment
from tabulary.builder.key_file import create_key, read_key
from tabulary.builder.service import ServiceLimits
from tabulary.errors import InvalidSettings, PublicError, ServiceError
from tabulary.workflows.answering.answers import ProtectionMethod

SERVICE = """
title = "Tables of the census"
[server]
port = 0
workers = 2
[state]
database = "state.sqlite"
[ledger]
database = "ledger.sqlite"
[key]
file = "secret.key"
[limits]
burst = 7
[dataset.census]
title = "Census 2026"
version = "2026"
source = "people.csv"
[dataset.census.privacy]
rho = "1/8"
[dataset.census.budget]
rho = "1/2"
[dataset.census.tables]
order = 2
forbidden = [["sex", "ward"]]
[dataset.census.domain.sex]
levels = ["F", "M"]
label = "Sex"
description = "As registered at birth"
[dataset.census.domain.age]
bins = [0, 15, 65]
[dataset.census.domain.ward]
levels = [1, 2, 3]
"""

CELL_KEYS = """
[state]
database = "state.sqlite"
[dataset.survey]
version = "1"
source = "survey.csv"
method = "cell-key"
[dataset.survey.tables]
order = 1
[dataset.survey.keys]
modulus = 256
[dataset.survey.ptable]
file = "ptable.csv"
minimum = 10
[dataset.survey.domain.sex]
levels = ["F", "M"]
"""

PASSWORD = "open-sesame-4711"


@pytest.fixture
def read(tmp_path):
    def read_text(text):
        (tmp_path / "service.toml").write_text(text, encoding="utf-8")
        return read_service_file(tmp_path / "service.toml")

    return read_text


def test_a_service_file_says_what_is_served_and_how(read, tmp_path):
    file = read(SERVICE)
    census = file.datasets["census"]
    assert file.title == "Tables of the census"
    assert (file.listening.host, file.listening.port, file.listening.workers) == ("127.0.0.1", 0, 2)
    assert (file.limits.burst, file.limits.requests_a_minute) == (7, 600)
    assert census.method is ProtectionMethod.fixed
    assert isinstance(census.protection, FixedProtection)
    assert census.payment == Payment(tb.ZCDP("1/8"), tb.Neighbours(), "census", tb.ZCDP("1/2"))
    assert census.allowed_tables.order == 2
    assert census.allowed_tables.forbidden == (("sex", "ward"),)
    assert census.labels[0].name("sex") == "Sex"
    assert census.labels[0].variable("sex").description == "As registered at birth"
    assert census.labels[0].name("age") == "age"


def test_every_limit_may_be_set_and_the_names_of_the_service_are_told(read):
    limits = {limit.name: number for number, limit in enumerate(fields(ServiceLimits), 2)}
    told = "\n".join(f"{name} = {number}" for name, number in limits.items() if name != "cache_bytes")
    told, limits["cache_bytes"] = f'{told}\ncache = "64 MiB"', 64 * 2**20
    file = read(SERVICE.replace("burst = 7", told).replace("port = 0", 'hosts = ["tables.example:8443"]'))
    assert file.limits == ServiceLimits(**limits)
    assert file.listening.hosts.allow("tables.example:8443")
    assert file.listening.hosts.allow("localhost:8000")
    assert not file.listening.hosts.allow("tables.example")


def test_paths_are_relative_to_the_file_wherever_the_command_is_run(read, tmp_path, monkeypatch):
    read(SERVICE)
    monkeypatch.chdir(tmp_path.parent)
    file = read_service_file(f"{tmp_path.name}/service.toml")
    assert file.datasets["census"].source == tmp_path / "people.csv"
    assert file.state.where() == tmp_path / "state.sqlite"
    assert file.ledger.where() == tmp_path / "ledger.sqlite"
    assert file.key == tmp_path / "secret.key"
    assert file.artifacts == tmp_path / "artifacts"


def test_an_interactive_dataset_has_the_price_of_a_question(read):
    text = SERVICE.replace('source = "people.csv"', 'source = "people.csv"\nmethod = "interactive"')
    panel = read(text).datasets["census"]
    assert isinstance(panel.protection, InteractiveProtection)
    assert panel.payment.cost == tb.ZCDP("1/8")


def test_a_dataset_with_cell_keys_needs_neither_ledger_nor_key(read):
    survey = read(CELL_KEYS).datasets["survey"]
    assert isinstance(survey.protection, CellKeyProtection)
    assert survey.payment is None
    assert (survey.protection.keys.modulus, survey.protection.minimum) == (256, 10)
    assert survey.protection.sparsity is None
    sparse = read(CELL_KEYS + "[dataset.survey.sparsity]\nones = 0.1").datasets["survey"].protection
    assert str(sparse.sparsity.ones) == "1/10"
    assert str(sparse.sparsity.ones_and_twos) == "1/2"


def test_the_perturbation_table_of_a_service_never_refuses_a_large_count(read, tmp_path):
    (tmp_path / "ptable.csv").write_text("pcv,ckey,pvalue\n1,0,1\n1,1,-1\n2,0,2\n2,1,-2\n")
    text = CELL_KEYS.replace("modulus = 256", "modulus = 2")
    assert read(text).datasets["survey"].protection.ptable().above == "last"
    repeated = text.replace("minimum = 10", "repeat = 1")
    assert read(repeated).datasets["survey"].protection.ptable().above == ("repeat", 1)


@pytest.mark.parametrize("text", [SERVICE, CELL_KEYS])
def test_records_behind_an_address_are_refused_with_the_reason_and_without_a_secret(read, text):
    address = f"postgresql://reader:{PASSWORD}@db/census"
    with pytest.raises(
        InvalidSettings, match=r"\[dataset\.\w+\] source .* fingerprint .* Parquet"
    ) as refused:
        read(re.sub(r"(people|survey)\.csv", address, text))
    assert PASSWORD not in str(refused.value)
    assert "reader" not in str(refused.value)


@pytest.mark.parametrize(
    ("old", "new", "named"),
    [
        ("[server]", "colour = 3\n[server]", ["colour"]),
        ("port = 0", 'port = "http"', ["[server]", "port", "whole number"]),
        ("port = 0", "port = 70000", ["[server]", "port", "65535"]),
        ("port = 0", "prot = 1", ["[server]", "'prot'", "'port'"]),
        ("port = 0", 'host = ""', ["[server]", "host"]),
        ("port = 0", "proxy = 1", ["[server]", "proxy", "true or false"]),
        ("port = 0", 'hosts = "tables.example"', ["[server]", "hosts", "list"]),
        ("port = 0", 'hosts = ["*"]', ["[server]", "hosts", "'tables.example'"]),
        ("port = 0", 'hosts = ["https://tables.example"]', ["[server]", "hosts", "no scheme"]),
        ("burst = 7", "tests_a_caller = 0", ["[limits]", "tests_a_caller"]),
        ("burst = 7", "header_seconds = 0.5", ["[limits]", "header_seconds", "whole number"]),
        ("workers = 2", "workers = 0", ["[server]", "workers"]),
        ("workers = 2", "workers = true", ["[server]", "workers", "whole number"]),
        ("burst = 7", "burst = 0", ["[limits]", "burst"]),
        ("burst = 7", "brust = 7", ["[limits]", "'brust'"]),
        ("burst = 7", "cache = 512", ["[limits]", "cache", "text"]),
        ("burst = 7", 'cache = "512"', ["[limits]", "cache", "'64 MiB'"]),
        ("burst = 7", 'cache = "-1 MiB"', ["[limits]", "cache", "'64 MiB'"]),
        ("burst = 7", 'cache = "1023 KiB"', ["[limits]", "cache", "1,047,552", "'1 MiB' to '1 TiB'"]),
        ("burst = 7", 'cache = "2 TiB"', ["[limits]", "cache", "'1 MiB' to '1 TiB'"]),
        ('database = "state.sqlite"', "", ["[state]", "'database'"]),
        ('database = "state.sqlite"', 'database = "mysql://host/db"', ["[state]", "postgresql://"]),
        ('database = "state.sqlite"', 'database = "ledger.sqlite"', ["[ledger]", "[state]", "same"]),
        ('[ledger]\ndatabase = "ledger.sqlite"', "", ["[ledger]", "'census'"]),
        ('[key]\nfile = "secret.key"', "", ["[key]", "'census'"]),
        ('file = "secret.key"', 'flie = "secret.key"', ["[key]", "'file'"]),
        ('version = "2026"', "", ["[dataset.census]", "'version'"]),
        ('version = "2026"', "version = 2026", ["[dataset.census]", "version", "text"]),
        ('version = "2026"', 'version = "2026, records"', ["[dataset.census]", "version"]),
        ('source = "people.csv"', "", ["[dataset.census]", "'source'"]),
        ('source = "people.csv"', 'source = "p.csv"\ntable = "people"', ["[dataset.census]", "'table'"]),
        (
            'source = "people.csv"',
            'source = "p.csv"\nmethod = "magic"',
            ["[dataset.census]", "method", "'fixed'"],
        ),
        ('source = "people.csv"', 'source = "p.csv"\nsauce = 1', ["[dataset.census]", "'sauce'"]),
        ("[dataset.census.privacy]", "[dataset.census.secrecy]", ["[dataset.census]", "'privacy'"]),
        ('rho = "1/8"', "rho = -1", ["[dataset.census.privacy]", "rho must be positive"]),
        ('rho = "1/8"', "", ["[dataset.census.privacy]", "`rho`"]),
        ('rho = "1/8"', 'rho = "1/8"\nneighbours = "cousins"', ["[dataset.census.privacy]", "not 'cousins'"]),
        (
            'rho = "1/8"',
            'rho = "1/8"\nneighbours = "replace"\nsensitive = ["sex"]',
            ["[dataset.census.privacy] sensitive"],
        ),
        ('rho = "1/8"', "rho = 1", ["[dataset.census.budget]", "even once"]),
        ('rho = "1/2"', "epsilon = 1", ["[dataset.census.budget]", "cannot count"]),
        ("order = 2", "", ["[dataset.census.tables]", "'order'"]),
        ("order = 2", "order = 4", ["[dataset.census.tables]", "1 to 3"]),
        ("order = 2", "order = 2\nmax_cells = 0", ["[dataset.census.tables]", "cells"]),
        ('forbidden = [["sex", "ward"]]', 'forbidden = ["sex"]', ["[dataset.census.tables]", "forbidden"]),
        ('forbidden = [["sex", "ward"]]', 'forbidden = [["sox"]]', ["[dataset.census.tables]", "sox"]),
        ('levels = ["F", "M"]', "", ["[dataset.census.domain.sex]", "`levels`"]),
        ('levels = ["F", "M"]', 'levels = ["F", "F"]', ["[dataset.census.domain]", "'sex'"]),
        ('label = "Sex"', "label = 3", ["[dataset.census.domain.sex]", "label", "text"]),
        ('label = "Sex"', 'lable = "Sex"', ["[dataset.census.domain.sex]", "'lable'", "'label'"]),
        (
            "[dataset.census.tables]",
            '[dataset.census.mechanism]\nreconstruct = "lp"\n[dataset.census.tables]',
            ["[dataset.census.mechanism]", "reconstruct", "'shrink'"],
        ),
        (
            "[dataset.census.tables]",
            "[dataset.census.mechanism]\nrecords = 0\n[dataset.census.tables]",
            ["[dataset.census.mechanism]", "records"],
        ),
    ],
)
def test_what_cannot_be_is_refused_with_file_table_and_key(read, old, new, named):
    assert old in SERVICE
    with pytest.raises(PublicError, match=r"^service\.toml") as caught:
        read(SERVICE.replace(old, new, 1))
    for word in named:
        assert word in str(caught.value)


@pytest.mark.parametrize("name", ["a/b", "a b", "..", "é", "x" * 41])
def test_a_dataset_has_a_name_that_an_address_can_hold(read, name):
    with pytest.raises(InvalidSettings, match="name of a dataset"):
        read(SERVICE.replace("dataset.census", f'dataset."{name}"'))


def test_a_file_without_datasets_or_that_is_none_is_refused(read, tmp_path):
    with pytest.raises(InvalidSettings, match="no dataset"):
        read('[state]\ndatabase = "state.sqlite"\n[dataset]')
    with pytest.raises(InvalidSettings, match="not valid TOML"):
        read("[state")
    with pytest.raises(InvalidSettings, match="no service file"):
        read_service_file(tmp_path / "absent.toml")


@pytest.mark.parametrize("old", ["modulus = 256", 'file = "ptable.csv"'])
def test_cell_keys_need_keys_and_a_perturbation_table(read, old):
    with pytest.raises(PublicError, match=r"service\.toml: \[dataset\.survey\.(keys|ptable)\]"):
        read(CELL_KEYS.replace(old, ""))


@pytest.mark.parametrize("rule", ["ones = 2", "zeros = 1"])
def test_a_rule_of_sparsity_that_cannot_be_is_refused(read, rule):
    with pytest.raises(InvalidSettings, match=r"\[dataset\.survey\.sparsity\]"):
        read(f"{CELL_KEYS}[dataset.survey.sparsity]\n{rule}")


def test_a_database_may_be_named_by_the_environment(read, tmp_path, monkeypatch):
    file = read(SERVICE.replace('"ledger.sqlite"', '"env:TABULARY_TEST_LEDGER"'))
    monkeypatch.delenv("TABULARY_TEST_LEDGER", raising=False)
    with pytest.raises(ServiceError, match="'TABULARY_TEST_LEDGER'"):
        file.ledger.where()
    monkeypatch.setenv("TABULARY_TEST_LEDGER", f"postgresql://me:{PASSWORD}@db/census")
    assert file.ledger.where() == f"postgresql://me:{PASSWORD}@db/census"
    monkeypatch.setenv("TABULARY_TEST_LEDGER", "books.sqlite")
    assert file.ledger.where() == tmp_path / "books.sqlite"


def test_a_password_may_stand_in_a_file_of_its_own_that_others_cannot_read(read, tmp_path):
    text = SERVICE.replace('"ledger.sqlite"', '"postgresql://me@db/census"\npassword_file = "password"')
    place = read(text).ledger
    with pytest.raises(ServiceError, match="no password file"):
        place.where()
    (tmp_path / "password").write_text(f"{PASSWORD}\n")
    (tmp_path / "password").chmod(0o640)
    with pytest.raises(ServiceError, match="chmod 600"):
        place.where()
    (tmp_path / "password").chmod(0o600)
    assert place.where() == f"postgresql://me:{PASSWORD}@db/census"


def test_no_password_is_ever_shown(read, tmp_path, monkeypatch):
    (tmp_path / "password").write_text(PASSWORD)
    (tmp_path / "password").chmod(0o600)
    monkeypatch.setenv("TABULARY_TEST_LEDGER", f"mysql://me:{PASSWORD}@db/census")
    said = []
    for database, reason in (
        (f'"postgresql://me:{PASSWORD}@db:port/census"', "address cannot be read"),
        (f'"mysql://me:{PASSWORD}@db/census"', "a database is the path of a SQLite file"),
        (f'"postgresql://me:{PASSWORD}@db/census"\npassword_file = "password"', "holds a password already"),
        (f'"postgresql://me:{PASSWORD}@db/census"\nsize = 3', "unknown key 'size'"),
        (f'"me:{PASSWORD}@db"\npassword_file = "password"', "a password_file goes with an address"),
        ('"env:TABULARY_TEST_LEDGER"', "^a database is the path of a SQLite file"),
    ):
        with pytest.raises(PublicError, match=reason) as caught:
            read(SERVICE.replace('"ledger.sqlite"', database)).ledger.where()
        said.append(str(caught.value))
    file = read(SERVICE.replace('"ledger.sqlite"', f'"postgresql://me:{PASSWORD}@db/census"'))
    said += [repr(file), str(file), repr(file.ledger), str(file.ledger)]
    assert PASSWORD in file.ledger.where()
    assert PASSWORD not in " ".join(said)


def test_a_new_key_is_secret_fresh_and_never_overwrites_another(tmp_path):
    first, second = tmp_path / "first.key", tmp_path / "second.key"
    umask = os.umask(0)
    try:
        create_key(first)
    finally:
        os.umask(umask)
    create_key(second)
    assert first.stat().st_mode & 0o777 == 0o600
    assert len(read_key(first)) == 32
    assert read_key(first) == read_key(first) != read_key(second)
    before = first.read_bytes()
    with pytest.raises(ServiceError, match="never overwritten"):
        create_key(first)
    assert first.read_bytes() == before
    with pytest.raises(ServiceError, match="no key can be created"):
        create_key(tmp_path / "absent" / "secret.key")


@pytest.mark.parametrize(
    ("content", "mode", "words"),
    [
        (None, 0o600, ["no key file", "pay for"]),
        ("ab" * 32, 0o644, ["chmod 600"]),
        ("ab" * 32, 0o620, ["chmod 600"]),
        ("ab" * 31, 0o600, ["too short", "pay for"]),
        ("xy" * 32, 0o600, ["hexadecimal digits are expected", "pay for"]),
        ("", 0o600, ["one line"]),
        ("ab" * 32 + "\n" + "cd" * 32, 0o600, ["one line"]),
    ],
)
def test_a_key_that_is_missing_open_short_or_no_key_is_refused_and_not_shown(tmp_path, content, mode, words):
    path = tmp_path / "secret.key"
    if content is not None:
        path.write_text(content)
        path.chmod(mode)
    with pytest.raises(ServiceError, match=words[0]) as caught:
        read_key(path)
    for word in words:
        assert word in str(caught.value)
    assert not content or content[:16] not in str(caught.value)
