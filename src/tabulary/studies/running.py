"""Runs a study: pieces of work over several processes, each written down when it is done, then numbers and a page."""

import multiprocessing
import os
import re
import signal
import threading
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing, contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

from tabulary.core.progress import Progress
from tabulary.errors import InvalidArgument, PublicError, StudyError
from tabulary.studies.folder import StudyFolder, csv_of_rows, csv_text
from tabulary.studies.study import Lab, ReportSection, Row, Sheets, Study, Task

PROCESSES = 2

# Libraries that would each start one thread per core in every process.
_ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")

# If Polars is imported, its signal handler does not wake up an endless wait when Ctrl-C is pressed.
_SECONDS_BETWEEN_LOOKS = 0.5

# Set in each process before its first piece of work.
_shared: Any = None


def run(
    study: Study,
    folder: str | os.PathLike[str],
    *,
    seed: int = 1,
    processes: int = PROCESSES,
    fresh: bool = False,
    progress: Progress | None = None,
) -> Path:
    """Return the page of a study, after doing the work that is not done yet.

    The numbers depend on the study and on `seed`. They depend neither on the number of processes nor on interruptions:
    each piece of work has random words of its own. After an interruption the same call goes on; `fresh` starts again.
    """
    for name, value, least in (("seed", seed, 0), ("processes", processes, 1)):
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise InvalidArgument(
                f"`{name}` is a whole number from {least} on, not {value!r}. Nothing was done."
            )
    place = StudyFolder(Path(folder), study.confidential)
    tasks = list(study.tasks())
    identity = {
        "study": study.name,
        "settings": dict(study.settings),
        "seed": seed,
        "software": version("tabulary"),
    }
    with place.opened(identity, fresh=fresh) as done:
        left = [task for task in tasks if task.key not in done]
        if progress is not None:
            progress("working", len(tasks) - len(left), len(tasks))
        with closing(_worked(study, left, seed, processes)) as worked:
            for count, (key, sheets) in enumerate(worked, start=1):
                place.add(key, sheets)
                done[key] = sheets
                if progress is not None:
                    progress("working", len(tasks) - len(left) + count, len(tasks))
        return _finish(study, seed, gathered(done[task.key] for task in tasks), place, progress)


def gathered(parts: Iterator[Sheets]) -> dict[str, list[Row]]:
    """Return the rows of all pieces of work, by the name of their CSV file."""
    sheets: dict[str, list[Row]] = {}
    for part in parts:
        for name, rows in part.items():
            sheets.setdefault(name, []).extend(rows)
    return sheets


def _worked(
    study: Study, tasks: Sequence[Task], seed: int, processes: int
) -> Generator[tuple[str, Sheets], None, None]:
    if not tasks:
        return
    material = study.material()
    labs = {task.key: Lab(seed, (study.name, task.key)) for task in tasks}
    failed: dict[str, PublicError] = {}
    if processes == 1:
        for task in tasks:
            lab = Lab(seed, labs[task.key].place, material)
            try:
                found = task.work(lab, *task.arguments)
            except PublicError as problem:
                failed[task.key] = problem
            else:
                yield task.key, found
        _complain(failed)
        return
    # Started afresh, since a copy of a process that has threads of its own can hang.
    context = multiprocessing.get_context("spawn")
    others = set(multiprocessing.active_children())
    with (
        _one_thread(),
        ProcessPoolExecutor(
            min(processes, len(tasks)), mp_context=context, initializer=_share, initargs=(material,)
        ) as pool,
    ):
        try:
            waiting = {pool.submit(_work, task, labs[task.key]): task.key for task in tasks}
            for finished in _completed(waiting):
                try:
                    found = finished.result()
                except PublicError as problem:
                    failed[waiting[finished]] = problem
                else:
                    yield waiting[finished], found
            _complain(failed)
        except BrokenProcessPool:
            raise StudyError(
                "a process of the study was killed, perhaps because memory was full. What was done is kept: run "
                "the study again, with one process if it happens again."
            ) from None
        except BaseException:
            # Whoever interrupts does not want to wait for pieces of work that take minutes.
            ours = set(multiprocessing.active_children()) - others
            for process in ours:
                process.terminate()
            for process in ours:
                process.join()
            raise
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def _completed(waiting: Iterable[Future[Sheets]]) -> Iterator[Future[Sheets]]:
    """Yield what is done as soon as it is."""
    pending = set(waiting)
    while pending:
        finished, pending = wait(pending, _SECONDS_BETWEEN_LOOKS, FIRST_COMPLETED)
        yield from finished


def _complain(failed: Mapping[str, PublicError]) -> None:
    """Raise for the pieces of work that failed, once the others are done. Repeated, they would fail again."""
    for key, problem in failed.items():
        raise StudyError(
            f"{key!r} failed: {problem} What was done is kept. In all, {len(failed)} of the study's pieces of work "
            "failed."
        ) from problem


def _share(material: Any) -> None:
    global _shared
    _shared = material
    # The process that started this one is interrupted too, and ends it without a word.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """Wait until the process that started this one is gone: killed, it can end nobody, and its pool waits for ever."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def _work(task: Task, lab: Lab) -> Sheets:
    return task.work(Lab(lab.seed, lab.place, _shared), *task.arguments)


@contextmanager
def _one_thread() -> Iterator[None]:
    """Keep each process that starts meanwhile to one thread; the processes share the cores already."""
    before: Mapping[str, str | None] = {name: os.environ.get(name) for name in _ONE_THREAD}
    os.environ.update({name: "1" for name, value in before.items() if value is None})
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)


def _finish(study: Study, seed: int, sheets: Sheets, place: StudyFolder, progress: Progress | None) -> Path:
    # Charts take longer to import than a finished study to find.
    from tabulary.release.drawing import png, svg
    from tabulary.studies.page import page_html

    numbers = {name: f"numbers/{name}.csv" for name in sheets}
    for name, rows in sheets.items():
        place.write(numbers[name], csv_of_rows(rows).encode())
    if progress is not None:
        progress("summing up", 0, 0)
    sections: Sequence[ReportSection] = study.report(sheets)
    tables = [summary for section in sections for summary in section.summaries]
    files = {
        number: f"tables/{number:02}-{_slug(table.caption)}.csv" for number, table in enumerate(tables, 1)
    }
    for number, table in enumerate(tables, start=1):
        place.write(files[number], csv_text(table.heads, table.rows).encode())
    figures = [figure for section in sections for figure in section.figures]
    drawn: dict[str, str] = {}
    shown = list(files.values())
    for count, figure in enumerate(figures, start=1):
        drawn[figure.stem] = svg(figure.chart)
        place.write(f"figures/{figure.stem}.svg", drawn[figure.stem].encode())
        place.write(f"figures/{figure.stem}.png", png(figure.chart))
        if figure.rows:
            shown.append(f"figures/{figure.stem}.csv")
            place.write(shown[-1], csv_of_rows(figure.rows).encode())
        if progress is not None:
            progress("drawing", count, len(figures))
    counted = {path: len(sheets[name]) for name, path in numbers.items()}
    page = page_html(study, seed, sections, drawn, counted, shown)
    return place.write("index.html", page.encode())


def _slug(caption: str) -> str:
    """Return the first words of a caption as the name of a file."""
    words = re.findall(r"[a-z0-9]+", caption.lower())
    return "-".join(words[:6])
