import pytest

import tabulary as tb
from tabulary.errors import InvalidPlan, PublicError
from tabulary.workflows import read_plan_file

PLAN = """
[data]
source = "people.csv"
[domain.sex]
levels = ["F", "M"]
[domain.age]
bins = [0, 15, 65]
[domain.ward]
levels = [1, 2, 3]
[privacy]
epsilon = 0.1
[tables]
margins = "[sex age]"
"""


@pytest.fixture
def read(tmp_path):
    def read_text(text):
        (tmp_path / "plan.toml").write_text(text, encoding="utf-8")
        return read_plan_file(tmp_path / "plan.toml")

    return read_text


def test_a_decimal_epsilon_means_what_its_writer_meant(read):
    assert read(PLAN).plan.privacy == tb.PureDP("1/10")


def test_bins_become_levels_and_paths_are_relative_to_the_file(read, tmp_path):
    planned = read(PLAN)
    assert planned.plan.domain.levels_of("age") == ("0-14", "15-64", "65+")
    assert planned.plan.domain.levels_of("ward") == ("1", "2", "3")
    assert planned.source == tmp_path / "people.csv"


@pytest.mark.parametrize(
    ("old", "new", "privacy"),
    [
        ("epsilon = 0.1", "epsilon = 1\ndelta = 1e-9", tb.ApproxDP(1, "1/1000000000")),
        ("epsilon = 0.1", 'rho = "1/8"', tb.ZCDP("1/8")),
        ("epsilon = 0.1", 'epsilon = "1/3"', tb.PureDP("1/3")),
    ],
)
def test_privacy_is_epsilon_or_epsilon_and_delta_or_rho(read, old, new, privacy):
    assert read(PLAN.replace(old, new)).plan.privacy == privacy


@pytest.mark.parametrize("new", ["", "delta = 1e-9", "rho = 1\nepsilon = 1", "epsilon = 1\ndelta = 1"])
def test_privacy_in_any_other_form_is_refused(read, new):
    with pytest.raises(PublicError, match="privacy"):
        read(PLAN.replace("epsilon = 0.1", new))


@pytest.mark.parametrize(
    ("new", "margins"),
    [
        ("k_way = 1", [("sex",), ("age",), ("ward",)]),
        ("k_way = [0, 3]", [(), ("sex", "age", "ward")]),
        ('k_way = 3\nmargins = "[sex]"', [("sex", "age", "ward"), ("sex",)]),
        ('margins = [["age", "sex"], ["ward"]]', [("sex", "age"), ("ward",)]),
    ],
)
def test_tables_are_margins_orders_or_both(read, new, margins):
    assert list(read(PLAN.replace('margins = "[sex age]"', new)).plan.workload.margins) == margins


def test_weights_name_margins_by_their_attributes(read):
    text = PLAN.replace('margins = "[sex age]"', 'margins = "[sex age][ward]"\nweights = { "age sex" = 3 }')
    assert [str(w) for w in read(text).plan.workload.weights] == ["3", "1"]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("[data]", "[data]\nformat = 3"),
        ('source = "people.csv"', ""),
        ('source = "people.csv"', "source = 3"),
        ('levels = ["F", "M"]', ""),
        ('levels = ["F", "M"]', 'levels = ["F", "F"]'),
        ('levels = ["F", "M"]', "levels = [1.5]"),
        ('levels = ["F", "M"]', 'levels = ["F", "M"]\nbins = [1, 2]'),
        ("bins = [0, 15, 65]", "bins = [15, 0]"),
        ("bins = [0, 15, 65]", 'bins = ["a"]'),
        ("bins = [0, 15, 65]", "bins = []"),
        ('levels = ["F", "M"]', 'levels = ["F", "M"]\nunknown = "guess"'),
        ('levels = ["F", "M"]', 'levels = ["F", "M"]\nunknown = "level:X"'),
        ('levels = ["F", "M"]', 'levels = ["F", "M"]\nmap = { "0" = "X" }'),
        ('margins = "[sex age]"', ""),
        ('margins = "[sex age]"', 'margins = "sex age"'),
        ('margins = "[sex age]"', "margins = [1]"),
        ('margins = "[sex age]"', "k_way = 4"),
        ('margins = "[sex age]"', "k_way = true"),
        ('margins = "[sex age]"', 'margins = "[sex age]"\nweights = { "ward" = 3 }'),
        ('margins = "[sex age]"', 'margins = "[sex age]"\nweights = { "sex age" = 0 }'),
        ("[privacy]", '[mechanism]\nname = "magic"\n[privacy]'),
        ("[privacy]", '[output]\nformats = ["pdf"]\n[privacy]'),
        ("[privacy]", '[ledger]\nfile = "x"\n[privacy]'),
        ("[privacy]", '[privacy]\nneighbours = "cousins"'),
        ("[privacy]", "[privacy]\ncontribution = 0"),
        ("[privacy]", '[[structural_zeros]]\nsex = "X"\n[privacy]'),
        ("[privacy]", 'structural_zeros = "none"\n[privacy]'),
    ],
)
def test_what_cannot_be_is_refused_with_its_place(read, old, new):
    with pytest.raises(PublicError) as caught:
        read(PLAN.replace(old, new))
    assert str(caught.value).split(":")[0].startswith(("[", "plan.toml"))


def test_an_absent_or_unreadable_plan_file_is_refused(tmp_path):
    with pytest.raises(InvalidPlan, match="no plan file"):
        read_plan_file(tmp_path / "absent.toml")
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(InvalidPlan, match="UTF-8"):
        read_plan_file(tmp_path / "bytes.toml")
