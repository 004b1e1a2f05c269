"""Keys and signatures, and releases that say who made them."""

import base64
import json
import shutil
import stat
import sys

import pytest
from cryptography.hazmat.primitives import serialization

from tabulary.errors import MissingExtra, ReleaseDamaged, ReleaseError, UnusableKey
from tabulary.release import PublicKey, Release, SigningKey
from tabulary.release.manifest import canonical_bytes, digest_of
from tabulary.release.signing import (
    PASSPHRASE_VARIABLE,
    public_file,
    signature_from_text,
    signature_text,
)
from tests.unit.release.releases import a_release, same_tables

OFFICE = SigningKey.generate("Statistics Office")
FORGER = SigningKey.generate("Statistics Office")


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    folder = tmp_path_factory.mktemp("release") / "out"
    a_release(work="[sex]", title="People").save(folder, signing_key=OFFICE)
    return folder


@pytest.fixture
def folder(original, tmp_path):
    return shutil.copytree(original, tmp_path / "out")


@pytest.fixture
def key_file(tmp_path):
    SigningKey.create(tmp_path / "office.pem", "Statistics Office")
    return tmp_path / "office.pem"


def resealed(folder, change):
    """Change the manifest the way a forger would: canonical, with a digest that fits."""
    path = folder / "manifest.json"
    manifest = json.loads(path.read_bytes())
    change(manifest)
    path.write_bytes(canonical_bytes({**manifest, "digest": digest_of(manifest)}))


def damage(folder, **given):
    with pytest.raises(ReleaseDamaged, match="is not as it was published") as found:
        Release.load(folder, **given)
    return str(found.value)


def test_a_key_is_written_for_its_owner_alone_and_read_again(key_file):
    assert stat.S_IMODE(key_file.stat().st_mode) == 0o600
    read = SigningKey.read(key_file)
    assert read.public == PublicKey.read(public_file(key_file))
    assert read.public.name == "Statistics Office"
    assert read.public.holds(read.sign(b"words"), b"words")
    assert not read.public.holds(read.sign(b"words"), b"other words")
    assert read.sign(b"words") == read.sign(b"words")


def test_other_programs_read_the_keys(key_file):
    private = serialization.load_pem_private_key(key_file.read_bytes(), None)
    public = serialization.load_pem_public_key(public_file(key_file).read_bytes())
    public.verify(private.sign(b"words"), b"words")


@pytest.mark.parametrize("taken", ["office.pem", "office.pem.pub"])
def test_a_key_is_never_overwritten(tmp_path, taken):
    (tmp_path / taken).write_text("mine")
    with pytest.raises(UnusableKey, match="never overwritten"):
        SigningKey.create(tmp_path / "office.pem", "Office")
    assert [path.name for path in tmp_path.iterdir()] == [taken]
    assert (tmp_path / taken).read_text() == "mine"


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o644])
def test_a_private_key_that_others_may_read_is_refused(key_file, mode):
    key_file.chmod(mode)
    with pytest.raises(UnusableKey, match=r"others than its owner.*chmod 600"):
        SigningKey.read(key_file)


def test_a_key_with_a_passphrase_needs_it(tmp_path, monkeypatch):
    path = tmp_path / "office.pem"
    made = SigningKey.create(path, "Office", passphrase="a long word")
    assert b"ENCRYPTED" in path.read_bytes()
    with pytest.raises(UnusableKey, match=PASSPHRASE_VARIABLE):
        SigningKey.read(path)
    with pytest.raises(UnusableKey, match="the passphrase is not its own"):
        SigningKey.read(path, passphrase="another")
    assert SigningKey.read(path, passphrase="a long word") == made
    monkeypatch.setenv(PASSPHRASE_VARIABLE, "a long word")
    assert SigningKey.read(path).public == made.public


def test_a_key_without_a_passphrase_is_read_whatever_the_environment_says(key_file, monkeypatch):
    monkeypatch.setenv(PASSPHRASE_VARIABLE, "a long word")
    assert SigningKey.read(key_file).public.name == "Statistics Office"


@pytest.mark.parametrize(
    "content", [b"", b"Signer: x\n", b"-----BEGIN", b"\xff\xfe", b"Signer: x\n" + b"a" * 20_000]
)
def test_what_is_no_key_is_refused(tmp_path, content):
    path = tmp_path / "key"
    path.write_bytes(content)
    path.chmod(0o600)
    with pytest.raises(UnusableKey, match=r"names no signer|cannot be read as an Ed25519 private key"):
        SigningKey.read(path)
    with pytest.raises(UnusableKey, match=r"names no signer|holds no Ed25519 public key"):
        PublicKey.read(path)


def test_a_key_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(UnusableKey, match="no signing key"):
        SigningKey.read(tmp_path / "none")
    with pytest.raises(UnusableKey, match="cannot be read"):
        PublicKey.read(tmp_path / "none")


@pytest.mark.parametrize("name", ["", " x", "a\nb", "x" * 201, "a\x1b[2J"])
def test_a_signers_name_is_one_line_of_text(name):
    with pytest.raises(UnusableKey, match="printable text on one line"):
        SigningKey.generate(name)


def test_a_signing_key_shows_nothing_of_itself(key_file):
    shown = repr(SigningKey.read(key_file))
    assert "private" not in shown.lower()
    assert shown == "SigningKey(public=PublicKey(name='Statistics Office'))"


@pytest.mark.parametrize(
    "text", ["", "x", "=" * 88, " " + signature_text(bytes(64)), signature_text(bytes(63))]
)
def test_a_signature_is_written_one_way(text):
    assert signature_from_text(text) is None
    assert signature_from_text(signature_text(bytes(64))) == bytes(64)


