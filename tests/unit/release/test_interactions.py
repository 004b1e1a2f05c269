"""Releases in which what no sensitive attribute can change has no noise."""

import json

import numpy as np
import pytest

from tabulary.core.domain import Domain
from tabulary.core.neighbours import Neighbours
from tabulary.core.privacy import PureDP
from tabulary.planning import plan
from tabulary.release import Release
from tests.releases import release_of
from tests.unit.release.releases import a_release, same_tables

DOMAIN = Domain({"sex": "FM", "age": range(3), "job": range(3)})
NEAR = Neighbours("replace", 1, ("job",))


def a_sensitive_release(engine=None, work="[sex age][age job][sex job]"):
    planned = plan(DOMAIN, work, privacy=PureDP(1), neighbours=NEAR, reconstruct="none")
    counts = {margin: np.full(DOMAIN.shape_of(margin), 50.0) for margin in planned.workload}
    return release_of(planned, counts, engine=engine)


def manifest_of(folder):
    return json.loads((folder / "manifest.json").read_bytes())


@pytest.fixture(params=[None, "compiled"])
def folder(tmp_path, request):
    a_sensitive_release(request.param).save(tmp_path / "out")
    return tmp_path / "out"


def test_the_promise_names_the_interactions_that_have_no_noise(folder):
    manifest = manifest_of(folder)
    assert (
        "the interaction of sex and age, beyond their own tables" in manifest["promise"]["not_promised"][-1]
    )
    loaded = Release.load(folder)
    assert loaded.engine == manifest["software"]["engine"]
    assert same_tables(loaded, a_sensitive_release())


def test_further_formats_and_the_engine_are_kept_when_it_is_saved_again(folder, tmp_path):
    Release.load(folder).save(tmp_path / "again", formats=["px"])
    again = manifest_of(tmp_path / "again")
    assert again["formats"] == ["px"]
    assert again["software"] == manifest_of(folder)["software"]
    assert same_tables(Release.load(tmp_path / "again"), Release.load(folder))


def test_the_page_lists_what_has_no_noise_with_what_was_measured(folder):
    page = (folder / "report.html").read_text()
    noise = page[page.index('<section id="noise"') :]
    assert (
        '<th scope="row">sex by age, interaction</th><td>2</td><td class="words">none: released exactly'
        in noise
    )
    assert "Every number but those released exactly got its own independent draw" in noise
    assert '<th scope="row">sex, differences between levels</th>' in noise
    assert "Released exactly, without noise: the interaction of sex and age, beyond their own tables." in page


def test_a_page_of_noise_alone_speaks_of_nothing_exact(tmp_path):
    a_release().save(tmp_path / "out")
    page = (tmp_path / "out" / "report.html").read_text()
    assert "released exactly" not in page
