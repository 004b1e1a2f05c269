import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest

from tabulary.errors import InvalidArgument, NotCertified, StudyError
from tabulary.noise import DiscreteLaplace
from tabulary.studies.curve_panels import Curve, PanelAxis, curves
from tabulary.studies.running import run
from tabulary.studies.study import Figure, ReportSection, Summary, Task
from tests.waiting import has_ended, wait_until

pytestmark = pytest.mark.slow


def draws(lab, number, log):
    with Path(log).open("a") as file:
        file.write(f"{number}\n")
    if (Path(log).parent / f"stop-{number}").exists():
        raise KeyboardInterrupt
    if (Path(log).parent / f"kill-{number}").exists():
        os.kill(os.getpid(), signal.SIGKILL)
    if (Path(log).parent / f"fail-{number}").exists():
        raise NotCertified("no maximum.")
    if (Path(log).parent / f"sleep-{number}").exists():
        time.sleep(600)
    noise = lab.sampler().draw(DiscreteLaplace(5), 3)
    return {"draws": [{"number": number, "draw": int(draw)} for draw in noise + (lab.material or 0)]}


@dataclass(frozen=True)
class Small:
    log: str
    pieces: int = 4
    confidential: bool = False
    shared: int = 0
    name: str = "small"
    title: str = "Draws <and> more draws"
    source: str = "Nobody (2026), Table 1"
    about: str = "Noise is drawn."

    @property
    def settings(self) -> Mapping[str, Any]:
        return {"pieces": self.pieces, "levels": (1, 2)}

    def tasks(self):
        return [Task(f"piece {number}", draws, (number, self.log)) for number in range(self.pieces)]

    def material(self):
        return self.shared

    def report(self, sheets):
        points = [Curve("all", "draws", i, row["draw"]) for i, row in enumerate(sheets["draws"])]
        chart = curves(
            points, x=PanelAxis("number"), y=PanelAxis("draw"), title="Draws", subtitle="all of them"
        )
        table = Summary("How many", ("what", "number"), (("draws", f"{len(points)}"),))
        return [
            ReportSection(
                "Found", ("It is <noise>.",), (table,), (Figure("draws", chart, "Draws", "A line."),)
            )
        ]


@pytest.fixture
def small(tmp_path):
    return Small(str(tmp_path / "log"))


def begun(study):
    return [int(line) for line in Path(study.log).read_text().split()]


def numbers(folder):
    return (folder / "numbers" / "draws.csv").read_text()


def test_a_study_ends_with_numbers_figures_and_a_page_that_needs_nothing_else(small, tmp_path):
    page = run(small, tmp_path / "out", processes=1)
    assert page == tmp_path / "out" / "index.html"
    assert numbers(tmp_path / "out").splitlines()[0] == "number,draw"
    assert len(numbers(tmp_path / "out").splitlines()) == 1 + 3 * 4
    assert (tmp_path / "out" / "figures" / "draws.png").read_bytes().startswith(b"\x89PNG")
    assert "<svg" in (tmp_path / "out" / "figures" / "draws.svg").read_text()
    assert (tmp_path / "out" / "tables" / "01-how-many.csv").read_text() == "what,number\ndraws,12\n"
    text = page.read_text()
    assert 'href="tables/01-how-many.csv"' in text
    assert "It is &lt;noise&gt;." in text
    assert 'alt="A line."' in text
    assert 'src="data:image/svg+xml' in text
    assert "CONFIDENTIAL" not in text
    assert "levels</dt><dd>1, 2" in text


def test_the_numbers_depend_on_the_seed_and_not_on_the_processes(small, tmp_path):
    study = Small(small.log, shared=1_000_000)
    run(study, tmp_path / "one", processes=1)
    run(study, tmp_path / "two", processes=2)
    run(study, tmp_path / "other", processes=1, seed=2)
    assert numbers(tmp_path / "one") == numbers(tmp_path / "two")
    assert numbers(tmp_path / "one") != numbers(tmp_path / "other")
    # The material reached both processes, and no file.
    assert all(int(line.split(",")[1]) > 900_000 for line in numbers(tmp_path / "two").splitlines()[1:])
    assert "1000000" not in (tmp_path / "two" / "study.json").read_text()


