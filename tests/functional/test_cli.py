"""The commands, as a custodian and an analyst use them."""

import csv
import io
from contextlib import redirect_stdout

import pytest

import tabulary as tb
from tabulary.cli.app import run
from tabulary.ledger import Ledger
from tabulary.workflows import read_plan_file


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """The folder of a demo, and what it printed."""
    folder = tmp_path_factory.mktemp("demo") / "demo"
    with redirect_stdout(io.StringIO()) as printed:
        assert run(["demo", "--output", str(folder), "--rows", "5000"]) == 0
    return folder, printed.getvalue()


@pytest.fixture(scope="module")
def demo_folder(demo):
    return demo[0]


def test_the_demo_publishes_about_twenty_verified_tables_and_a_report(demo_folder, capsys):
    release = tb.Release.load(demo_folder / "release")
    assert 18 <= len(release) <= 22
    assert {len(margin) for margin in release.margins} == {1, 2}
    assert release.plan.privacy == tb.PureDP(1)
    assert (demo_folder / "release" / "report.html").stat().st_size > 10_000


def test_the_demo_ends_with_an_official_table_its_totals_and_a_test_of_the_same_release(demo):
    folder, said = demo
    table = tb.Release.load(folder / "release")["employment", "sex"]
    assert (table.counts >= 0).all()
    assert (table.counts == table.counts.astype(int)).all()
    _, last = said.split("4. Checking")
    for total in (table.counts.sum(), *table.counts.sum(axis=0), *table.counts.sum(axis=1)):
        assert f"{int(total):,} ±" in last
    related = tb.infer.independence(table)
    assert f"χ² = {related.statistic:,.0f} on {related.degrees_of_freedom} d.f." in " ".join(last.split())


def test_the_demo_prints_a_table_with_error_bars_and_where_the_report_is(demo):
    _, said = demo
    assert "±" in said
    assert "report.html" in said
    assert "Expected accuracy" in said


@pytest.mark.slow
def test_the_demo_clears_its_own_folder_and_no_other(demo_folder, tmp_path, capsys):
    assert run(["demo", "--output", str(demo_folder), "--rows", "5000"]) == 0
    (tmp_path / "letters").mkdir()
    (tmp_path / "letters" / "love.txt").write_text("dear")
    assert run(["demo", "--output", str(tmp_path / "letters")]) == 2
    assert (tmp_path / "letters" / "love.txt").read_text() == "dear"


def test_the_demo_pays_from_its_ledger(demo_folder, capsys):
    with Ledger.open(demo_folder / "ledger.sqlite", read_only=True) as ledger:
        assert ledger.account("people").spent() == tb.PureDP(1)


def test_plan_reads_no_records(demo_folder, capsys):
    people = demo_folder / "people.parquet"
    hidden = people.rename(people.with_suffix(".hidden"))
    try:
        assert run(["plan", str(demo_folder / "plan.toml")]) == 0
    finally:
        hidden.rename(people)
    said = capsys.readouterr().out
    assert "Expected accuracy" in said
    assert "[sex age]" in said


def test_plan_compares_the_mechanisms_without_reading_records(demo_folder, capsys):
    people = demo_folder / "people.parquet"
    hidden = people.rename(people.with_suffix(".hidden"))
    try:
        assert run(["plan", str(demo_folder / "plan.toml"), "--compare"]) == 0
    finally:
        hidden.rename(people)
    said = " ".join(capsys.readouterr().out.split())
    chosen = read_plan_file(demo_folder / "plan.toml").comparison()
    assert "Expected error of every mechanism" in said
    assert f"● {chosen.chosen.name}" in said
    assert chosen.reason in said
    assert "━" in said
    assert "not a guarantee" in said
    for refusal in chosen.refusals:
        assert f"{refusal.name} is not possible: {refusal.reason}" in said


