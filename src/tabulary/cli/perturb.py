"""`tabulary perturb`: perturb a table count by count and say what that promises, or compare two laws."""

from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from tabulary import datasets
from tabulary.cli.console import output
from tabulary.cli.figure import draw_risk_utility
from tabulary.cli.new_file import check_new, write_new
from tabulary.cli.options import check_together, given_options
from tabulary.cli.payer import AccountOption, LedgerOption, WitnessOption
from tabulary.cli.perturb_plan import perturb_plan_file
from tabulary.cli.printed_table import print_released
from tabulary.cli.promise import print_promise, print_properties, promise_of
from tabulary.core.privacy import ApproxDP, PureDP
from tabulary.core.table import Table
from tabulary.core.workload import Workload
from tabulary.errors import InvalidArgument, InvalidNoise, TabularyError
from tabulary.perturb import Laplace, MaxEntropy, Normal, Perturbation
from tabulary.perturb.hellinger import Hellinger
from tabulary.perturb.properties import noise_properties
from tabulary.release.formats import csv_bytes
from tabulary.release.table import CONFIDENCE
from tabulary.studies import BOUND, compared_laws

_EPSILON = "1"
_FIGURE = Path("risk-utility")

# Which options may be used together: for each option that chooses the action, the options that it takes.
_LAW = frozenset({"family", "epsilon", "bound", "variance"})
_TOGETHER = {
    "compare": frozenset({"dataset", "margin", "bound", "repetitions", "path"}),
    "file": frozenset({"family", "bound", "minimum", "additive", "ledger", "account", "witness", "path"}),
    "dataset": _LAW | {"margin", "minimum", "path", "properties"},
    "properties": _LAW | {"minimum"},
}
_NAMES = {"path": "--output", "file": "a plan file"}


class Family(StrEnum):
    """The families of perturbations that the command knows."""

    laplace = "laplace"
    normal = "normal"
    hellinger = "hellinger"
    max_entropy = "max-entropy"


_NEEDED = {
    (Family.normal, "bound"): "without a bound no ε holds in its tails",
    (Family.max_entropy, "bound"): "it has the largest entropy in a range",
    (Family.max_entropy, "variance"): "it has the largest entropy for a variance",
}
_REFUSED = {
    (Family.laplace, "variance"): "ε and the bound fix its variance",
    (Family.normal, "variance"): "ε and the bound fix its variance",
    (Family.hellinger, "variance"): "ε fixes its variance",
    (Family.hellinger, "bound"): "its definition has no bound",
}
_EXAMPLES = {"bound": "10", "variance": "2"}


def perturb(
    context: typer.Context,
    file: Annotated[
        Path | None, typer.Argument(help="A plan file in TOML. Its tables are perturbed and published.")
    ] = None,
    dataset: Annotated[
        str | None, typer.Option(help="A published table; `tabulary datasets` lists them.")
    ] = None,
    margin: Annotated[
        str | None, typer.Option(help='A margin of the dataset, such as "[age]". Default: the whole table.')
    ] = None,
    family: Annotated[Family, typer.Option(help="The law of the noise.")] = Family.laplace,
    epsilon: Annotated[
        str, typer.Option(help="ε, such as 1.5 or 1/2. For max-entropy: the ε at which δ is computed.")
    ] = _EPSILON,
    bound: Annotated[
        int | None,
        typer.Option(
            help="The largest change, m or D. Normal and max-entropy need one. A bound makes δ positive."
        ),
    ] = None,
    variance: Annotated[
        str | None, typer.Option(help="The variance V of the max-entropy noise, such as 2.")
    ] = None,
    minimum: Annotated[
        int | None,
        typer.Option(
            min=0, help="Publish smaller counts as this number, such as 0. This biases small counts."
        ),
    ] = None,
    additive: Annotated[
        bool,
        typer.Option(
            "--additive", help="Adjust the tables of a plan file so that margins are sums of larger tables."
        ),
    ] = False,
    properties: Annotated[
        bool,
        typer.Option(
            "--properties", help="Show which of eight properties the law has, and what each one costs."
        ),
    ] = False,
    compare: Annotated[
        bool,
        typer.Option(
            "--compare", help="Draw the effect of Laplace and Normal on a table at six values of ε."
        ),
    ] = False,
    repetitions: Annotated[
        int, typer.Option(min=1, help="How many times --compare perturbs the table for each ε.")
    ] = 100,
    path: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="A new CSV file for the table, or a new folder for the tables of a plan file. For "
            f"--compare: the folder of the figure; default {_FIGURE}.",
        ),
    ] = None,
    ledger: LedgerOption = None,
    account: AccountOption = None,
    witness: WitnessOption = None,
) -> None:
    """Perturb a table count by count, and print what that promises.

    Examples: tabulary perturb --dataset uk-census --epsilon 1.5 --bound 7,
    or: tabulary perturb --dataset uk-census --family normal --bound 12 --minimum 0 -o table.csv,
    or: tabulary perturb --properties --family max-entropy --variance 2 --bound 5,
    or: tabulary perturb --compare,
    or: tabulary perturb census.toml --minimum 0 -o census-2026 --ledger ledger.sqlite --account census
    """
    given = given_options(context)
    if not given:
        output.print(context.get_help(), markup=False)
        return
    _check_together(given)
    if compare:
        _compare(dataset or "uk-census", margin, bound, repetitions, path or _FIGURE)
        return
    _check_options(family, bound, variance)
    if file is not None:
        perturb_plan_file(
            file,
            _named_folder(path),
            family=_family_of_lists(family),
            bound=bound,
            minimum=minimum,
            additive=additive,
            ledger=ledger,
            account=account,
            witness=witness,
        )
        return
    law_options = {"family": family, "epsilon": epsilon, "bound": bound, "variance": variance}
    place = " ".join(f"--{name} {value}" for name, value in law_options.items() if value is not None)
    with _located(place):
        law = _law(family, epsilon, bound, variance)
        promised = promise_of(law, epsilon)
        # A law that is too wide to list is refused before anything is drawn.
        law.row(0)
    if dataset is not None:
        _perturb_dataset(dataset, margin, law, promised, minimum, path)
    if properties:
        print_properties(noise_properties(law, minimum=minimum, epsilon=promised.epsilon))


