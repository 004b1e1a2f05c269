"""Release folders as datasets of a table builder."""

import re
import stat
from dataclasses import replace

import pytest

import tabulary as tb
from tabulary.builder.api.models import DatasetDetails, TableModel
from tabulary.builder.app import create_app
from tabulary.builder.configuration import read_service_file
from tabulary.builder.forecast import forecast
from tabulary.builder.opening import initialise
from tabulary.builder.release_folders import ReleaseFolders
from tabulary.builder.sources import read_source
from tabulary.core.labels import Labels, VariableLabels
from tabulary.errors import InvalidArgument, InvalidSettings, ReleaseDamaged, ReleaseError
from tabulary.infer.difference import difference
from tabulary.release import Release, SigningKey
from tabulary.release.svg import show_count
from tests.builders import GENEROUS, Caller
from tests.release_folders import written_release
from tests.serving import served

HOSTILE = '<script>alert("x")</script><img src=x onerror=alert(1)>\'"&amp;{{7*7}}'
AGES = "rows=sex&columns=age"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A signed release with labels, in a folder that nobody may write to."""
    place = tmp_path_factory.mktemp("published") / "census-2026"
    written_release(place, signing_key=SigningKey.generate("The office"))
    return place


@pytest.fixture(scope="module")
def opened(folder):
    return replace(ReleaseFolders.of([folder]), limits=GENEROUS).open()


@pytest.fixture(scope="module")
def caller(opened):
    return Caller(create_app(opened))


def test_a_release_is_listed_with_its_title_its_labels_its_digest_and_its_signer(caller, folder):
    release = Release.load(folder)
    (line,) = caller.get("/api/datasets").json()["items"]
    assert (line["id"], line["title"], line["method"]) == ("census-2026", "Census 2026", "released")
    told = caller.get("/api/datasets/census-2026").json()
    DatasetDetails.model_validate(told)
    assert told["release"]["digest"] == release.digest
    assert told["release"]["signer"]["name"] == "The office"
    assert told["release"]["signer"]["fingerprint"] == release.signer.fingerprint
    assert told["plan"] == release.plan.digest()
    assert told["allowed_tables"]["within"] == [["age", "region"], ["sex", "age", "job"]]
    assert told["variables"][0]["names"] == {"F": "Women", "M": "Men"}
    page = caller.get("/datasets/census-2026").text
    table = caller.get(f"/datasets/census-2026/table?{AGES}").text
    for words in (release.digest, release.signer.fingerprint, "Age in years"):
        assert words in page
    assert "Everyone who lives here." in page
    for words in ("Source: Statistics Nowhere", "Nobody checked the answers."):
        assert words in page
        assert words in table
    assert "no records, no key and no privacy budget" in " ".join(page.split())


def test_every_table_below_the_listed_ones_is_served_with_both_faces(caller, folder):
    release = Release.load(folder)
    for by in ([], ["age"], ["job", "sex"], ["sex", "age", "job"], ["region", "age"]):
        told = caller.get("/api/datasets/census-2026/tables", [("by", a) for a in by]).json()
        TableModel.model_validate(told)
        table = release[tuple(by)]
        assert told["count"] == table.counts.reshape(-1).tolist()
        assert told["estimate"] == table.estimate.reshape(-1).tolist()
    refused = caller.get("/api/datasets/census-2026/tables?by=sex&by=region")
    assert (refused.status_code, refused.json()["type"]) == (403, "table-refused")
    assert "the release has no table with" in refused.json()["detail"]


def test_a_filter_and_chosen_levels_cut_the_table(caller, folder):
    told = caller.get(
        "/api/datasets/census-2026/tables?by=age&where=sex:F&keep=age:65%2B&keep=age:0-14"
    ).json()
    expected = Release.load(folder)["sex", "age"].slice({"sex": "F"}).select({"age": ["0-14", "65+"]})
    assert told["count"] == expected.counts.tolist()


@pytest.mark.parametrize("form", ["json", "csv", "parquet", "xlsx", "json-stat", "sdmx-csv", "px"])
def test_a_table_is_downloaded_in_every_format(caller, form):
    answer = caller.get(f"/api/datasets/census-2026/tables.{form}?by=sex&by=age")
    assert answer.status_code == 200
    assert answer.content


def test_a_difference_is_judged_by_the_measurements_and_not_by_the_published_counts(caller, folder):
    cells = [{"sex": "F", "age": "0-14"}, {"sex": "M", "age": "0-14"}]
    asked = {"test": "difference", "by": ["sex", "age"], "cells": cells}
    told = caller.post("/api/datasets/census-2026/tests", asked).json()
    table = Release.load(folder)["sex", "age"]
    expected = difference(table.unbiased, *cells)
    assert (told["estimate"], told["p_value"]) == (expected.estimate, expected.p_value)
    assert told["estimate"] == pytest.approx(table.estimate[0, 0] - table.estimate[1, 0])
    assert told["estimate"] != table.counts[0, 0] - table.counts[1, 0]
    query = f"{AGES}&test=difference&first=sex:F&first=age:0-14&second=sex:M&second=age:0-14"
    assert "Women, 0-14" in caller.get(f"/datasets/census-2026/table?{query}").text


def test_a_test_on_a_page_with_some_levels_is_about_the_levels_that_the_page_shows(caller, folder):
    kept = Release.load(folder)["sex", "age"].unbiased.select({"age": ["0-14", "15-64"]})
    some = f"{AGES}&keep=age:0-14&keep=age:15-64"
    page = caller.get(f"/datasets/census-2026/table?{some}&test=independence").text
    assert f"statistic {tb.infer.independence(kept).statistic:.2f} on 1 degree of freedom." in page
    page = caller.get(f"/datasets/census-2026/table?{some}&test=difference&first=sex:F&second=sex:M").text
    found = difference(kept, {"sex": "F"}, {"sex": "M"})
    assert f"minus “Men” is {show_count(round(found.estimate))};" in page


def test_pages_are_those_of_any_dataset_and_the_custodian_is_absent(caller):
    for path in ("/", "/datasets/census-2026", f"/datasets/census-2026/table?{AGES}&chart=heat", "/static/x"):
        page = caller.get(path)
        assert page.status_code == (404 if path == "/static/x" else 200)
        assert "/custodian" not in page.text
    for path in (
        "/custodian",
        "/custodian/ledger",
        "/sign-in",
        "/api/custodian/tokens",
        "/api/custodian/key",
    ):
        assert caller.get(path).status_code == 404
    assert not [path for path in caller.get("/api/openapi.json").json()["paths"] if "custodian" in path]


def test_a_token_changes_nothing(opened):
    answer = Caller(create_app(opened), "tab_1_none").get("/api/datasets/census-2026/tables?by=sex")
    assert answer.status_code == 200


def test_the_client_gets_both_faces(opened, folder):
    release = Release.load(folder)
    with served(opened) as address:
        builder = tb.connect(address)
        table = builder.table("census-2026", ["age", "sex"])
        assert builder.dataset("census-2026").allowed_tables.within == (
            ("age", "region"),
            ("sex", "age", "job"),
        )
    expected = release["age", "sex"]
    assert table.counts.tolist() == expected.counts.tolist()
    assert table.estimate.tolist() == expected.estimate.tolist()
    assert table.unbiased.covariance.dense() == pytest.approx(expected.unbiased.covariance.dense())
    assert tb.infer.independence(table.unbiased).p_value == pytest.approx(
        tb.infer.independence(expected.unbiased).p_value
    )


def test_labels_from_a_stranger_are_shown_as_text(tmp_path):
    labels = Labels(
        HOSTILE,
        HOSTILE,
        variables={
            "sex": VariableLabels(HOSTILE, HOSTILE, {"F": HOSTILE}),
            "age": VariableLabels(f"{HOSTILE} 2"),
        },
    )
    written_release(tmp_path / HOSTILE.replace("/", "_"), labels=labels)
    (place,) = tmp_path.iterdir()
    source = replace(ReleaseFolders.of([place]), limits=GENEROUS)
    (name,) = source.datasets
    assert re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,39}", name)
    caller = Caller(create_app(source.open()))
    paths = [
        "/",
        f"/datasets/{name}",
        f"/datasets/{name}/table?{AGES}&chart=heat",
        f"/datasets/{name}/table?{AGES}&chart=bars",
        f"/datasets/{name}/table?{AGES}&test=difference&first=sex:F&second=sex:M",
        f"/datasets/{name}/table?{AGES}&test=independence",
        f"/datasets/{name}/table?rows=age&columns=region",
    ]
    for path in paths:
        page = caller.get(path)
        assert page.status_code == 200
        assert "<script>alert" not in page.text
        assert "<img src=x" not in page.text
        assert "49" not in page.text.split("onerror", 1)[1][:60]
        assert "&lt;script&gt;alert" in page.text


def test_several_folders_get_names_of_their_own(tmp_path):
    for place in ("a/Año 2026!", "b/Año 2026!", "c/...", f"d/{'x' * 60}"):
        (tmp_path / place).mkdir(parents=True)
    folders = [next((tmp_path / each).iterdir()) for each in "abcd"]
    assert list(ReleaseFolders.of(folders).datasets) == ["A-o-2026", "A-o-2026-2", "release", "x" * 40]


def test_a_folder_that_is_no_release_or_was_changed_is_refused(tmp_path, folder):
    (tmp_path / "empty").mkdir()
    with pytest.raises(ReleaseError, match=r"there is no release at .*: the folder has no manifest\.json"):
        read_source([tmp_path / "empty"]).open()
    copy = tmp_path / "copy"
    copy.mkdir()
    for file in folder.rglob("*"):
        target = copy / file.relative_to(folder)
        target.mkdir() if file.is_dir() else target.write_bytes(file.read_bytes())
    table = next((copy / "tables").glob("*.csv"))
    table.write_bytes(table.read_bytes().replace(b"1", b"2", 1))
    with pytest.raises(ReleaseDamaged, match="has been changed") as refused:
        read_source([copy]).open()
    assert str(refused.value).count(str(copy)) == 1
    assert not hasattr(refused.value, "__notes__")


def test_files_and_folders_are_not_mixed(folder, tmp_path):
    (tmp_path / "service.toml").touch()
    with pytest.raises(
        InvalidArgument, match=r"one service file, or only release folders.*\[dataset\.NAME\]"
    ):
        read_source([folder, tmp_path / "service.toml"])


def _service_file(tmp_path, lines):
    (tmp_path / "service.toml").write_text(
        f'[state]\ndatabase = "state.sqlite"\n[dataset.census]\n{lines}\n', encoding="utf-8"
    )
    return read_service_file(tmp_path / "service.toml")


def test_a_service_file_names_a_release_in_one_line(tmp_path):
    written_release(tmp_path / "census-2026")
    file = _service_file(tmp_path, 'release = "census-2026/"')
    assert "published for ρ = 0.125" in forecast(file.datasets["census"]).sentence
    token = initialise(file)
    with_limits = replace(file, limits=GENEROUS)
    caller = Caller(create_app(with_limits.open()), token)
    told = caller.get("/api/datasets/census").json()
    assert (told["title"], told["method"]) == ("Census 2026", "released")
    assert caller.get("/api/datasets/census/tables?by=age").status_code == 200
    # Beside other datasets there is a custodian, who sees that nobody pays for a release.
    (held,) = caller.get("/api/custodian/datasets").json()["items"]
    assert (held["id"], held["account"], held["version"]) == ("census", None, told["version"])
    assert "/custodian" in caller.get("/").text
    assert caller.get("/sign-in").status_code == 200


def test_a_service_file_may_give_a_release_other_words_and_a_limit(tmp_path):
    written_release(tmp_path / "census-2026")
    lines = 'release = "census-2026"\ntitle = "Our census"\ndescription = "All."\nmax_cells = 6'
    file = _service_file(tmp_path, lines)
    dataset = file.datasets["census"].served()
    assert (dataset.title, dataset.description) == ("Our census", "All.")
    assert dataset.answers.allowed_tables.max_cells == 6
    for wrong in ('release = "x"\nsource = "people.csv"', "release = 3", 'method = "released"'):
        with pytest.raises(InvalidSettings, match=r"\[dataset\.census\]"):
            _service_file(tmp_path, wrong)


def test_nothing_in_the_folder_is_written(tmp_path):
    place = tmp_path / "census"
    written_release(place)
    paths = sorted([place, *place.rglob("*")])
    for path in paths:
        path.chmod(stat.S_IMODE(path.stat().st_mode) & ~0o222)
    before = [(path, path.stat().st_mtime_ns, path.is_file() and path.read_bytes()) for path in paths]
    caller = Caller(create_app(read_source([place]).open()))
    assert caller.get("/api/datasets/census/tables?by=age").status_code == 200
    after = sorted([place, *place.rglob("*")])
    assert [(path, path.stat().st_mtime_ns, path.is_file() and path.read_bytes()) for path in after] == before
