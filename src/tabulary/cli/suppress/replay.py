"""`tabulary suppress replay`: the decisions of a published folder, made again from what is public."""

from pathlib import Path
from typing import Annotated

import typer

from tabulary.cli.console import output, progress_bar
from tabulary.errors import InvalidArgument, ReleaseDamaged


def replay(
    folder: Annotated[
        Path, typer.Argument(help="A folder that `tabulary suppress simulatable` wrote, or its table.json.")
    ],
) -> None:
    """Make the decisions of a published table again, and compare them with its record. Anyone can do it.

    Example: tabulary suppress replay genes
    """
    # The samplers are compiled code that takes a moment to load.
    from tabulary.suppress.pages.files import read_table
    from tabulary.suppress.simulatable_method.replay import replay as decide_again
    from tabulary.suppress.simulatable_method.simulatable import SimulatableTable

    table = read_table(folder).table
    if not isinstance(table, SimulatableTable):
        raise InvalidArgument(f"{folder} holds no decisions: simulatable suppression did not make it.")
    with progress_bar() as progress:
        found = decide_again(table, progress=progress)
    if found.difference is not None:
        raise ReleaseDamaged(
            f"{folder}: {found.difference}. The published table does not follow from its record."
        )
    output.print(
        f"All {len(table.decisions)} decisions follow from what is public: made again, they are the same.",
        markup=False,
    )
    if not found.derived_seed:
        output.print(
            "▲ The seed of the random numbers does not follow from the public inputs. Whoever chose it may have tried "
            "several.",
            style="bold yellow",
            markup=False,
        )
