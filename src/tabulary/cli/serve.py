"""`tabulary serve`: run a table builder, or prepare one."""

import tempfile
from collections import Counter
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table as Grid

from tabulary.cli.console import errors, output, print_promise, progress_bar
from tabulary.cli.options import check_together, given_options
from tabulary.core.workload import show_margin
from tabulary.errors import InvalidArgument, MissingExtra, NotInitialised
from tabulary.planning import ExpectedError, show_width
from tabulary.planning.allowed_tables import AllowedTables

if TYPE_CHECKING:
    from tabulary.builder.configuration import ServiceFile
    from tabulary.builder.sources import ServiceSource

_STATE = "Nothing was opened."
_NAMES = {"places": "a service file"}
_LOCAL = ("127.0.0.1", "::1", "localhost")


def serve(
    context: typer.Context,
    places: Annotated[
        list[Path] | None, typer.Argument(help="A service file in TOML, or one or more release folders.")
    ] = None,
    host: Annotated[
        str | None, typer.Option(help="The address to listen on; replaces that of the file.")
    ] = None,
    port: Annotated[
        int | None, typer.Option(help="The port; replaces that of the file. 0 takes a free one.")
    ] = None,
    workers: Annotated[
        int | None, typer.Option(help="The number of processes; replaces that of the file.")
    ] = None,
    init: Annotated[
        bool,
        typer.Option("--init", help="Create the key, the state, the ledger and its accounts. Then stop."),
    ] = False,
    check: Annotated[
        bool,
        typer.Option(
            "--check",
            help="Print the expected error of the tables and the text that the public will read. Then "
            "stop. Opens nothing.",
        ),
    ] = False,
    demo: Annotated[
        bool, typer.Option("--demo", help="Serve 100,000 generated people. Needs no file.")
    ] = False,
) -> None:
    """Serve tables that users build themselves, until Ctrl-C.

    A release folder opens as it is, read-only: no record, no key and no ledger is needed, and nothing is spent.

    Examples: tabulary serve --demo, or a release: tabulary serve census-2026, or with your records: tabulary serve
    service.toml --check, then tabulary serve service.toml --init, then tabulary serve service.toml
    """
    given = given_options(context)
    if demo:
        check_together(given, "demo", ["host", "port"], _NAMES, _STATE)
        _serve_demonstration(host, port)
        return
    if not places:
        raise InvalidArgument(
            f"the command needs a service file or a release folder. For a first try: tabulary serve --demo. {_STATE}"
        )
    for mode in ("init", "check"):
        if mode in given:
            check_together(given, mode, ["places"], _NAMES, _STATE)
            if len(places) > 1 or places[0].is_dir():
                raise InvalidArgument(
                    f"--{mode} is for a service file. A release folder needs no preparation: tabulary serve "
                    f"{places[0]}. {_STATE}"
                )
    if check:
        _check(read_file(places[0]))
    elif init:
        _initialise(read_file(places[0]))
    else:
        _refuse_without_packages()
        from tabulary.builder.sources import read_source

        _serve(read_source(places), host, port, workers)


def read_file(file: Path) -> "ServiceFile":
    """Return what a service file says; if a package of the table builder is missing, say how to install it."""
    _refuse_without_packages()
    from tabulary.builder.configuration import read_service_file

    return read_service_file(file)


def _refuse_without_packages() -> None:
    try:
        from tabulary.builder import serving  # noqa: F401 — imports all of them
    except ModuleNotFoundError as missing:
        if missing.name is None or missing.name.startswith("tabulary"):
            raise
        raise MissingExtra(
            f"{missing.name} is not installed, and a table builder needs it. {_STATE} Install it: pip install "
            "'tabulary[serve]'."
        ) from None


def _serve(configured: "ServiceSource", host: str | None, port: int | None, workers: int | None) -> None:
    from tabulary.builder import serving

    if (host or configured.listening.host) not in _LOCAL:
        errors.print(
            "Other machines can reach this address, and plain HTTP shows them every token. Listen on "
            "127.0.0.1, behind a proxy that speaks HTTPS.",
            style="yellow",
        )

    def announce(address: str) -> None:
        output.print(f"{configured.title}: {address} (Ctrl-C stops it)", markup=False, soft_wrap=True)

    try:
        serving.serve(configured, host, port, workers, announce=announce, showing_progress=progress_bar)
    except NotInitialised as refusal:
        raise NotInitialised(
            f"{refusal} `tabulary serve {configured.paths[0].name} --init` initialises it."
        ) from None


def _serve_demonstration(host: str | None, port: int | None) -> None:
    _refuse_without_packages()
    from tabulary.builder import opening, serving
    from tabulary.builder.demonstration import write_demonstration

    with tempfile.TemporaryDirectory(prefix="tabulary-demo-") as folder:
        configured = read_file(write_demonstration(Path(folder)))

        def announce(address: str) -> None:
            asked = f"{address}/api/datasets/people/tables.csv?by=sex&by=employment"
            output.print(
                f"{configured.title}: {address} (Ctrl-C stops it)\nTry: curl '{asked}'",
                markup=False,
                soft_wrap=True,
            )

        opening.initialise(configured)
        serving.serve(configured, host, port, announce=announce, showing_progress=progress_bar)


def _initialise(configured: "ServiceFile") -> None:
    from tabulary.builder.opening import initialise

    token = initialise(configured)
    lines = [f"{configured.path.name} is ready: tabulary serve {configured.path.name}"]
    if configured.key is not None:
        lines.append(f"Copy the key {configured.key} to a safe place: without it no answer can be repeated.")
    if token is None:
        lines.append("Its custodian already has a token; `tabulary token add` makes another one.")
    else:
        lines.append(f"The custodian's token, shown only once: {token}")
    for line in lines:
        output.print(line, markup=False, soft_wrap=True)


def _check(configured: "ServiceFile") -> None:
    from tabulary.builder.forecast import forecast
    from tabulary.workflows.sections import located

    for declared in configured.datasets.values():
        with errors.status("Planning …"):
            expected = located(f"dataset {declared.name!r}", partial(forecast, declared))
        output.print(
            f"{declared.name}, version {declared.version}: {declared.title}", markup=False, soft_wrap=True
        )
        output.print(expected.sentence, markup=False)
        if expected.errors:
            output.print(_by_order(declared.allowed_tables, expected.errors))
        if expected.promise is None:
            output.print(
                "The public text depends on the budget, which only the ledger knows. To see the text here, "
                f"add the table [dataset.{declared.name}.budget] with the budget to this file.",
                markup=False,
            )
        else:
            output.print("What the public will read:", markup=False)
            print_promise(expected.promise)
            output.print()


def _by_order(allowed: AllowedTables, expected: tuple[ExpectedError, ...]) -> Grid:
    """Return the accuracy of many tables, one line per number of attributes."""
    grid = Grid(title="Expected accuracy, before any budget is spent", title_justify="left")
    for head in ("attributes", "tables", "standard error", "±95%"):
        grid.add_column(head, justify="right")
    grid.add_column("least accurate")
    tables = Counter(map(len, allowed.margins))
    for order, group in groupby(expected, key=lambda each: len(each.margin)):
        rows = list(group)
        worst = max(rows, key=lambda each: each.standard_error)
        grid.add_row(
            str(order),
            f"{tables[order]:,}",
            _range([each.standard_error for each in rows]),
            _range([each.half_width for each in rows]),
            show_margin(worst.margin).replace("[", r"\[") if order else "the total",
        )
    return grid


def _range(values: list[float]) -> str:
    low, high = show_width(min(values)), show_width(max(values))
    return low if low == high else f"{low} – {high}"
