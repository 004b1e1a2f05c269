"""Which ledger paid, as a release says it."""

import json

import pytest

from tabulary.core.head import Head, Receipt
from tabulary.errors import ReleaseDamaged
from tabulary.release import Release
from tabulary.release.manifest import canonical_bytes, digest_of
from tests.unit.release.releases import a_release

RECEIPT = Receipt("cd" * 16, Head("<census> 2026", 1204, "ab" * 32))


@pytest.fixture
def paid(tmp_path):
    release = a_release(mechanism="margins")
    release.receipt = RECEIPT
    release.save(tmp_path / "out")
    return tmp_path / "out"


def manifest_of(folder):
    return json.loads((folder / "manifest.json").read_bytes())


def test_the_entry_that_paid_is_kept_in_the_folder(paid, tmp_path):
    assert manifest_of(paid)["ledger"] == RECEIPT.describe()
    loaded = Release.load(paid)
    loaded.verify()
    assert loaded.receipt == RECEIPT
    loaded.save(tmp_path / "again")
    assert Release.load(tmp_path / "again").receipt == RECEIPT


def test_a_release_that_no_ledger_paid_for_says_so(tmp_path):
    release = a_release()
    release.save(tmp_path / "out")
    assert manifest_of(tmp_path / "out")["ledger"] is None
    assert Release.load(tmp_path / "out").receipt is None
    assert "Paid for by" not in (tmp_path / "out" / "report.html").read_text()


def test_the_report_shows_the_entry_in_its_small_print(paid):
    page = (paid / "report.html").read_text()
    assert "entry 1,204 of account <code>&lt;census&gt; 2026</code>" in page
    assert RECEIPT.ledger in page
    assert RECEIPT.head.digest in page


@pytest.mark.parametrize(
    "forged",
    [
        "census",
        {},
        {**RECEIPT.describe(), "entries": 0},
        {**RECEIPT.describe(), "digest": "ab"},
        {**RECEIPT.describe(), "account": "cen\nsus"},
        {**RECEIPT.describe(), "spent": "1/8"},
    ],
)
def test_an_entry_that_no_ledger_could_have_is_found(paid, forged):
    manifest = {**manifest_of(paid), "ledger": forged}
    (paid / "manifest.json").write_bytes(canonical_bytes({**manifest, "digest": digest_of(manifest)}))
    with pytest.raises(ReleaseDamaged, match="'ledger' does not name the entry of a ledger"):
        Release.load(paid)


def test_a_manifest_must_say_whether_a_ledger_paid(paid):
    manifest = manifest_of(paid)
    del manifest["ledger"]
    (paid / "manifest.json").write_bytes(canonical_bytes({**manifest, "digest": digest_of(manifest)}))
    with pytest.raises(ReleaseDamaged, match="lacks field 'ledger'"):
        Release.load(paid)
