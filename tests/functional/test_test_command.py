"""`tabulary test`: two verdicts on a released table in plain words, and what the command refuses."""

import re
import shlex
from pathlib import Path

import numpy as np
import pytest

import tabulary as tb
from tabulary.cli.app import run
from tabulary.cli.verdict import chance, show_p_value
from tabulary.noise import ExactSampler
from tabulary.planning import Measurement
from tests.entropy import SeededEntropy

DOMAIN = tb.Domain(
    {
        "region": ["north", "east", "south", "west", "centre"],
        "answer": ["yes", "no", "unsure"],
        "sex": ["F", "M"],
        "age": ["0-14", "15-64", "65+"],
        "job": ["none", "paid"],
        "planet": ["earth"],
    },
    structural_zeros=[{"age": "0-14", "job": "paid"}],
)
NOISY = {
    # Drawn once without association: about 1,000 people, and noise of scale 10.
    ("region", "answer"): [[188, 114, 56], [99, 81, 43], [50, 51, 30], [128, 103, 48], [41, 30, 36]],
    ("sex", "age", "job"): [[[108, 0], [97, 190], [112, 15]], [[87, 0], [102, 235], [79, 5]]],
    ("sex", "job"): [[500, 100], [120, 480]],
    # A level that nobody has, as far as the release tells.
    ("answer", "sex"): [[0, 310], [0, 204], [0, -9]],
    ("region", "sex"): [[90, 95], [70, 61], [-12, 4], [88, 60], [40, 30]],
    ("region",): [312, 205, 151, 240, 103],
    ("sex",): [505, 498],
    ("sex", "planet"): [[505], [498]],
    (): 1003,
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("survey") / "survey-2026"
    work = tb.Workload(DOMAIN, list(NOISY))
    plan = tb.plan(DOMAIN, work, privacy=tb.PureDP("9/10"), mechanism="margins", reconstruct="none")
    measured = tuple(np.array(NOISY[margin]) for margin in plan.workload.margins)
    tb.Release(Measurement(plan, measured)).save(path)
    return path


@pytest.fixture(autouse=True)
def eighty_columns(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")


@pytest.fixture
def said(folder, capsys):
    """What the command says of the folder; it must have this exit code."""

    def ask(*arguments, code=0):
        assert run(["test", str(folder), *arguments]) == code
        found = capsys.readouterr()
        return found.out if code == 0 else found.err

    return ask


def words(text):
    """The text as one line without the lines of its grid."""
    return " ".join(re.sub(r"[│┃━─┏┳┓┡╇┩├┼┤└┴┘]", " ", text).split())


def column(text, number):
    """One column of the grid as one line."""
    rows = [re.split("[│┃]", line) for line in text.splitlines() if line[:1] in "│┃" and line]
    return " ".join(" ".join(row[number + 1] for row in rows).split())


def test_the_two_verdicts_stand_side_by_side(said, folder):
    text = said("region", "answer")
    table = tb.Release.load(folder)["region", "answer"]
    naive, aware = (tb.infer.independence(table, method) for method in ("naive", "noise-aware"))
    assert naive.rejects()
    assert not aware.rejects()
    assert "Are region and answer related?" in text
    assert "5 × 3 measured counts, each within ±30 of the true count (95%)" in words(text)
    for number, (test, verdict, takes) in enumerate(
        [
            (naive, "yes, they are related", "as exact numbers"),
            (aware, "no sign that they are related", "with their noise"),
        ],
        start=1,
    ):
        shown = column(text, number)
        assert test.method in shown
        assert verdict in shown
        assert takes in shown
        assert chance(test.p_value) in shown
        assert show_p_value(test.p_value) in shown
        assert f"{test.statistic:.2f} on {test.degrees_of_freedom} d.f." in shown


def test_verdicts_that_differ_are_warned_about(said):
    text = words(said("region", "answer"))
    assert "▲ The verdicts differ. Trust the noise-aware one." in text
    assert "The noise alone can produce" in text
    assert '"No sign" is not a proof' in text


def test_verdicts_that_agree_are_not(said):
    text = words(said("sex", "job"))
    assert "▲" not in text
    assert "Both tests agree" in text
    assert '"No sign" is not a proof' not in text


def test_a_finding_that_shrinkage_has_hidden_is_not_blamed_on_noise(tmp_path, capsys):
    domain = tb.Domain({"x": range(6), "y": range(6)})
    plan = tb.plan(domain, "[x y]", privacy=tb.PureDP("1/20"), mechanism="cells")
    # A weak association behind wide noise: with these draws little of it is left in the published face.
    seed = SeededEntropy(6)
    counts = np.full((6, 6), 110) + 28 * np.where(np.indices((6, 6)).sum(axis=0) % 2, 1, -1)
    release = tb.release(tb.Table(domain, counts), plan, sampler=ExactSampler(seed))
    release.save(tmp_path / "hidden")
    naive, aware = (tb.infer.independence(release["x", "y"], way) for way in ("naive", "noise-aware"))
    assert aware.rejects()
    assert not naive.rejects()
    assert run(["test", str(tmp_path / "hidden"), "x", "y"]) == 0
    said = words(capsys.readouterr().out)
    assert "shrunk counts can hide a finding" in said
    assert "noise in them can look like a finding, and shrinkage can hide one" in said
    assert "counts against the hypothesis" not in said


def test_what_the_p_values_rest_on_is_told(said, folder):
    text = words(said("region", "answer"))
    table = tb.Release.load(folder)["region", "answer"]
    for method in ("naive", "noise-aware"):
        for sentence in tb.infer.independence(table, method).assumed:
            assert sentence in text


@pytest.mark.parametrize(
    "asked",
    [
        ["region", "answer"],
        ["[region answer]"],
        ["answer", "region"],
        ["region"],
        ["sex", "age", "job"],
        ["sex", "age", "job", "--model", "[sex age][age job]"],
        ["sex", "age", "job", "--search"],
        ["region", "answer", "--bootstrap", "19"],
    ],
)
def test_everything_fits_a_terminal_of_eighty_columns_and_nothing_is_nan(said, asked):
    text = said(*asked)
    assert max(map(len, text.splitlines())) <= 80
    assert "…" not in text
    assert "nan" not in text.lower().split()


def test_the_level_decides_what_is_a_finding(said):
    assert "no sign that they are related" in column(said("region", "answer", "--alpha", "0.002"), 1)
    assert "yes, they are related" in column(said("region", "answer", "--alpha", "0.9"), 2)


@pytest.mark.parametrize("method", ["naive", "noise-aware"])
def test_one_method_can_be_asked_for(said, method):
    text = said("region", "answer", "--method", method)
    other = {"naive": "noise-aware", "noise-aware": "naive"}[method]
    assert method in column(text, 1)
    assert f" {other} " not in text
    assert ("Do not rely on the naive test alone" in words(text)) == (method == "naive")


def test_how_strong_an_association_is_comes_with_its_interval(said, folder):
    text = words(said("sex", "job"))
    found = tb.infer.cramers_v(tb.Release.load(folder)["sex", "job"], target="population")
    assert f"Cramér's V = {found.estimate:.2f}" in text
    assert f"{found.lower:.2f} to {found.upper:.2f}" in text
    assert f"Without regard to the noise, V would be {found.naive:.2f}" in text
    assert 0 < found.lower < 0.65 < found.upper < 1


def test_one_attribute_is_held_against_equal_shares_or_given_ones(said, folder):
    released = tb.Release.load(folder)
    assert "Are the levels of sex equally frequent?" in said("sex")
    assert "no sign that they are not" in column(said("sex"), 2)
    assert "no, they are not" in column(said("region"), 2)
    text = said("region", "--expected", "0.3, 1/5, 0.15, 0.25, 0.1")
    assert "no sign that they are not" in column(text, 2)
    table = released["region",]
    shares = ["3/10", "1/5", "3/20", "1/4", "1/10"]
    found = tb.infer.goodness_of_fit(table.counts, None, shares, tb.infer.noise_of(table))
    assert f"{found.statistic:.2f} on 4 d.f." in column(text, 2)
    # Only the ratios matter.
    assert said("sex", "--expected", "1,2") == said("sex", "--expected", "10,20").replace("10 : 20", "1 : 2")


def test_several_attributes_are_tested_for_any_relation(said, folder):
    text = said("sex", "age", "job")
    assert "Are any of sex, age and job related?" in text
    table = tb.Release.load(folder)["sex", "age", "job"]
    for number, method in enumerate(["naive", "noise-aware"], start=1):
        found = tb.infer.loglinear(table, "[sex][age][job]", method=method)
        assert f"{found.g2:.2f} on {found.degrees_of_freedom} d.f." in column(text, number)
        assert "yes, at least two of them are" in column(text, number)


def test_a_model_is_tested_by_its_margins(said, folder):
    text = said("sex", "age", "job", "--model", "[sex age][age job]")
    assert "Does the model [sex age][age job] leave anything out?" in words(text)
    table = tb.Release.load(folder)["sex", "age", "job"]
    for number, method in enumerate(["naive", "noise-aware"], start=1):
        found = tb.infer.loglinear(table, "[sex age][age job]", method=method)
        assert f"{found.g2:.2f} on 2 d.f." in column(text, number)
        assert "no sign that it does" in column(text, number)


def test_a_search_shows_both_verdicts_on_its_way(said, folder):
    text = said("sex", "age", "job", "--search")
    found = tb.infer.search(tb.Release.load(folder)["sex", "age", "job"])
    assert "Which relations does [sex age job] need?" in text
    assert f"The simplest model that fits: {found.model}" in text
    for step in (*found.aware.steps, found.aware.kept):
        for test in (step.aware, step.naive):
            p_value = show_p_value(test.p_value)
            assert f"(p {p_value})" in text or f"(p = {p_value})" in text
    assert found.aware.steps
    assert "no, needed" in text
    assert ("The naive search ends with another model" in text) == found.differ


def test_a_search_that_the_noise_leads_astray_is_warned_about(said, folder):
    found = tb.infer.search(tb.Release.load(folder)["region", "answer"])
    assert found.differ
    text = words(said("region", "answer", "--search"))
    assert f"The simplest model that fits: {found.model}" in text
    assert "▲ The naive search ends with another model: [region answer]. Trust the noise-aware one." in text


def test_a_bootstrap_takes_the_p_value_from_redrawn_tables(said):
    text = said("region", "answer", "--bootstrap", "39")
    shown = float(re.search(r"p-value\s*│\s*\S+\s*│\s*(\S+)", text)[1])
    # A rank among 39 tables and the one that was released.
    assert any(show_p_value(rank / 40) == f"{shown:.2g}" for rank in range(1, 41))
    assert shown > 0.05
    assert "rank among 39 tables" in words(text)


def test_negative_counts_are_answered_and_said(said):
    text = words(said("region", "sex"))
    assert "negative released counts are taken as 0" in text


def test_a_level_without_people_takes_nothing_down(said):
    text = said("region", "sex")
    assert "d.f." in text
    # Everybody is of one sex: nothing is left to compare.
    text = words(said("answer", "sex", code=2))
    assert "cannot be tested" in text


def test_merged_levels_are_tested_as_one(said, folder):
    text = said("region", "answer", "--merge", "answer=no+unsure")
    found = tb.infer.merged(tb.Release.load(folder)["region", "answer"], {"answer": ["no", "unsure"]})
    aware = tb.infer.independence(found)
    assert f"{aware.statistic:,.2f} on 4 d.f." in column(text, 2)
    assert "5 × 2 measured counts" in words(text)


@pytest.mark.parametrize("mechanism", ["margins", "residual"])
def test_an_impossible_level_is_no_evidence_against_equal_levels(tmp_path, capsys, mechanism):
    domain = tb.Domain({"job": ["none", "paid", "own"]}, structural_zeros=[{"job": "none"}])
    plan = tb.plan(domain, "[job]", privacy=tb.PureDP(1), mechanism=mechanism)
    counts = tb.Table(domain, [0, 500, 500])
    tb.release(counts, plan, sampler=ExactSampler(SeededEntropy(1))).save(tmp_path / "jobs")
    assert run(["test", str(tmp_path / "jobs"), "job"]) == 0
    text = capsys.readouterr().out
    for place in (1, 2):
        assert "no sign that they are not" in column(text, place)
        assert "on 1 d.f." in column(text, place)


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        (["region", "job"], "the release has no table on [region job]. It has"),
        (["atlantis"], "atlantis"),
        (["sex", "planet"], "at least two levels of each"),
        (["[]"], "at least one attribute"),
        (["region", "answer", "--alpha", "2"], "--alpha 2 is not between 0 and 1"),
        (["region", "answer", "--model", "[region planet]"], "planet"),
        (["region", "answer", "--model", "[region answer]"], "cannot be tested"),
        (["region", "answer", "--expected", "1,1"], "--expected gives the shares of one attribute"),
        (["region", "--expected", "1,1"], "a positive number for each of the 5 levels"),
        (["sex", "answer", "--merge", "sex=F+X"], "the levels of sex are 'F', 'M'"),
        (
            ["region", "answer", "--merge", "answer=no"],
            "at least two different levels of 'answer' are needed",
        ),
        (["region", "answer", "--merge", "age=0-14+65+"], "no attribute 'age'"),
        (["region", "answer", "--merge", "answer=yes+no+unsure"], "at least two levels of each"),
        (["sex", "--expected", "1,-1"], "a positive number for each of the 2 levels"),
        (["sex", "--expected", "one,two"], "--expected must be"),
        (["sex", "--bootstrap", "99"], "--bootstrap is for two attributes"),
        (["region", "answer", "--bootstrap", "5"], "19"),
        (["region", "answer", "--search", "--model", "[region]"], "--model does not go with --search"),
        (["region", "answer", "--search", "--method", "naive"], "Leave --method out"),
        (["region", "answer", "--bootstrap", "99", "--method", "naive"], "--bootstrap redraws the noise"),
    ],
)
def test_what_cannot_be_tested_is_refused_with_the_reason(said, asked, reason):
    assert reason in words(said(*asked, code=2))