def test_the_comparison_fits_a_terminal_of_eighty_columns(tmp_path, capsys):
    text = """
    [data]
    source = "x.csv"
    [privacy]
    epsilon = 1
    delta = 1e-9
    [tables]
    k_way = 2
    """
    for i in range(8):
        text += f"[domain.attribute_{i}]\nlevels = {list(range(30))}\n"
    (tmp_path / "plan.toml").write_text(text)
    assert run(["plan", str(tmp_path / "plan.toml"), "--compare"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    assert not any("…" in line for line in lines)
    assert any("Gaussian" in line and "●" in line for line in lines)
    assert "▶" in "".join(lines)
    assert "With the other family of noise" in "".join(lines)


def test_plan_tells_many_laws_of_noise_by_their_range(tmp_path, capsys):
    text = '[data]\nsource = "x.csv"\n[privacy]\nrho = 0.1\n[tables]\nk_way = 2\n'
    for i in range(6):
        text += f"[domain.x{i}]\nlevels = {list(range(2 + 3 * i))}\n"
    (tmp_path / "plan.toml").write_text(text)
    assert run(["plan", str(tmp_path / "plan.toml")]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert said.count("Noise on each measured number") == 1
    assert "different values on" in said


def test_shrunk_whole_tables_are_released_from_a_plan_file(tmp_path, capsys):
    people = "".join(f"{i % 2},{i % 7},{(i * i) % 5}\n" for i in range(3000))
    (tmp_path / "people.csv").write_text("a,b,c\n" + people)
    (tmp_path / "plan.toml").write_text(
        """
        [data]
        source = "people.csv"
        [domain.a]
        levels = [0, 1]
        [domain.b]
        levels = [0, 1, 2, 3, 4, 5, 6]
        [domain.c]
        levels = [0, 1, 2, 3, 4]
        [privacy]
        epsilon = 1
        delta = 1e-9
        [tables]
        k_way = 2
        [mechanism]
        reconstruct = "shrink"
        rounding = "controlled"
        records = 3000
        """
    )
    folder = tmp_path / "out"
    assert run(["plan", str(tmp_path / "plan.toml"), "--compare"]) == 0
    assert "● residual, shrunk" in capsys.readouterr().out
    assert run(["release", str(tmp_path / "plan.toml"), "-o", str(folder)]) == 0
    release = tb.Release.load(folder)
    assert all(table.counts.min() >= 0 and table.counts.dtype.kind == "i" for table in release)
    sums = [release["a", "b"].counts.sum(axis=0), release["b", "c"].counts.sum(axis=1)]
    assert sums[0].tolist() == sums[1].tolist()
    page = (folder / "report.html").read_text()
    assert "biased towards their base" in page
    assert f"{100 * release.face.facts['bias_share']:.0f} % of the expected squared error" in " ".join(
        page.split()
    )
    assert "Expected error of every mechanism" in page


def test_show_lists_the_tables(demo_folder, capsys):
    assert run(["show", str(demo_folder / "release")]) == 0
    assert "[sex age]" in capsys.readouterr().out.splitlines()


@pytest.mark.parametrize(
    "margin", [["sex", "employment"], ["[sex employment]"], ["age"], ["employment", "sex"]]
)
def test_show_prints_a_table_with_error_bars(demo_folder, capsys, margin):
    assert run(["show", str(demo_folder / "release"), *margin]) == 0
    assert "±" in capsys.readouterr().out


def test_show_gives_csv_to_a_program(demo_folder, capsys):
    folder = demo_folder / "release"
    assert run(["show", str(folder), "sex", "--format", "csv", "--confidence", "0.9"]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    released = tb.Release.load(folder)["sex",]
    assert [float(row["count"]) for row in rows] == released.counts.tolist()
    assert [float(row["upper_90"]) for row in rows] == released.interval(0.9)[1].tolist()


def test_show_of_an_absent_table_says_what_there_is(demo_folder, capsys):
    assert run(["show", str(demo_folder / "release"), "planet"]) == 2
    assert "planet" in capsys.readouterr().err


def test_verify_says_that_everything_holds_and_finds_a_changed_byte(demo_folder, tmp_path, capsys):
    folder = demo_folder / "release"
    assert run(["verify", str(folder)]) == 0
    said = capsys.readouterr().out
    assert "every file and every claim is correct" in said
    file = next((folder / "tables").glob("*.csv"))
    before = file.read_bytes()
    file.write_bytes(before.replace(b"\n", b"\r", 1))
    try:
        assert run(["verify", str(folder)]) == 2
    finally:
        file.write_bytes(before)


def test_verify_compares_a_digest_published_elsewhere(demo_folder, capsys):
    assert run(["verify", str(demo_folder / "release"), "--digest", "0" * 64]) == 2


def test_a_ledger_is_created_paid_from_and_shown(tmp_path, capsys):
    book = str(tmp_path / "ledger.sqlite")
    assert run(["ledger", "create", book, "--account", "census", "--epsilon", "1/2"]) == 0
    assert run(["ledger", "create", book, "--account", "survey", "--rho", "0.1"]) == 0
    assert run(["ledger", "show", book]) == 0
    said = capsys.readouterr().out
    assert "census" in said
    assert "survey" in said
    assert "ρ = 0.1" in said
    assert run(["ledger", "show", book, "--account", "census"]) == 0
    assert run(["ledger", "create", book, "--account", "third", "--delta", "0.1"]) == 2
    assert run(["ledger", "create", book, "--account", "census", "--epsilon", "1"]) == 2


def test_datasets_are_listed_shown_and_generated(tmp_path, capsys):
    assert run(["datasets"]) == 0
    listing = capsys.readouterr().out
    for name in tb.datasets.names():
        assert name in listing
    for name in tb.datasets.names():
        assert run(["datasets", name]) == 0
        assert tb.datasets.describe(name).title.split()[0] in capsys.readouterr().out
    assert run(["datasets", "people", "--rows", "100", "-o", str(tmp_path / "p.parquet")]) == 0
    assert (tmp_path / "p.parquet").exists()
    assert run(["datasets", "people"]) == 2
    assert run(["datasets", "atlantis"]) == 2


@pytest.mark.parametrize(
    "command",
    [
        ["demo"],
        ["datasets"],
        ["plan"],
        ["release"],
        ["show"],
        ["verify"],
        ["ledger", "create"],
        ["ledger", "show"],
    ],
)
def test_every_command_has_help_with_an_example(command, capsys):
    assert run([*command, "--help"]) == 0
    said = capsys.readouterr().out
    assert "Example" in said
    assert f"tabulary {' '.join(command)}" in said


def test_the_version_is_the_package_version(capsys):
    assert run(["--version"]) == 0
    assert capsys.readouterr().out.strip() == tb.__version__


def test_no_command_can_choose_the_noise():
    from docs.build import generated_pages

    # Generated people have a seed, and so have the public coins of a suppressor, and a study and an audit, of which
    # nothing is released; what protects real people has none.
    seeded = ("commands/audit.md", "commands/datasets.md", "commands/suppress.md", "commands/study.md")
    pages = {name: text for name, text in generated_pages().items() if name.startswith("commands/")}
    assert set(seeded) < set(pages)
    said = "".join(text for name, text in pages.items() if name not in seeded)
    for word in ("seed", "entropy", "sampler", "random"):
        assert f"--{word}" not in said
