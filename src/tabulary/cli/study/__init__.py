"""`tabulary study`: the papers' experiments, and the same for one's own data."""

import typer

from tabulary.cli.study.noise_aware_tests import noise_aware_tests
from tabulary.cli.study.perturbation import perturbation
from tabulary.cli.study.rap import rap
from tabulary.cli.study.risk_utility import risk_utility
from tabulary.cli.study.sparse_tables import sparse_tables
from tabulary.cli.study.suppression import suppression
from tabulary.cli.study.three_approaches import three_approaches

study = typer.Typer(
    help="Run an experiment of a paper again, or compare mechanisms on your own data: numbers, figures and a page.",
    no_args_is_help=True,
)

study.command("sparse-tables")(sparse_tables)
study.command("risk-utility")(risk_utility)
study.command("three-approaches")(three_approaches)
study.command("rap")(rap)
study.command("perturbation")(perturbation)
study.command("noise-aware-tests")(noise_aware_tests)
study.command("suppression")(suppression)
