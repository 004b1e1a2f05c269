"""The command `tabulary`, and what it says when something goes wrong."""

import hashlib
import importlib
import sys
import traceback
from typing import NoReturn

import typer

from tabulary.cli.console import errors
from tabulary.errors import TabularyError

# Exit codes: 0 done, 1 a defect in Tabulary, 2 something the user can mend, 130 interrupted. `audit` has 3 as well.
DEFECT, USER_ERROR, INTERRUPTED = 1, 2, 130

# Where each command is, in the order of the help. A group of commands has the name of its module as well.
_COMMANDS = {
    "demo": "demo:demo",
    "datasets": "datasets:datasets",
    "plan": "plan:plan",
    "release": "release:release",
    "show": "show:show",
    "test": "testing:judge",
    "verify": "verify:verify",
    "audit": "audit:audit_plan",
    "perturb": "perturb:perturb",
    "suppress": "suppress:suppress",
    "synth": "synth:synth",
    "study": "study:study",
    "serve": "serve:serve",
    "attack": "attack:attack",
    "ledger": "ledger:ledger",
    "key": "key:key",
    "token": "token:token",
}


def command_line(only: str | None = None) -> typer.Typer:
    """Return the command line with all commands, or with one of them.

    Loading all commands takes longer than most commands run, and a command line names only one.
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
    for name in [only] if only in _COMMANDS else _COMMANDS:
        module, _, function = _COMMANDS[name].partition(":")
        command = getattr(importlib.import_module(f"tabulary.cli.{module}"), function)
        if isinstance(command, typer.Typer):
            app.add_typer(command, name=name)
        else:
            app.command(name)(command)
    return app


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
        app = command_line(arguments[0] if arguments else None)
        result = app(args=arguments, standalone_mode=False)
        return result if isinstance(result, int) else 0
    except TabularyError as problem:
        said = " ".join([str(problem), *getattr(problem, "__notes__", [])])
        errors.print(f"Error: {said}", style="bold red", markup=False, highlight=False)
        return USER_ERROR
    except typer.TyperException as problem:
        # A wrong command line; the problem knows which command and what its usage is.
        show_usage = getattr(problem, "show", None)
        if show_usage is None:
            errors.print(str(problem), markup=False)
        else:
            show_usage()
        return USER_ERROR
    except (typer.Abort, KeyboardInterrupt):
        errors.print("Interrupted. No release was written.", markup=False)
        return INTERRUPTED
    except Exception as defect:
        errors.print(_defect_report(defect), style="bold red", markup=False, highlight=False)
        return DEFECT


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