@pytest.mark.parametrize("face", ["shrink", "least-squares", "none"])
def test_the_verdict_that_knows_the_noise_is_the_same_whatever_face_was_published(tmp_path, capsys, face):
    domain = tb.Domain({"a": range(6), "b": range(5)})
    table = tb.Table(domain, np.arange(30).reshape(6, 5) * 10)
    plan = tb.plan(domain, "[a b][a]", privacy=tb.PureDP(1), mechanism="residual", reconstruct="none")
    release = tb.release(table, plan, sampler=ExactSampler(SeededEntropy(1)))
    release.rebuild(reconstruct=face).save(tmp_path / face)
    for asked in (["a", "b"], ["a"], ["a", "b", "--model", "[a][b]"]):
        assert run(["test", str(tmp_path / face), *asked, "--method", "noise-aware"]) == 0
        shown = column(capsys.readouterr().out, 1)
        attributes = asked[:2] if "b" in asked else asked
        linear = release[tuple(attributes)]
        found = (
            tb.infer.independence(linear)
            if len(attributes) == 2
            else tb.infer.goodness_of_fit(linear, None, ["1/6"] * 6)
        )
        assert f"{found.statistic:,.2f} on {found.degrees_of_freedom} d.f." in shown


@pytest.mark.parametrize("mechanism", ["cells", "margins", "fourier", "efron-stein", "residual"])
@pytest.mark.parametrize("privacy", [tb.PureDP(1), tb.ZCDP("1/10")])
def test_the_linear_release_of_every_mechanism_can_be_tested(tmp_path, capsys, mechanism, privacy):
    domain = tb.Domain({"a": range(4), "b": range(2)})
    table = tb.Table(domain, [[400, 100], [300, 200], [200, 300], [100, 400]])
    plan = tb.plan(domain, "[a b][a]", privacy=privacy, mechanism=mechanism, reconstruct="none")
    tb.release(table, plan).save(tmp_path / "out")
    assert run(["test", str(tmp_path / "out"), "a", "b"]) == 0
    text = capsys.readouterr().out
    assert "yes, they are related" in column(text, 1)
    assert "yes, they are related" in column(text, 2)
    assert run(["test", str(tmp_path / "out"), "a"]) == 0