def _named_folder(path: Path | None) -> Path:
    if path is None:
        raise InvalidArgument(
            "the tables of a plan file are written to a new folder: name it with -o census-2026."
        )
    return path


def _family_of_lists(family: Family) -> type[Laplace] | type[Normal]:
    families: dict[Family, type[Laplace] | type[Normal]] = {Family.laplace: Laplace, Family.normal: Normal}
    if family not in families:
        raise InvalidNoise(
            f"--family {family} is only for one table of a dataset. A plan file takes laplace or normal. "
            "Nothing was counted, nothing was spent."
        )
    return families[family]


def _check_together(given: set[str]) -> None:
    mode = next((mode for mode in _TOGETHER if mode in given), None)
    if mode is None:
        raise InvalidArgument(
            "the command needs a table to perturb. Name a plan file, or a published table such as "
            "--dataset uk-census, or use --properties or --compare. Nothing was drawn."
        )
    check_together(given, mode, _TOGETHER[mode], _NAMES, "Nothing was drawn.")


def _check_options(family: Family, bound: int | None, variance: str | None) -> None:
    """Refuse an option that the family needs or cannot have, and say why."""
    options = {"bound": bound, "variance": variance}
    for name, value in options.items():
        if value is None and (family, name) in _NEEDED:
            raise InvalidNoise(
                f"--family {family} needs --{name}: {_NEEDED[family, name]}. Give one, for example --{name} "
                f"{_EXAMPLES[name]}, or use --family laplace. Nothing was drawn."
            )
        if value is not None and (family, name) in _REFUSED:
            raise InvalidNoise(
                f"--{name} does not go with --family {family}: {_REFUSED[family, name]}. Leave it out. "
                "Nothing was drawn."
            )


def _law(family: Family, epsilon: str, bound: int | None, variance: str | None) -> Perturbation:
    match family:
        case Family.laplace:
            return Laplace(epsilon, bound)
        case Family.normal:
            return Normal(epsilon, bound)
        case Family.hellinger:
            return Hellinger(epsilon)
        case Family.max_entropy:
            assert bound is not None, "max-entropy needs a bound"
            return MaxEntropy(variance, bound)


@contextmanager
def _located(place: str) -> Iterator[None]:
    """Add the options in question to the error, and say that nothing was drawn."""
    try:
        yield
    except TabularyError as problem:
        state = "" if "Nothing was drawn" in str(problem) else " Nothing was drawn."
        raise type(problem)(f"{place}: {problem}{state}") from None


def _perturb_dataset(
    dataset: str,
    margin: str | None,
    law: Perturbation,
    promised: PureDP | ApproxDP,
    minimum: int | None,
    path: Path | None,
) -> None:
    table = _table(dataset, margin)
    if path is not None:
        check_new(path, "Nothing was drawn.")
    published = law.apply(table, minimum=minimum)
    print_released(published, CONFIDENCE)
    source = datasets.describe(dataset).source
    public = f"{dataset} is already published ({source}): here it shows the method and protects nobody."
    print_promise(published, promised, public)
    if path is not None:
        write_new(path, csv_bytes(published.to_arrow()))
        output.print(f"Wrote {path}", markup=False, soft_wrap=True)


def _table(dataset: str, margin: str | None) -> Table:
    table = datasets.load(dataset)
    if margin is None:
        return table
    named = Workload.parse(margin if margin.startswith("[") else f"[{margin}]", table.domain).margins
    if len(named) != 1:
        raise InvalidArgument(
            f"--margin {margin} names several margins. Nothing was drawn. Name one at a time."
        )
    return table.project(named[0])


def _compare(dataset: str, margin: str | None, bound: int | None, repetitions: int, folder: Path) -> None:
    table = _table(dataset, margin)
    attributes = table.domain.attributes
    if len(attributes) != 2:
        first = " ".join(datasets.load(dataset).domain.attributes[:2])
        raise InvalidArgument(
            f"--compare measures the association of two attributes, and this table has {len(attributes)}. Choose two, "
            f'such as --margin "[{first}]". Nothing was drawn.'
        )
    largest = BOUND if bound is None else bound
    with _located(f"--bound {largest}"):
        compared_laws(bound=largest)
    name = f"{dataset}, {' by '.join(attributes)}"
    draw_risk_utility(table, folder, name=name, bound=largest, repetitions=repetitions)