def test_an_interrupted_study_goes_on_where_it_was(small, tmp_path):
    run(small, tmp_path / "whole", processes=1)
    Path(small.log).unlink()
    (tmp_path / "stop-2").touch()
    with pytest.raises(KeyboardInterrupt):
        run(small, tmp_path / "out", processes=1)
    (tmp_path / "stop-2").unlink()
    run(small, tmp_path / "out", processes=1)
    assert begun(small) == [0, 1, 2, 2, 3]
    assert numbers(tmp_path / "out") == numbers(tmp_path / "whole")


def test_a_finished_study_is_not_done_again_unless_asked(small, tmp_path):
    for _ in range(2):
        run(small, tmp_path / "out", processes=1)
    assert begun(small) == [0, 1, 2, 3]
    run(small, tmp_path / "out", processes=1, fresh=True)
    assert begun(small) == [0, 1, 2, 3] * 2


def test_an_interruption_does_not_wait_for_pieces_of_work_that_take_long(small, tmp_path):
    (tmp_path / "sleep-0").touch()

    def interrupt(what, done, total):
        if done:
            # The other process can do all the rest before this one has begun.
            wait_until(lambda: 0 in begun(small), "the piece that takes long to begin")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(small, tmp_path / "out", processes=2, progress=interrupt)
    # Which of two threads saw a process end is chance; that it has ended is not.
    assert not [process for process in multiprocessing.active_children() if psutil.pid_exists(process.pid)]
    (tmp_path / "sleep-0").unlink()
    assert run(small, tmp_path / "out", processes=1).exists()


def test_ctrl_c_ends_a_study_while_every_process_is_at_work(small, tmp_path):
    import polars  # noqa: F401 - its handler of signals leaves a wait without an end asleep

    for number in range(small.pieces):
        (tmp_path / f"sleep-{number}").touch()

    def press():
        wait_until(lambda: Path(small.log).exists() and len(begun(small)) == 2, "both processes to work")
        os.kill(os.getpid(), signal.SIGINT)

    pressing = threading.Thread(target=press)
    pressing.start()
    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        run(small, tmp_path / "out", processes=2)
    pressing.join()
    # A piece of work takes ten minutes.
    assert time.monotonic() - start < 300


def test_a_process_that_is_killed_loses_its_own_work_only(small, tmp_path):
    (tmp_path / "kill-3").touch()
    with pytest.raises(StudyError, match="What was done is kept"):
        run(small, tmp_path / "out", processes=2)
    (tmp_path / "kill-3").unlink()
    run(small, tmp_path / "out", processes=2)
    assert len(numbers(tmp_path / "out").splitlines()) == 1 + 3 * 4


def test_a_study_that_is_killed_leaves_no_process_behind(small, tmp_path):
    (tmp_path / "sleep-0").touch()
    parent = multiprocessing.get_context("spawn").Process(target=run, args=(small, tmp_path / "out"))
    parent.start()
    wait_until(lambda: Path(small.log).exists() and 0 in begun(small), "the piece that takes long to begin")
    workers = psutil.Process(parent.pid).children(recursive=True)
    assert len(workers) >= 2
    parent.kill()
    wait_until(lambda: all(map(has_ended, workers)), "the processes to end")


def test_half_a_line_in_the_journal_is_forgotten(small, tmp_path):
    run(small, tmp_path / "out", processes=1)
    journal = tmp_path / "out" / "journal.jsonl"
    whole, expected = journal.read_bytes(), numbers(tmp_path / "out")
    journal.write_bytes(whole[:-10])
    run(small, tmp_path / "out", processes=1)
    assert begun(small) == [0, 1, 2, 3, 3]
    assert journal.read_bytes() == whole
    assert numbers(tmp_path / "out") == expected


