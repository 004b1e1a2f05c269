"""A format that another package adds in one file: taken through a release, its verification, `show` and the builder."""

import json

import pytest

from tests.extensions import install, python, tabulary

FORMAT = """
import json
from tabulary.release import Format, Publication

def lines(published: Publication) -> bytes:
    counts = published.counts.reshape(-1).tolist()
    return "".join(json.dumps({"count": count}) + "\\n" for count in counts).encode()

json_lines = Format("json-lines", "JSON lines", ".jsonl", "application/jsonl", lines)
"""

PLAN = """
[data]
source = "people.csv"

[domain.sex]
levels = ["F", "M"]

[privacy]
epsilon = 1

[tables]
margins = "[sex]"

[output]
formats = ["json-lines", "px"]
"""


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    """A folder with a package that adds the format, a plan that asks for it, and the release of that plan."""
    place = tmp_path_factory.mktemp("extended")
    install(place, "jsonl", FORMAT, group="tabulary.formats", **{"json-lines": "json_lines"})
    (place / "people.csv").write_text("sex\n" + "F\nM\n" * 50)
    (place / "plan.toml").write_text(PLAN)
    code, said = tabulary("release", "plan.toml", "-o", "out", path=place)
    assert code == 0, said
    return place


def test_the_format_is_in_the_release_and_is_verified(package):
    rows = [json.loads(line) for line in (package / "out" / "tables" / "sex.jsonl").read_text().splitlines()]
    assert [set(row) for row in rows] == [{"count"}, {"count"}]
    assert tabulary("verify", "out", path=package)[0] == 0
    (package / "out" / "tables" / "sex.jsonl").write_text("changed")
    code, said = tabulary("verify", "out", path=package)
    assert code == 2
    assert "sex.jsonl" in said


def test_a_table_is_shown_in_it(package):
    code, said = tabulary("release", "plan.toml", "-o", "again", path=package)
    assert code == 0, said
    code, said = tabulary("show", "again", "sex", "--format", "json-lines", path=package)
    assert code == 0
    assert said.count('{"count":') == 2


def test_the_table_builder_offers_it(package):
    code = "from tabulary.builder.api.formats import FORMATS; print(FORMATS['json-lines'].media_type)"
    assert python(code, path=package) == (0, "application/jsonl")
