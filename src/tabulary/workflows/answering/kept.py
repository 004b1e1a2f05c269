"""What a table builder keeps so that every start and every worker serve the same: its plans and its releases.

All of it is public, and none of it is needed: it is made again, the same, where it is missing. A plan is kept because
another version of the software might plan otherwise, a reconstruction because it takes seconds or minutes.
"""

import json
import tempfile
from collections.abc import Callable
from pathlib import Path

from tabulary.core.domain import MAX_CELLS
from tabulary.errors import PublicError, ReleaseExists, ServiceError
from tabulary.planning import Plan, plan_from_description
from tabulary.release import Release, expected_bytes, staged_folder

_PLAN = "plan.json"


def kept_plan(folder: Path, name: str, make: Callable[[], Plan]) -> Plan:
    """Return the plan that is kept under this name; `make` and keep it if there is none."""
    place = folder / f"plan-{name}"
    if not place.exists():
        folder.mkdir(parents=True, exist_ok=True)
        described = json.dumps(make().describe(), ensure_ascii=False, indent=1).encode()
        try:
            with staged_folder(place, expected_bytes=len(described)) as staged:
                staged.write(_PLAN, described)
        except ReleaseExists:
            # Another process was faster; what it kept is what all serve.
            pass
    try:
        return plan_from_description(json.loads((place / _PLAN).read_bytes()))
    except (OSError, ValueError, PublicError):
        raise _damaged(place) from None


def kept_release(folder: Path | None, name: str, plan: Plan, make: Callable[[], Release]) -> Release:
    """Return the release of a plan that is kept under this name; `make` and keep it if there is none.

    Of two processes that make it at once, the first keeps its own, and the other serves that. Without a folder it is
    kept for a moment, since what is read back may differ from what was made in the last digit of an interval.
    """
    if folder is None:
        with tempfile.TemporaryDirectory(prefix="tabulary-") as passing:
            return kept_release(Path(passing), name, plan, make)
    place = folder / f"tables-{name}"
    if not place.exists():
        folder.mkdir(parents=True, exist_ok=True)
        try:
            with staged_folder(place, expected_bytes=expected_bytes(plan)) as staged:
                make().write_into(staged)
        except ReleaseExists:
            pass
    try:
        # The plan is known, and with it how large the tables are.
        cells = sum(map(plan.domain.cells, plan.workload))
        release = Release.load(place, max_cells=max(MAX_CELLS, cells))
    except PublicError:
        raise _damaged(place) from None
    if release.plan != plan:
        raise _damaged(place)
    return release


def _damaged(place: Path) -> ServiceError:
    return ServiceError(
        f"what is kept at {str(place)!r} is damaged, or is not what this service keeps there. Nothing was served from "
        "it. Remove that folder: it is made again, the same, at the next start."
    )
