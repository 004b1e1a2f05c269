"""Tables that a table builder signs, and a client that takes no others."""

from dataclasses import replace

import pytest

import tabulary as tb
from tabulary.builder.app import create_app
from tabulary.builder.configuration import read_service_file
from tabulary.builder.opening import initialise, open_service
from tabulary.errors import ServiceUnreachable, UnusableKey
from tabulary.release import PublicKey, SigningKey
from tabulary.release.exchange import is_signed
from tabulary.release.signing import public_file
from tests.builders import Caller, service
from tests.serving import served
from tests.unit.builder.test_opening import PEOPLE, SERVICE

OFFICE = SigningKey.generate("Statistics <Office>")
TABLE = "/api/datasets/census/tables?by=sex"


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    made = replace(service(tmp_path_factory.mktemp("builder"), only=["census"]), signing_key=OFFICE)
    yield made
    made.close()


@pytest.fixture(scope="module")
def anyone(built):
    return Caller(create_app(built))


def test_the_document_of_a_table_is_signed_over_its_very_bytes(anyone):
    answer = anyone.get(TABLE)
    header = answer.headers["Tabulary-Signature"]
    assert answer.headers["Tabulary-Signer"] == OFFICE.public.fingerprint
    assert is_signed(answer.content, header, OFFICE.public)
    assert not is_signed(answer.content + b" ", header, OFFICE.public)
    other = anyone.get("/api/datasets/census/tables?by=age")
    assert not is_signed(other.content, header, OFFICE.public)


def test_the_same_question_has_the_same_signature_kept_or_made_anew(anyone, built):
    again = Caller(create_app(built)).get(TABLE)
    first = anyone.get(TABLE)
    assert (again.content, again.headers["Tabulary-Signature"]) == (
        first.content,
        first.headers["Tabulary-Signature"],
    )
    kept = anyone.get(TABLE, **{"If-None-Match": first.headers["ETag"]})
    assert kept.status_code == 304
    assert kept.headers["Tabulary-Signature"] == first.headers["Tabulary-Signature"]


def test_formats_that_do_not_say_what_they_answer_are_not_signed(anyone):
    assert "Tabulary-Signature" not in anyone.get("/api/datasets/census/tables.csv?by=sex").headers


def test_the_service_says_who_signs(anyone):
    signer = anyone.get("/api/datasets/census").json()["signer"]
    assert signer == {**OFFICE.public.describe(), "fingerprint": OFFICE.public.fingerprint}
    page = anyone.get("/datasets/census").text
    assert "signed by Statistics &lt;Office&gt;" in page
    assert OFFICE.public.fingerprint in page


def test_a_service_without_a_key_signs_nothing_and_says_so(tmp_path):
    made = service(tmp_path, only=["census"])
    anyone = Caller(create_app(made))
    assert "Tabulary-Signature" not in anyone.get(TABLE).headers
    assert anyone.get("/api/datasets/census").json()["signer"] is None
    assert "signed by" not in anyone.get("/datasets/census").text
    made.close()


def test_the_client_takes_tables_that_its_key_has_signed_and_no_others(built, tmp_path):
    with served(built) as url:
        assert tb.connect(url, key=OFFICE.public).table("census", ["sex"]).shape == (2,)
        assert tb.connect(url).table("census", ["sex"]).shape == (2,)
        other = SigningKey.generate("Statistics <Office>").public
        with pytest.raises(ServiceUnreachable, match="has not signed, and it was not used"):
            tb.connect(url, key=other).table("census", ["sex"])


def test_the_client_takes_no_unsigned_table_where_it_has_a_key(tmp_path):
    made = service(tmp_path, only=["census"])
    with served(made) as url, pytest.raises(ServiceUnreachable, match="has not signed"):
        tb.connect(url, key=OFFICE.public).table("census", ["sex"])


def test_the_service_file_names_the_key(tmp_path):
    (tmp_path / "people.csv").write_text(PEOPLE)
    path = tmp_path / "service.toml"
    path.write_text(SERVICE.replace("[key]\n", '[key]\nsigner = "office.pem"\n'))
    file = read_service_file(path)
    assert file.signer == tmp_path / "office.pem"
    initialise(file)
    with pytest.raises(UnusableKey, match="no signing key"):
        open_service(file)
    SigningKey.create(tmp_path / "office.pem", "Statistics Office")
    opened = open_service(file)
    assert opened.signer == PublicKey.read(public_file(tmp_path / "office.pem"))
    opened.close()
