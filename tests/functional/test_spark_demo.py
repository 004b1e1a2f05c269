"""The demonstration that a cluster makes the same release as this process, but for the engine's name."""

import json

import pytest

import tabulary as tb
from examples.spark import demo

pytestmark = pytest.mark.slow


def test_the_release_of_a_cluster_differs_from_the_compiled_one_in_the_engines_name_alone(
    spark, spark_cluster, tmp_path, capsys
):
    folder = tmp_path / "demo"
    assert demo.demonstrate(folder, 2000, spark_cluster.url) == 0
    one, other = (
        json.loads((folder / name / "manifest.json").read_bytes()) for name in ("compiled", "spark")
    )
    assert {name for name in {*one, *other} if one.get(name) != other.get(name)} == {"software", "digest"}
    assert one["software"] == other["software"] | {"engine": "compiled"}
    assert other["software"]["engine"] == "spark"
    assert one["files"] == other["files"]
    for name in ("compiled", "spark"):
        assert len(tb.Release.load(folder / name)) > 15
    said = " ".join(capsys.readouterr().out.split())
    assert "software.engine compiled spark differs, as expected" in said
    assert "never share their noise" in said
    assert "report.html" in said


def test_two_releases_that_do_not_differ_as_they_should_are_an_error(tmp_path, monkeypatch, capsys):
    here = demo.write_plan
    monkeypatch.setattr(demo, "write_plan", lambda file, *_: here(file))
    assert demo.demonstrate(tmp_path / "demo", 500, "spark://127.0.0.1:1") == 1
    assert "do not differ in the engine's name alone" in capsys.readouterr().out


@pytest.fixture
def folders(tmp_path):
    table = tb.datasets.load("rochdale")
    made = tb.release(table, tb.plan(table.domain, "[AB]", privacy=tb.PureDP(1)))
    for name in ("one", "other"):
        made.save(tmp_path / name)
    return tmp_path / "one", tmp_path / "other"


def test_a_changed_file_and_a_changed_value_are_found_where_they_are(folders):
    one, other = folders
    assert list(demo.differences(one, other)) == []
    (other / "tables" / "a-by-b.csv").write_bytes(b"")
    (other / "new.txt").touch()
    manifest = (other / "manifest.json").read_text()
    (other / "manifest.json").write_text(manifest.replace('"confidence": 0.95', '"confidence": 0.9'))
    assert list(demo.differences(one, other)) == ["new.txt", "tables/a-by-b.csv", "confidence"]