def test_a_damaged_folder_is_not_tested(folder, capsys):
    file = next((folder / "tables").glob("*.csv"))
    before = file.read_bytes()
    file.write_bytes(before + b"\n")
    try:
        assert run(["test", str(folder), "region", "answer"]) == 2
    finally:
        file.write_bytes(before)
    assert file.name in words(capsys.readouterr().err)


def test_help_has_an_example(capsys):
    assert run(["test", "--help"]) == 0
    assert "tabulary test census-2026 sex age" in " ".join(capsys.readouterr().out.split())


def test_the_commands_on_the_analysts_page_run(folder, monkeypatch, capsys):
    monkeypatch.chdir(folder.parent)
    page = (Path(__file__).parents[2] / "docs/how-to/read-a-release.md").read_text(encoding="utf-8")
    commands = re.findall(r"^tabulary .*", page, re.MULTILINE)
    assert len(commands) >= 6
    for command in commands:
        assert run(shlex.split(command)[1:]) == 0, command


def test_of_surveys_like_the_one_on_the_page_the_naive_test_rejects_most_and_the_aware_one_few():
    """The rates that `docs/how-to/read-a-release.md` tells of tables without association."""
    domain = tb.Domain({"region": range(5), "answer": range(3)})
    noise = tb.infer.noise_of(tb.Table(domain, np.zeros((5, 3), dtype=np.int64)), tb.perturb.Laplace("1/10"))
    random, entropy = np.random.default_rng(11), SeededEntropy(4)
    shares = np.outer([0.3, 0.2, 0.15, 0.25, 0.1], [0.45, 0.35, 0.2])
    rejected = np.zeros(2)
    for _ in range(200):
        counts = random.multinomial(1000, shares.reshape(-1)).reshape(5, 3)
        table = tb.Table(domain, noise.released(counts, entropy))
        rejected += (
            tb.infer.independence(table, "naive").rejects(),
            tb.infer.independence(table, noise=noise).rejects(),
        )
    naive, aware = rejected / 200
    assert naive > 0.8
    assert aware < 0.07
