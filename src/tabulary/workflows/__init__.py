"""The use cases: what `tb.release`, the command line and a service call."""

from typing import TYPE_CHECKING

from tabulary.lazy import load_on_use

if TYPE_CHECKING:
    from tabulary.workflows.perturbing import perturb
    from tabulary.workflows.planfile import PlanFile, read_plan_file
    from tabulary.workflows.releasing import release, release_to_folder

__all__ = ["PlanFile", "perturb", "read_plan_file", "release", "release_to_folder"]

load_on_use(__name__)
