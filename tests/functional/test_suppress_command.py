"""`tabulary suppress`: the table beside its promise, the folder that anyone can replay, and what it refuses."""

import csv
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tabulary as tb
from tabulary.cli.app import run
from tabulary.suppress.pages.files import read_table
from tests.functional.test_examples_in_the_docs import blocks, run_commands

HOW_TO = "docs/how-to/suppress-cells.md"
SECRET = 7431
CELLS = "eye,hair,people,count\nblue,fair,200,61\nblue,dark,300,88\nbrown,fair,150,43\nbrown,dark,400,129\n"
BY = ["cells.csv", "--by", "eye", "--by", "hair"]
GENES = ["suppress", "simulatable", *BY]
CLASSICAL = ["suppress", "classical", *BY]
PRIOR = ["--probability", "0.3"]


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    """A folder to work in, with a small table."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "cells.csv").write_text(CELLS)
    return tmp_path


@pytest.fixture
def said(capsys):
    """What a command line says, as one line; it must have this code."""

    def ask(*arguments, code=0):
        assert run(list(arguments)) == code, capsys.readouterr().err
        found = capsys.readouterr()
        return " ".join((found.out if code == 0 else found.err).split())

    return ask


@pytest.fixture
def refused(said, here):
    """What is said of a command that must fail without a trace: no folder, no count, no traceback."""

    def ask(*arguments):
        before = sorted(path.name for path in here.iterdir())
        words = said(*arguments, "-o", "out", code=2)
        assert sorted(path.name for path in here.iterdir()) == before
        assert str(SECRET) not in words
        assert "Traceback" not in words
        assert "Internal error" not in words
        return words

    return ask


def test_the_table_stands_beside_its_promise_and_its_decisions(said):
    words = said(*GENES, *PRIOR, "--epsilon", "1/2", "--delta", "0.1")
    assert "│ blue │ 61 │ 88 │ 149 │" in words
    assert "│ total │ 104 │ 217 │ 321 │" in words
    assert "keeps ε-semantic privacy with ε = 0.5, except with a probability of at most δ = 0.1." in words
    assert (
        words.index("The promise assumes this")
        < words.index("The prior is right")
        < words.index("Not promised")
    )
    assert "Differential privacy" in words[words.index("Not promised") :]
    assert "7 decisions in a public order" in words


def test_the_folder_is_complete_and_can_be_replayed(said, here):
    words = said(*GENES, *PRIOR, "-o", "genes")
    assert words.endswith("Published in genes: table.csv, table.json and report.html")
    assert sorted(path.name for path in (here / "genes").iterdir()) == [
        "report.html",
        "table.csv",
        "table.json",
    ]
    with (here / "genes" / "table.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert rows[0] == {"eye": "blue", "hair": "fair", "count": "61", "people": "200", "probability": "0.3"}
    assert rows[2] == {"eye": "blue", "hair": "total", "count": "149", "people": "500", "probability": ""}
    assert len(rows) == 9
    table = read_table(here / "genes").table
    assert tb.suppress.replay(table).ok
    assert "All 7 decisions follow from what is public" in said("suppress", "replay", "genes")


def test_a_changed_record_does_not_replay(said, here):
    said(*GENES, *PRIOR, "-o", "genes")
    path = here / "genes" / "table.json"
    content = json.loads(path.read_text())
    content["table"]["decisions"][2]["unsafe"] = 0.001234
    path.write_text(json.dumps(content))
    assert "does not follow from its record" in said("suppress", "replay", "genes", code=2)


def test_a_chosen_seed_is_named_in_a_replay(said):
    said(*GENES, *PRIOR, "--rule", "sampled", "--seed", "lucky", "-o", "genes")
    words = said("suppress", "replay", "genes")
    assert "All 7 decisions follow" in words
    assert "may have tried several" in words


def test_a_suppressed_cell_is_marked_and_in_no_file(said, here):
    # Five people with an even chance: whatever is said of their cell moves them far.
    few = CELLS.replace("blue,fair,200,61", f"blue,fair,5,{3}")
    (here / "cells.csv").write_text(few)
    words = said(*GENES, *PRIOR, "-o", "genes")
    assert "[c]" in words
    assert "cells are left out" in words
    assert "blue,fair,[c],5,0.3" in (here / "genes" / "table.csv").read_text()
    table = read_table(here / "genes").table
    assert table.suppressed[0, 0]


def test_cells_that_are_left_out_change_no_public_byte(said, here):
    # Ten people a cell are too few, and the sums are the same: nobody outside can tell the two tables apart.
    for name, moved in (("one", 0), ("two", 2)):
        counts = np.full((4, 4), 5)
        counts[np.ix_([0, 2], [1, 3])] += moved * np.array([[1, -1], [-1, 1]])
        rows = "".join(f"{i},{j},10,{counts[i, j]}\n" for i in range(4) for j in range(4))
        (here / "cells.csv").write_text(f"eye,hair,people,count\n{rows}")
        said(*GENES, "--probability", "0.5", "--delta", "0.05", "-o", name)
    assert read_table(here / "one").table.suppressed.all()
    for name in ("table.csv", "table.json", "report.html"):
        assert (here / "one" / name).read_bytes() == (here / "two" / name).read_bytes()


def test_a_skewed_prior_gives_no_table_and_says_so(said, here):
    (here / "cells.csv").write_text("eye,people,count,risk\nblue,1,1,0.5\nbrown,400,0,0.001\n")
    words = said("suppress", "simulatable", "cells.csv", "--by", "eye", "--probability", "risk", "-o", "out")
    assert "No safe binning: there is no table." in words
    assert "there is no table" in (here / "out" / "report.html").read_text()
    assert "[c]" in (here / "out" / "table.csv").read_text()
    assert "decisions follow" in said("suppress", "replay", "out")


def test_persons_with_priors_of_their_own_give_the_same_as_their_cells(said, here):
    rows = [("blue", i < 30, 0.3) for i in range(100)] + [("brown", i < 41, 0.4) for i in range(120)]
    eye, ill, risk = zip(*rows, strict=True)
    pq.write_table(pa.table({"eye": eye, "ill": ill, "risk": risk}), here / "people.parquet")
    said(
        *(
            "suppress",
            "simulatable",
            "people.parquet",
            "--persons",
            "--by",
            "eye",
            "--private",
            "ill",
            "--probability",
            "risk",
        ),
        *("-o", "persons"),
    )
    (here / "cells.csv").write_text("eye,people,count,risk\nblue,100,30,0.3\nbrown,120,41,0.4\n")
    said("suppress", "simulatable", "cells.csv", "--by", "eye", "--probability", "risk", "-o", "cells")
    assert (here / "persons" / "table.json").read_bytes() == (here / "cells" / "table.json").read_bytes()


def test_the_prior_may_be_fitted_from_past_tables(said, here):
    for year in ("2024", "2025"):
        (here / f"{year}.csv").write_text(
            "eye,hair,people,count\nblue,fair,190,60\nblue,dark,310,90\nbrown,fair,140,40\nbrown,dark,390,120\n"
        )
    said(*GENES, "--past", "2024.csv", "--past", "2025.csv", "-o", "out")
    fitted = read_table(here / "out").probability
    assert np.unique(fitted).size <= 4
    assert ((fitted > 0.25) & (fitted < 0.35)).all()
    # What was published becomes a past table in its turn.
    said(*GENES, "--past", "out", "-o", "next")


def test_an_ordered_attribute_is_binned(said, here):
    ages = "".join(
        f"{low}-{low + 9},F,60,{20 + low // 10}\n{low}-{low + 9},M,60,21\n" for low in range(0, 80, 10)
    )
    (here / "ages.csv").write_text(f"age,sex,people,count\n{ages}")
    said(
        "suppress",
        "simulatable",
        "ages.csv",
        "--by",
        "age",
        "--by",
        "sex",
        "--probability",
        "0.35",
        "--bins",
        "age=2",
        "-o",
        "out",
    )
    assert read_table(here / "out").table.domain.levels_of("age") == ("0-39", "40-79")


def test_advice_reads_no_private_value(said, here):
    (here / "cells.csv").write_text(CELLS.replace(",88\n", ",what is this\n").replace(",43\n", ",900\n"))
    words = said("suppress", "advice", *BY, *PRIOR)
    assert "No private value was read." in words
    assert "Theorem 5" in words
    assert "Theorem 6" in words
    assert "may be released" in words


def test_the_shipped_dataset_needs_no_file(said, here):
    words = said("suppress", "simulatable", "--dataset", "hair-eye-gene", "-o", "genes")
    assert "│ total │ 178 │ 156 │ 116 │ 450 │" in words
    assert read_table(here / "genes").table.counts[0, 0] == 101


def test_without_an_argument_the_command_explains_itself(said):
    words = said("suppress", code=2)
    assert "Usage:" in words
    assert all(name in words for name in ("simulatable", "classical", "advice", "replay"))


def test_classical_suppression_keeps_its_statuses_from_the_files(said, here):
    (here / "cells.csv").write_text(CELLS.replace("blue,fair,200,61", "blue,fair,200,3"))
    words = said(*CLASSICAL, "--threshold", "5", "-o", "out")
    assert "That is no guarantee for any person." in words
    assert "│ blue │ u │ x │" in words
    assert "│ brown │ x │ x │" in words
    assert "For the custodian only" in words
    files = {path.name: path.read_text() for path in (here / "out").iterdir()}
    assert files["table.csv"].splitlines()[1] == "blue,fair,[c]"
    content = json.loads(files["table.json"])
    assert content["facts"]["rule"] == "counts up to 5"
    assert content["table"]["counts"] == [[None, None], [None, None]]
    assert not any("status" in text or "primary" in text for text in files.values())


def test_a_cell_that_must_be_published_stays(said, here):
    table = "".join(
        f"{row},{column},{3 if row == column == 'a' else 50}\n" for row in "abc" for column in "abc"
    )
    (here / "cells.csv").write_text(f"row,column,count\n{table}")
    base = ["suppress", "classical", "cells.csv", "--by", "row", "--by", "column", "--threshold", "5"]
    words = said(*base, "--never", "row=b", "-o", "out")
    assert "│ b │ z │ z │ z │" in words
    assert not read_table(here / "out").table.suppressed[1].any()


def test_amounts_are_suppressed_by_their_contributions(said, here):
    firms = [("mining", "n", amount) for amount in (900, 5, 6, 7)]
    for place in (("mining", "s"), ("trade", "n"), ("trade", "s")):
        firms += [(*place, amount) for amount in (500, 600, 700.5)]
    text = "".join(f"{b},{r},{a}\n" for b, r, a in firms)
    (here / "firms.csv").write_text(f"branch,region,turnover\n{text}")
    base = ["suppress", "classical", "firms.csv", "--by", "branch", "--by", "region", "--value", "turnover"]
    for name, rule in (("share", ["--dominance", "1,75"]), ("estimate", ["--p-percent", "10"])):
        words = said(*base, *rule, "-o", name)
        assert "Amounts by branch and region" in words
        assert "│ mining │ u │ x │" in words
        assert "│ total │ 2,718.5 │ 3,601 │" in words
        assert "No suppressed number follows exactly" in said("attack", "suppression", name)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("200,61", f"200,{SECRET}"), "above the number of people"),
        (("200,61", f"200,-{SECRET}"), "negative"),
        (("200,61", "200,61.5"), "not whole"),
        (("200,61", "200,nan"), "no finite number"),
        (("200,61", "200,"), "no finite number"),
        (("blue,fair", ",fair"), "holds nothing"),
        (("blue,fair", "brown,fair"), "two rows"),
        (("blue,fair,200,61\n", ""), "not every combination"),
        (("hair", "hare"), "no column 'hair'"),
        (("count", "cuont"), "no column 'count'"),
        (("brown,fair,150,43\nbrown,dark", "total,fair,150,43\ntotal,dark"), "Leave rows of sums out"),
        ((CELLS, ""), "empty"),
        ((CELLS, "eye,hair,people,count\n"), "no rows"),
    ],
)
def test_a_file_that_is_no_table_is_refused(refused, here, change, words):
    (here / "cells.csv").write_text(CELLS.replace(*change))
    assert words in refused(*GENES, *PRIOR)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ([*PRIOR[:1], "0"], "not strictly between 0 and 1"),
        ([*PRIOR[:1], "1"], "not strictly between 0 and 1"),
        ([*PRIOR[:1], "-0.2"], "not strictly between 0 and 1"),
        ([*PRIOR[:1], "risk"], "no column 'risk'"),
        ([], "the prior is missing"),
        ([*PRIOR, "--epsilon", "0"], "epsilon must be above 0"),
        ([*PRIOR, "--epsilon", "nan"], "epsilon"),
        ([*PRIOR, "--delta", "1"], "delta is a probability"),
        ([*PRIOR, "--bins", "age=2"], "'age'"),
        ([*PRIOR, "--bins", "eye"], "--bins eye"),
        ([*PRIOR, "--bins", "eye=many"], "'many' is not a whole number"),
        ([*PRIOR, "--bins", "eye=2", "--bins", "eye=3"], "twice"),
        ([*PRIOR, "--levels", "eye=blue"], "outside its declared levels"),
        ([*PRIOR, "--levels", "nose=long"], "'nose'"),
        ([*PRIOR, "--past", "cells.csv"], "not both"),
        (["--past", "absent.csv"], "there is no table"),
        ([*PRIOR, "--private", "count"], "--private needs --persons"),
        ([*PRIOR, "--persons"], "--persons needs --private"),
        ([*PRIOR, "--dataset", "hair-eye-gene"], "--dataset has its own people"),
        ([*PRIOR, "--people", "count"], "two purposes"),
        ([*PRIOR, "--threshold", "5"], "No such option"),
        ([*PRIOR, "--rule", "guessed"], "guessed"),
    ],
)
def test_options_that_cannot_be_followed_are_refused(refused, options, words):
    assert words in refused(*GENES, *options)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--threshold", "5", "--epsilon", "1"], "No such option"),
        ([], "name a rule"),
        (["--dominance", "1,75"], "--value"),
        (["--dominance", "often", "--value", "count"], "--dominance often"),
        (["--p-percent", "-1", "--value", "count"], "above 0"),
        (["--threshold", "-1"], "threshold"),
        (["--threshold", "5", "--never", "eye"], "--never eye"),
        (["--threshold", "5", "--never", "eye=green"], "'green'"),
        (["--threshold", "5", "--private", "count"], "--private needs --persons"),
        (["--threshold", "5", "--value", "count", "--people", "people"], "one row per contributor"),
    ],
)
def test_rules_that_cannot_be_followed_are_refused(refused, options, words):
    assert words in refused(*CLASSICAL, *options)


def test_attributes_must_be_named(refused):
    assert "--by" in refused("suppress", "simulatable", "cells.csv", *PRIOR)
    assert "name a file" in refused("suppress", "simulatable", "--by", "eye", *PRIOR)
    assert "no file or folder 'absent.csv'" in refused(
        "suppress", "simulatable", "absent.csv", "--by", "eye", *PRIOR
    )
    assert "rochdale" in refused("suppress", "simulatable", "--dataset", "rochdale")


def test_an_attribute_with_the_name_of_another_column_is_refused(refused, here):
    (here / "cells.csv").write_text("people,number,ill\nyoung,100,30\nold,100,32\n")
    words = refused(
        "suppress",
        "simulatable",
        "cells.csv",
        "--by",
        "people",
        "--people",
        "number",
        "--count",
        "ill",
        *PRIOR,
    )
    assert "called 'people'" in words


def test_a_folder_that_is_there_is_left_as_it_is(said, here):
    (here / "out").mkdir()
    (here / "out" / "mine.txt").write_text("mine")
    assert "already exists" in said(*GENES, *PRIOR, "-o", "out", code=2)
    assert [path.name for path in (here / "out").iterdir()] == ["mine.txt"]


def test_a_private_column_that_is_neither_yes_nor_no_is_refused(refused, here):
    (here / "people.csv").write_text(f"eye,ill\nblue,1\nblue,{SECRET}\n")
    words = refused(
        "suppress", "simulatable", "people.csv", "--persons", "--by", "eye", "--private", "ill", *PRIOR
    )
    assert "other than 0, 1, true or false" in words


def test_what_holds_no_decisions_cannot_be_replayed(said, here):
    (here / "plain.csv").write_text("eye,count\nblue,3\n")
    assert "holds no decisions" in said("suppress", "replay", "plain.csv", code=2)
    assert "there is no table" in said("suppress", "replay", "absent", code=2)


def test_the_commands_of_the_how_to_page_work_with_its_file(here, capsys):
    (here / "cells.csv").write_text(blocks(HOW_TO, "csv")[0])
    for block in blocks(HOW_TO, ""):
        run_commands(block)
    assert {"genes", "ill-2026", "classical-2026"} <= {path.name for path in here.iterdir()}
    assert read_table(here / "ill-2026").table.domain.shape[0] <= 3


def test_the_commands_of_the_readme_work(capsys):
    (block,) = [block for block in blocks("README.md", "sh") if "tabulary suppress" in block]
    run_commands(block)
