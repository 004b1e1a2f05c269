"""`tabulary key`, `release --sign` and `verify --key`, as people use them."""

import stat

import pytest

from tabulary.cli.app import run
from tabulary.release.signing import PASSPHRASE_VARIABLE

PLAN = """
[data]
source = "people.csv"
[domain.sex]
levels = ["F", "M"]
[privacy]
epsilon = 1
[tables]
margins = "[sex]"
"""


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "people.csv").write_text("sex\n" + "F\nM\n" * 50)
    (tmp_path / "survey.toml").write_text(PLAN)
    return tmp_path


def said(capsys, *arguments, code=0):
    assert run(list(arguments)) == code
    captured = capsys.readouterr()
    return " ".join((captured.out + captured.err).split())


def make_key(capsys, name="office.pem"):
    return said(capsys, "key", "create", name, "--name", "Statistics Office").split("Fingerprint: ")[1]


def test_a_release_is_signed_and_checked(place, capsys):
    fingerprint = make_key(capsys)
    assert stat.S_IMODE((place / "office.pem").stat().st_mode) == 0o600
    assert f"Signer: Statistics Office Fingerprint: {fingerprint}" in said(
        capsys, "key", "show", "office.pem.pub"
    )
    made = said(capsys, "release", "survey.toml", "-o", "out", "--sign", "office.pem")
    assert f"Signed by Statistics Office, key {fingerprint}" in made
    plain = said(capsys, "verify", "out")
    assert f"Signed by Statistics Office, key {fingerprint}. Nobody has checked that" in plain
    assert "give the known key with --key" in plain
    assert "the key that you gave" in said(capsys, "verify", "out", "--key", "office.pem.pub")


def test_another_key_or_no_signature_has_the_exit_code_of_damage(place, capsys):
    make_key(capsys)
    make_key(capsys, "other.pem")
    said(capsys, "release", "survey.toml", "-o", "out")
    assert "Not signed." in said(capsys, "verify", "out")
    assert "it is not signed" in said(capsys, "verify", "out", "--key", "office.pem.pub", code=2)
    said(capsys, "release", "survey.toml", "-o", "signed", "--sign", "other.pem")
    assert "a signature of Statistics Office" in said(
        capsys, "verify", "signed", "--key", "office.pem.pub", code=2
    )


def test_a_key_that_cannot_sign_is_found_before_anything_is_read_or_written(place, capsys):
    (place / "people.csv").unlink()
    told = said(capsys, "release", "survey.toml", "-o", "out", "--sign", "office.pem", code=2)
    assert "there is no signing key" in told
    assert not (place / "out").exists()


def test_a_passphrase_comes_from_the_environment(place, capsys, monkeypatch):
    monkeypatch.setenv(PASSPHRASE_VARIABLE, "a long word")
    said(capsys, "key", "create", "office.pem", "--name", "Office", "--passphrase")
    assert b"ENCRYPTED" in (place / "office.pem").read_bytes()
    said(capsys, "release", "survey.toml", "-o", "out", "--sign", "office.pem")
    said(capsys, "verify", "out", "--key", "office.pem.pub")
    monkeypatch.delenv(PASSPHRASE_VARIABLE)
    told = said(capsys, "release", "survey.toml", "-o", "again", "--sign", "office.pem", code=2)
    assert PASSPHRASE_VARIABLE in told
