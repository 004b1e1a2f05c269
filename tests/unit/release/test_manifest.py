import hashlib
import json
import re

import pytest

from tabulary.core.privacy import ZCDP, ApproxDP, PureDP
from tabulary.release.manifest import SCHEMA, agree, canonical_bytes
from tests.unit.release.releases import a_release


@pytest.fixture
def saved(tmp_path):
    release = a_release(title="People of nowhere")
    release.save(tmp_path / "out")
    return release


def manifest_of(release):
    return json.loads((release.folder / "manifest.json").read_bytes())


def test_the_manifest_says_what_was_done_and_what_is_promised(saved):
    manifest = manifest_of(saved)
    assert manifest["schema"] == SCHEMA
    assert [labels["title"] for labels in manifest["labels"]] == ["People of nowhere"]
    assert manifest["plan"] == saved.plan.describe()
    assert manifest["plan_digest"] == saved.plan.digest()
    assert manifest["promise"]["statement"].endswith("ε = 1.")
    assert [row["margin"] for row in manifest["expected_errors"]] == [list(m) for m in saved.margins]


def test_the_manifest_fingerprints_every_other_file(saved):
    files = manifest_of(saved)["files"]
    there = {p.relative_to(saved.folder).as_posix() for p in saved.folder.rglob("*") if p.is_file()}
    assert there == {*files, "manifest.json"}
    for name, stated in files.items():
        data = (saved.folder / name).read_bytes()
        assert stated == {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}


def test_the_digest_can_be_computed_by_anyone_with_json_and_sha256(saved):
    manifest = manifest_of(saved)
    stated = manifest.pop("digest")
    text = json.dumps(manifest, sort_keys=True, indent=2, ensure_ascii=False) + "\n"
    assert hashlib.sha256(text.encode()).hexdigest() == stated == saved.digest


def test_the_manifest_is_written_in_the_canonical_way(saved):
    assert canonical_bytes(manifest_of(saved)) == (saved.folder / "manifest.json").read_bytes()


def test_the_manifest_tells_the_day_and_no_more(saved):
    manifest = manifest_of(saved)
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", manifest["date"])
    text = json.dumps(manifest)
    assert not re.search(r"\d\d:\d\d", text)
    assert str(saved.folder.parent) not in text


@pytest.mark.parametrize("privacy", [PureDP("1/3"), ApproxDP(1, 1e-9), ZCDP("1/8")])
def test_scales_are_exact_fractions(tmp_path, privacy):
    release = a_release(privacy=privacy)
    release.save(tmp_path / "out")
    for measured, stated in zip(release.plan.measured, manifest_of(release)["plan"]["measured"], strict=True):
        assert stated["noise"] == measured.noise.describe()


@pytest.mark.parametrize(
    ("stated", "derived"),
    [(1, True), (1, 1.0), ([1], [1, 2]), ({"a": 1}, {"b": 1}), (1.0, 1.0001), ("1", 1), (float("nan"), 1.0)],
)
def test_claims_that_differ_do_not_agree(stated, derived):
    assert not agree(stated, derived)
