"""The command `tabulary`, and what it says when something goes wrong."""

import hashlib
import importlib
import sys
import traceback
from collections.abc import Container
from typing import Any, NoReturn

import typer

from tabulary.errors import TabularyError

# Exit codes: 0 done, 1 a defect in Tabulary, 2 something the user can mend, 130 interrupted. `audit` has 3 as well.
DEFECT, USER_ERROR, INTERRUPTED = 1, 2, 130

# Where each command is, and its line in the list of commands, in the order of that list.
_COMMANDS = {
    "demo": ("demo:demo", "Publish about twenty tables of generated people."),
    "datasets": ("datasets:datasets", "List or show the published tables that Tabulary carries."),
    "plan": ("plan:plan", "Print how accurate every table of a plan file would be."),
    "release": ("release:release", "Publish the tables of a plan file into a new folder."),
    "rebuild": ("rebuild:rebuild", "Make other tables of the measurements of a release."),
    "show": ("show:show", "Print a table of a release with its error bars."),
    "test": ("testing:judge", "Test a table of a release, with its noise counted in."),
    "compare": ("compare:compare", "Compare a table of two releases, or two groups of one."),
    "verify": ("verify:verify", "Check every file and every claim of a release."),
    "audit": ("audit:audit_plan", "Check the cost of a plan, and draw from its mechanism."),
    "perturb": ("perturb:perturb", "Perturb a table count by count."),
    "suppress": ("suppress:suppress", "Leave cells out of a table, with a proof or without one."),
    "synth": ("synth:synth", "Make synthetic rows from a release or from records."),
    "study": ("study:study", "Run an experiment, or compare mechanisms on your data."),
    "serve": ("serve:serve", "Serve tables that people build themselves."),
    "attack": ("attack:attack", "Attack published tables."),
    "ledger": ("ledger:ledger", "Create, show and check accounts of privacy budget."),
    "key": ("key:key", "Make and show keys that sign releases."),
    "token": ("token:token", "Make, list and revoke tokens of a table builder."),
}


def command_line(loaded: Container[str] = _COMMANDS) -> typer.Typer:
    """Return the command line with all commands, of which those that are not `loaded` can only be listed.

    Loading all of them takes longer than most of them run, and a user names one.
    """
    app = typer.Typer(
        name="tabulary",
        help="Publish contingency tables from confidential records, with a guarantee that can be checked.",
        epilog="Start with: tabulary demo",
        no_args_is_help=True,
        add_completion=False,
        rich_markup_mode=None,
        # A pretty traceback prints local variables, and those hold exact counts.
        pretty_exceptions_enable=False,
        callback=_options,
    )
    for name, (place, line) in _COMMANDS.items():
        command = _load(place) if name in loaded else _not_loaded
        if isinstance(command, typer.Typer):
            app.add_typer(command, name=name, short_help=line)
        else:
            app.command(name, short_help=line)(command)
    return app


def _load(place: str) -> Any:
    module, _, function = place.partition(":")
    return getattr(importlib.import_module(f"tabulary.cli.{module}"), function)


def _not_loaded() -> NoReturn:
    raise AssertionError("this command was listed and not loaded.")


def _print_version(wanted: bool) -> None:
    if wanted:
        import tabulary

        typer.echo(tabulary.__version__)
        raise typer.Exit


def _options(
    version: bool = typer.Option(
        False, "--version", callback=_print_version, is_eager=True, help="Print the version and stop."
    ),
) -> None:
    pass


def main() -> NoReturn:
    """Run the command line and exit with its code."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    """Return the exit code of the command line with these arguments."""
    try:
        # The options before a command have no values, so the first word is the command.
        words = [argument for argument in arguments if not argument.startswith("-")]
        app = command_line(words[:1])
        result = app(args=arguments, standalone_mode=False)
        return result if isinstance(result, int) else 0
    except TabularyError as problem:
        said = " ".join([str(problem), *getattr(problem, "__notes__", [])])
        _complain(f"Error: {said}", style="bold red")
        return USER_ERROR
    except typer.TyperException as problem:
        # A wrong command line; the problem knows which command and what its usage is.
        show_usage = getattr(problem, "show", None)
        if show_usage is None:
            _complain(str(problem))
        else:
            show_usage()
        return USER_ERROR
    except (typer.Abort, KeyboardInterrupt):
        _complain("Interrupted. No release was written.")
        return INTERRUPTED
    except Exception as defect:
        _complain(_defect_report(defect), style="bold red")
        return DEFECT


def _complain(text: str, *, style: str | None = None) -> None:
    # Loaded here: a list of the commands needs neither colours nor the rooms that the console prints from.
    from tabulary.cli.console import errors

    errors.print(text, style=style, markup=False)


def _defect_report(defect: Exception) -> str:
    """Return what may be said about an unforeseen error: its type and its place in the code, never its message.

    The message and the local variables of a foreign exception may hold a value from the records.
    """
    frames = traceback.extract_tb(defect.__traceback__)
    places = [f"{frame.name}:{frame.lineno}" for frame in frames]
    kind = type(defect).__name__
    report_id = hashlib.sha256(" ".join([kind, *places]).encode()).hexdigest()[:12]
    where = next((f.name for f in reversed(frames) if "tabulary" in f.filename), "unknown")
    return (
        f"Internal error {report_id}: a defect in Tabulary ({kind} in {where}). No release was written. "
        "`tabulary ledger show` shows whether budget was spent. Please report this id: it contains nothing "
        "from your data."
    )