def test_a_damaged_journal_is_refused(small, tmp_path):
    run(small, tmp_path / "out", processes=1)
    journal = tmp_path / "out" / "journal.jsonl"
    journal.write_bytes(b"{]\n" + journal.read_bytes())
    with pytest.raises(StudyError, match=r"line 1 of .* is damaged"):
        run(small, tmp_path / "out", processes=1)


def test_other_settings_do_not_go_on_with_a_study(small, tmp_path):
    run(small, tmp_path / "out", processes=1)
    with pytest.raises(StudyError, match=r"differs in its settings.*start again with `fresh`"):
        run(Small(small.log, pieces=5), tmp_path / "out", processes=1)
    with pytest.raises(StudyError, match="differs in its seed"):
        run(small, tmp_path / "out", processes=1, seed=2)


@pytest.mark.parametrize(
    "make", [lambda p: p.mkdir() or (p / "mine").touch(), lambda p: p.write_text("mine")]
)
def test_what_is_no_study_is_not_touched(make, small, tmp_path):
    make(tmp_path / "out")
    for fresh in (False, True):
        with pytest.raises(StudyError, match="holds no study"):
            run(small, tmp_path / "out", processes=1, fresh=fresh)
    assert not Path(small.log).exists()


def test_two_processes_do_not_work_on_one_folder(small, tmp_path):
    def second(what, done, total):
        for fresh in (False, True):
            with pytest.raises(StudyError, match="another process"):
                run(small, tmp_path / "out", processes=1, fresh=fresh, seed=2)
        tried.append(what)

    tried = []
    run(small, tmp_path / "out", processes=1, progress=second)
    assert tried
    assert begun(small) == [0, 1, 2, 3]
    # Once the first has ended, the second may.
    run(small, tmp_path / "out", processes=1, fresh=True, seed=2)
    assert not (tmp_path / "out" / "CONFIDENTIAL.txt").exists()


def test_a_start_that_was_cut_off_does_not_spoil_the_folder(small, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / ".study.json.partial").write_text("{")
    assert run(small, tmp_path / "out", processes=1).exists()
    assert not list((tmp_path / "out").glob(".*.partial"))


def test_a_piece_of_work_that_fails_is_named_after_all_others_are_done(small, tmp_path):
    (tmp_path / "fail-1").touch()
    for processes in (1, 2):
        with pytest.raises(StudyError, match=r"'piece 1' failed: no maximum.*What was done is kept"):
            run(small, tmp_path / f"out-{processes}", processes=processes)
        assert len((tmp_path / f"out-{processes}" / "journal.jsonl").read_text().splitlines()) == 3


def test_a_confidential_study_says_so_in_large_letters_and_is_for_its_owner_alone(small, tmp_path):
    study = Small(small.log, confidential=True, shared=1_000)
    page = run(study, tmp_path / "out", processes=1).read_text()
    assert "<strong>CONFIDENTIAL</strong>" in page
    assert (tmp_path / "out").stat().st_mode & 0o077 == 0
    assert "must not be published" in (tmp_path / "out" / "CONFIDENTIAL.txt").read_text()
    (tmp_path / "out").chmod(0o755)
    run(study, tmp_path / "out", processes=1)
    assert (tmp_path / "out").stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("wrong", [{"processes": 0}, {"seed": -1}, {"seed": 1.5}, {"processes": True}])
def test_numbers_that_cannot_be_are_refused(wrong, small, tmp_path):
    with pytest.raises(InvalidArgument, match="whole number"):
        run(small, tmp_path / "out", **wrong)
    assert not (tmp_path / "out").exists()


def test_a_folder_that_cannot_be_made_is_an_error_that_names_it(small, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(StudyError, match="cannot be written"):
        run(small, tmp_path / "file" / "out", processes=1)