def test_a_signed_release_is_read_and_says_who_signed_it(folder):
    loaded = Release.load(folder)
    assert loaded.signer == OFFICE.public
    loaded.verify(key=OFFICE.public)
    assert same_tables(loaded, a_release(work="[sex]"))
    page = (folder / "report.html").read_text()
    assert "signed by <b>Statistics Office</b>" in page
    assert OFFICE.public.fingerprint in page
    assert "--key" in page


def test_a_release_is_signed_and_checked_with_the_files_of_a_key(key_file, tmp_path):
    release = a_release(work="[sex]")
    release.save(tmp_path / "out", signing_key=key_file)
    release.verify(key=public_file(key_file))
    assert release.signer == PublicKey.read(public_file(key_file))


def test_anyone_with_ed25519_can_check_the_signature(key_file, tmp_path):
    a_release(work="[sex]").save(tmp_path / "out", signing_key=key_file)
    public = serialization.load_pem_public_key(public_file(key_file).read_bytes())
    signature = base64.b64decode((tmp_path / "out" / "manifest.sig").read_text())
    public.verify(
        signature, b"tabulary-release/1 signature\n" + (tmp_path / "out" / "manifest.json").read_bytes()
    )


def test_an_unsigned_release_says_so_and_does_not_pass_for_a_signed_one(tmp_path):
    release = a_release(work="[sex]")
    with pytest.raises(ReleaseError, match="in memory"):
        release.verify(key=OFFICE.public)
    release.save(tmp_path / "out")
    assert release.signer is None
    assert "This release is not signed." in (tmp_path / "out/report.html").read_text()
    with pytest.raises(ReleaseDamaged, match="it is not signed, but a signature of Statistics Office"):
        release.verify(key=OFFICE.public)


def test_a_release_signed_with_another_key_of_the_same_name_is_found(folder):
    message = damage(folder, key=FORGER.public)
    assert f"signed by Statistics Office, key {OFFICE.public.fingerprint}" in message
    assert FORGER.public.fingerprint in message


def test_a_consistent_forgery_is_found_with_the_key_and_shows_another_fingerprint_without_it(tmp_path):
    forged = tmp_path / "forged"
    a_release(work="[sex]", title="People", seed=2).save(forged, signing_key=FORGER)
    assert Release.load(forged).signer.fingerprint != OFFICE.public.fingerprint
    assert "a signature of Statistics Office" in damage(forged, key=OFFICE.public)


def test_with_a_key_nothing_but_the_manifest_of_another_signer_is_read(folder):
    for file in folder.rglob("*"):
        if file.is_file() and file.stem != "manifest":
            file.write_bytes(b"not what it was")
    assert f"signed by Statistics Office, key {OFFICE.public.fingerprint}" in damage(
        folder, key=FORGER.public
    )


def test_a_stripped_signature_is_found(folder):
    (folder / "manifest.sig").unlink()
    assert "the signature manifest.sig is missing" in damage(folder)
    assert "the signature manifest.sig is missing" in damage(folder, key=OFFICE.public)


def test_a_signature_of_another_release_is_found(folder, tmp_path):
    a_release(work="[sex]", title="Others").save(tmp_path / "other", signing_key=OFFICE)
    shutil.copy(tmp_path / "other/manifest.sig", folder / "manifest.sig")
    assert "was not made by it over this manifest" in damage(folder)


@pytest.mark.parametrize(
    "content", [b"", b"\n", b"x" * 89, b"A" * 88 + b"\n", b"x" * 10_000, b"\xff" * 89], ids=range(6)
)
def test_what_is_no_signature_is_found(folder, content):
    (folder / "manifest.sig").write_bytes(content)
    assert "manifest.sig" in damage(folder)


def test_a_signature_written_in_another_way_is_found(folder):
    path = folder / "manifest.sig"
    path.write_bytes(path.read_bytes().strip())
    assert "was not made by it over this manifest" in damage(folder)


def test_another_signer_in_the_manifest_is_found(folder):
    resealed(folder, lambda manifest: manifest.update(signer=FORGER.public.describe()))
    assert "was not made by it over this manifest" in damage(folder)
    resealed(folder, lambda manifest: manifest["signer"].update(name="Another Office"))
    assert "was not made by it over this manifest" in damage(folder)


def test_a_signature_without_a_signer_is_not_part_of_a_release(folder):
    resealed(folder, lambda manifest: manifest.update(signer=None))
    assert "manifest.sig is not part of this release" in damage(folder)


@pytest.mark.parametrize(
    "signer",
    [1, "x", {}, {"name": "x"}, {"name": "x", "public_key": "AA=="}, {"name": "", "public_key": "A" * 44}],
)
def test_a_signer_that_is_nobody_is_found(folder, signer):
    resealed(folder, lambda manifest: manifest.update(signer=signer))
    assert "'signer' names nobody" in damage(folder)


def test_without_the_package_a_signed_release_is_refused_with_what_to_install(folder, monkeypatch, key_file):
    for name in [name for name in sys.modules if name.split(".")[0] == "cryptography"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "cryptography", None)
    for use in (
        lambda: Release.load(folder),
        lambda: SigningKey.read(key_file),
        lambda: SigningKey.generate("x"),
        lambda: PublicKey.read(public_file(key_file)),
    ):
        with pytest.raises(MissingExtra, match=r"pip install 'tabulary\[sign\]'"):
            use()


def test_without_the_package_an_unsigned_release_is_read(tmp_path, monkeypatch):
    a_release(work="[sex]").save(tmp_path / "out")
    monkeypatch.setitem(sys.modules, "cryptography", None)
    Release.load(tmp_path / "out")
