import numpy as np
import pytest

from tabulary.core.domain import Domain
from tabulary.core.privacy import ZCDP, ApproxDP, PureDP
from tabulary.errors import InvalidTable, ReleaseDamaged, ReleaseError, ReleaseExists, UnknownMargin
from tabulary.planning import plan
from tabulary.release import Release, staged_folder
from tests.unit.release.releases import PEOPLE, a_release, same_tables


def test_a_table_comes_in_the_order_in_which_it_is_asked_for():
    release = a_release()
    assert release["job", "age"].margin == ("job", "age")
    assert np.array_equal(release["job", "age"].counts, release["age", "job"].counts.T)


def test_a_table_that_is_not_there_is_refused_with_those_that_are():
    release = a_release()
    for wanted in ("nonsense", ("sex", "sex"), ("sex", "nonsense")):
        with pytest.raises(UnknownMargin, match=r"It has \[sex\]\[age job\]\[sex age job\], and every table"):
            release[wanted]


def test_every_margin_of_a_listed_table_is_there():
    release = a_release()
    assert release["age"].counts.tolist() == release["age", "job"].counts.sum(axis=1).tolist()
    assert release[()].counts == release["sex"].counts.sum()


def test_a_release_is_a_collection_of_its_tables():
    release = a_release()
    assert len(release) == 3
    assert [table.margin for table in release] == list(release.margins)
    assert repr(release) == "<Release of 3 tables at ε = 1: [sex][age job][sex age job]>"


def a_plan():
    return plan(PEOPLE, "[sex][age]", privacy=PureDP(1))


def test_a_release_is_made_of_measurements():
    with pytest.raises(InvalidTable, match="made of a Measurement"):
        Release(a_plan())


@pytest.mark.parametrize("title", ["two\nlines", 7])
def test_a_title_is_one_line_of_text(title):
    with pytest.raises(InvalidTable, match="title"):
        Release(a_release().measurement, title=title)


@pytest.mark.parametrize("privacy", [PureDP("1/3"), ApproxDP(1, 1e-9), ZCDP("1/8")])
@pytest.mark.parametrize("mechanism", ["cells", "margins"])
def test_what_is_saved_is_what_is_loaded(tmp_path, privacy, mechanism):
    release = a_release(privacy=privacy, mechanism=mechanism, title="Größe & <Zahl>", neighbours="replace")
    release.save(tmp_path / "out")
    loaded = Release.load(tmp_path / "out", expected_digest=release.digest)
    assert same_tables(loaded, release)
    assert (loaded.title, loaded.digest, loaded.folder) == (release.title, release.digest, release.folder)
    assert np.array_equal(loaded["sex"].standard_errors, release["sex"].standard_errors)


def test_a_release_with_a_total_is_saved_and_loaded(tmp_path):
    release = a_release(work="[][sex]")
    release.save(tmp_path / "out")
    assert (tmp_path / "out" / "tables" / "total.csv").is_file()
    assert Release.load(tmp_path / "out")[()].total == release[()].total


def test_attributes_with_the_names_of_columns_and_paths_are_saved_and_loaded(tmp_path):
    domain = Domain({"count": ["a"], "lower_95": ["x", "y"], "../up": ["=1+1", "é"], "total": ["t", "u"]})
    work = '[count lower_95 ../up total][../up][total][count "lower_95"]'
    release = a_release(domain, work)
    release.save(tmp_path / "out")
    assert same_tables(Release.load(tmp_path / "out"), release)
    assert [p.name for p in tmp_path.iterdir()] == ["out"]


def test_a_release_is_never_overwritten(tmp_path):
    release = a_release()
    release.save(tmp_path / "out")
    with pytest.raises(ReleaseExists, match="already exists, and a release is never overwritten"):
        a_release(seed=2).save(tmp_path / "out")
    release.verify()


def test_a_release_in_memory_has_no_folder_and_its_claims_hold():
    release = a_release()
    assert release.folder is None
    assert release.digest is None
    release.verify()
    with pytest.raises(ReleaseError, match="Save it first"):
        release.verify(expected_digest="0" * 64)


def test_a_release_knows_its_folder_only_once_it_is_published(tmp_path):
    release = a_release()
    with staged_folder(tmp_path / "out") as staged:
        assert release.write_into(staged) is release
        assert release.folder is None
    assert release.folder == tmp_path / "out"
    release.verify()


def test_a_saved_release_verifies_from_another_working_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    release = a_release()
    release.save("out/")
    monkeypatch.chdir("/")
    release.verify()
    assert release.folder == tmp_path / "out"


def test_verify_compares_with_the_digest_made_known_elsewhere(tmp_path):
    release = a_release()
    release.save(tmp_path / "out")
    release.verify(expected_digest=release.digest.upper())
    with pytest.raises(ReleaseDamaged, match="not the expected 'beef'"):
        release.verify(expected_digest="beef")
    with pytest.raises(ReleaseDamaged, match="not the expected 'beef'"):
        Release.load(tmp_path / "out", expected_digest="beef")


def test_verify_finds_another_sound_release_put_in_the_place_of_this_one(tmp_path):
    one, other = a_release(seed=1), a_release(seed=2)
    one.save(tmp_path / "out")
    other.save(tmp_path / "other")
    (tmp_path / "out").rename(tmp_path / "away")
    (tmp_path / "other").rename(tmp_path / "out")
    Release.load(tmp_path / "out")
    with pytest.raises(ReleaseDamaged, match="not the expected"):
        one.verify()


@pytest.mark.parametrize("kind", ["nothing", "file"])
def test_loading_what_is_not_a_folder_says_so(tmp_path, kind):
    if kind == "file":
        (tmp_path / "out").write_text("hello")
    with pytest.raises(ReleaseError, match="there is no release at"):
        Release.load(tmp_path / "out")
