import pytest

import tabulary as tb
from tabulary.confidential.sources import Source
from tabulary.errors import InvalidSettings, PublicError
from tabulary.release.manifest import EpsilonPlace
from tabulary.release.table_sheet import ErrorPlace
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
    assert planned.source == Source(tmp_path / "people.csv")


def test_the_source_may_be_a_table_at_an_address_which_nobody_asks(read, monkeypatch):
    monkeypatch.setattr("tabulary.confidential.records.Records.from_database", pytest.fail)
    monkeypatch.delenv("CENSUS_PASSWORD", raising=False)
    address = "postgresql://reader:${CENSUS_PASSWORD}@127.0.0.1:1/census"
    planned = read(PLAN.replace('"people.csv"', f'"{address}"\ntable = "public.people"'))
    assert planned.source == Source(address, "public.people")
    assert planned.plan.expected_error()


def test_the_file_may_name_the_engine_that_counts_files(read, tmp_path):
    planned = read(PLAN.replace('"people.csv"', '"people.csv"\nengine = "duckdb"'))
    assert planned.source == Source(tmp_path / "people.csv", engine="duckdb")


def test_records_are_those_of_the_source(read, tmp_path):
    planned = read(PLAN)
    (tmp_path / "people.csv").write_text("sex,age,ward\nF,20,1\n")
    with planned.records() as records:
        assert records.engine == "compiled"
        assert records.domain == planned.plan.domain


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
    ("old", "new", "reason"),
    [
        ("[data]", "[data]\nformat = 3", "unknown key 'format'"),
        ("[data]", '[data]\ntable = "people"', "Leave `table` out"),
        ("[data]", '[data]\nengine = "spark"', "not by 'spark'"),
        ("[data]", "[data]\nengine = 3", "engine has the wrong type"),
        ('source = "people.csv"', 'source = "postgresql://db/census"', "needs the name of a `table`"),
        (
            'source = "people.csv"',
            'source = "gopher://db/census"\ntable = "people"',
            "no engine counts records at gopher://",
        ),
        ('source = "people.csv"', "", "lacks the key 'source'"),
        ('source = "people.csv"', "source = 3", "source has the wrong type"),
        ('levels = ["F", "M"]', "", "either `levels` or `bins`"),
        ('levels = ["F", "M"]', 'levels = ["F", "F"]', "the level 'F' twice"),
        ('levels = ["F", "M"]', "levels = [1.5]", "a level must be text or a whole number, not 1.5"),
        ('levels = ["F", "M"]', 'levels = ["F", "M"]\nbins = [1, 2]', "either `levels` or `bins`"),
        ("bins = [0, 15, 65]", "bins = [15, 0]", "strictly ascending"),
        ("bins = [0, 15, 65]", 'bins = ["a"]', "bins must be numbers"),
        ("bins = [0, 15, 65]", "bins = []", "at least one number"),
        ('levels = ["F", "M"]', 'levels = ["F", "M"]\nunknown = "guess"', "not 'guess'"),
        ('levels = ["F", "M"]', 'levels = ["F", "M"]\nunknown = "level:X"', "no level 'X'"),
        ('levels = ["F", "M"]', 'levels = ["F", "M"]\nmap = { "0" = "X" }', "no level 'X'"),
        ('margins = "[sex age]"', "", "needs `margins`"),
        ('margins = "[sex age]"', 'margins = "sex age"', "write each in brackets"),
        ('margins = "[sex age]"', "margins = [1]", "margins are text"),
        ('margins = "[sex age]"', "k_way = 4", "from 0 to 3 attributes, not 4"),
        ('margins = "[sex age]"', "k_way = true", "k_way has the wrong type"),
        (
            'margins = "[sex age]"',
            'margins = "[sex age]"\nweights = { "ward" = 3 }',
            "which is not in the workload",
        ),
        (
            'margins = "[sex age]"',
            'margins = "[sex age]"\nweights = { "sex age" = 0 }',
            "weight must be positive",
        ),
        ("[privacy]", '[mechanism]\nname = "magic"\n[privacy]', "not 'magic'"),
        ("[privacy]", '[mechanism]\nobjective = "min"\n[privacy]', "not 'min'"),
        ("[privacy]", "[mechanism]\nobjective = 3\n[privacy]", "objective has the wrong type"),
        ("[privacy]", '[mechanism]\nobjektive = "max"\n[privacy]', "unknown key 'objektive'"),
        ("[privacy]", "[mechanism]\nrecords = 0\n[privacy]", "records must be a positive whole number"),
        ("[privacy]", '[mechanism]\nrecords = "many"\n[privacy]', "records has the wrong type"),
        ("[privacy]", "[mechanism]\nrecords = true\n[privacy]", "records has the wrong type"),
        (
            "[privacy]",
            '[mechanism]\nname = "margins"\nreconstruct = "shift"\n[privacy]',
            "it needs the mechanism 'fourier' or 'efron-stein'",
        ),
        (
            "[privacy]",
            '[mechanism]\nname = "residual"\nreconstruct = "shrink"\nrounding = "nearest"\n[privacy]',
            "use rounding = 'controlled'",
        ),
        ("[privacy]", '[output]\nformats = ["pdf"]\n[privacy]', "no format 'pdf'"),
        ("[privacy]", '[output]\nformats = ["px", 3]\n[privacy]', "no format '3'"),
        ("[privacy]", '[output]\nformats = "px"\n[privacy]', "formats has the wrong type"),
        ("[privacy]", '[ledger]\nfile = "x"\n[privacy]', "needs both `file` and `account`"),
        ("[privacy]", '[privacy]\nneighbours = "cousins"', "not 'cousins'"),
        ("[privacy]", "[privacy]\ncontribution = 0", "the contribution bound"),
        ("[privacy]", '[[structural_zeros]]\nsex = "X"\n[privacy]', "no level 'X'"),
        ("[data]", 'structural_zeros = "none"\n[data]', "structural_zeros has the wrong type"),
    ],
)
def test_what_cannot_be_is_refused_with_its_place(read, old, new, reason):
    with pytest.raises(PublicError, match=reason) as caught:
        read(PLAN.replace(old, new))
    assert str(caught.value).split(":")[0].startswith(("[", "plan.toml"))


@pytest.mark.parametrize(
    ("formats", "extra"),
    [
        ('["csv", "parquet"]', ()),
        ("[]", ()),
        ('["px", "csv", "parquet", "json-stat"]', ("json-stat", "px")),
        ('["xlsx", "sdmx-csv"]', ("xlsx", "sdmx-csv")),
    ],
)
def test_formats_are_added_to_those_of_every_release(read, formats, extra):
    assert read(f"{PLAN}\n[output]\nformats = {formats}").formats == extra
    assert read(PLAN).formats == ()


def test_errors_of_a_workbook_stand_below_unless_the_plan_file_says_beside(read):
    assert read(PLAN).errors is ErrorPlace.below
    assert read(f'{PLAN}\n[output]\nerrors = "beside"').errors is ErrorPlace.beside
    with pytest.raises(InvalidSettings, match=r"\[output\].*not 'above'"):
        read(f'{PLAN}\n[output]\nerrors = "above"')


def test_the_report_names_the_parameter_in_its_folded_part_unless_the_plan_file_says_first(read):
    assert read(PLAN).epsilon is EpsilonPlace.folded
    assert read(f'{PLAN}\n[output]\nepsilon = "first"').epsilon is EpsilonPlace.first
    with pytest.raises(InvalidSettings, match=r"\[output\].*'folded', 'first', not 'last'"):
        read(f'{PLAN}\n[output]\nepsilon = "last"')


def test_an_absent_or_unreadable_plan_file_is_refused(tmp_path):
    with pytest.raises(InvalidSettings, match="no plan file"):
        read_plan_file(tmp_path / "absent.toml")
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(InvalidSettings, match="UTF-8"):
        read_plan_file(tmp_path / "bytes.toml")


MANY = """
[data]
source = "people.csv"
[domain.age]
bins = [0, 5, 10, 15, 20, 30, 40, 50, 60, 70, 80]
[domain.ward]
levels = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]
[domain.job]
levels = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]
[privacy]
rho = 0.01
[tables]
k_way = 2
[mechanism]
"""


def test_residuals_an_objective_and_shrinkage_are_asked_for_by_name(read):
    even = read(MANY + 'name = "residual"\nobjective = "max"').plan
    best = read(MANY + 'name = "residual"').plan
    assert even.mechanism == best.mechanism == "residual"
    assert even.expected_max < best.expected_max
    assert even.expected_rmse > best.expected_rmse
    shrunk = read(MANY + 'reconstruct = "shrink"').plan
    assert (shrunk.mechanism, shrunk.reconstruct) == ("residual", "shrink")
    assert read(MANY + 'name = "residual"\nobjective = "shrink"').plan.measured == shrunk.measured


def test_the_number_of_records_spreads_the_budget_for_shrinkage_and_changes_no_promise(read):
    few = read(MANY + 'reconstruct = "shrink"\nrecords = 500')
    usual = read(MANY + 'reconstruct = "shrink"')
    assert few.plan.measured != usual.plan.measured
    assert few.plan.privacy == usual.plan.privacy
    assert few.plan.loss == usual.plan.loss
    unbiased = 'reconstruct = "none"\n'
    assert read(MANY + unbiased + "records = 500").plan == read(MANY + unbiased).plan


@pytest.mark.parametrize(
    "options", ["", 'name = "margins"', 'objective = "max"', 'reconstruct = "shrink"\nrecords = 500']
)
def test_a_comparison_has_the_plan_of_the_file_as_the_chosen_one(read, options):
    planned = read(MANY + options)
    compared = planned.comparison()
    assert compared.chosen.mechanism == planned.plan.mechanism
    assert compared.chosen.reconstruct == planned.plan.reconstruct
    assert compared.objective == ("max" if "max" in options else "rmse")
    # The better one for the objective, not merely the named one.
    assert ("was asked for" in compared.reason) is ("margins" in options)


def test_what_is_wrong_with_a_file_is_said_before_anything_is_planned(read, monkeypatch):
    monkeypatch.setattr("tabulary.workflows.planfile.plan", lambda *_, **__: pytest.fail("it was planned"))
    with pytest.raises(InvalidSettings, match="unknown key"):
        read(MANY + "\n[ledger]\nbook = 3")
