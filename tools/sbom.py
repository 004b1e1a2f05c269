"""The software that Tabulary brings along, as a CycloneDX list: `make sbom` writes sbom.cdx.json.

Tabulary is installed with every extra that a user may add, in the versions of constraints.txt, into an environment that
is thrown away. The list names that environment and nothing else, so that the tools of this project are not in it. It
holds no time, no address and no path: the same versions on the same platform give the same bytes.
"""

import json
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

ROOT = Path(__file__).parents[1]
# What the project needs for itself: its pages, tests, benchmarks and this list.
OWN_EXTRAS = frozenset({"bench", "docs", "sbom", "test"})


def extras_of_users() -> list[str]:
    """Return the extras that a user may add."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    return sorted(set(project["optional-dependencies"]) - OWN_EXTRAS)


def install(environment: Path, extras: Iterable[str]) -> None:
    """Make an environment that holds Tabulary and what it needs, and no pip."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    into = ["--python", environment / "bin" / "python"]
    pinned = ["--constraint", ROOT / "constraints.txt"]
    subprocess.run([*pip, *into, "install", *pinned, f"{ROOT}[{','.join(extras)}]"], check=True)


def bill_of_materials(environment: Path) -> str:
    """Return what is installed in an environment, Tabulary as its subject, as CycloneDX in JSON.

    References to elsewhere are left out: they hold the folder that Tabulary was installed from, and addresses that
    depend on where packages came from. Name, version and package URL say what a component is.
    """
    # It is validated below, as it is published.
    options = ["--output-reproducible", "--spec-version", "1.6", "--no-validate"]
    made = subprocess.run(
        [sys.executable, "-m", "cyclonedx_py", "environment", *options, environment],
        check=True,
        capture_output=True,
        text=True,
    )
    bill = _without_references(json.loads(made.stdout))
    (tabulary,) = [each for each in bill["components"] if each["name"] == "tabulary"]
    bill["components"].remove(tabulary)
    bill["metadata"]["component"] = tabulary
    text = json.dumps(bill, indent=2, ensure_ascii=False, sort_keys=True) + "\n"
    problem = JsonStrictValidator(SchemaVersion.V1_6).validate_str(text)
    if problem is not None:
        raise ValueError(f"the list is not valid CycloneDX, and was not written: {problem}")
    return text


def _without_references(part: Any) -> Any:
    if isinstance(part, dict):
        return {key: _without_references(value) for key, value in part.items() if key != "externalReferences"}
    return [_without_references(each) for each in part] if isinstance(part, list) else part


def main() -> None:
    """Write the list beside pyproject.toml."""
    with tempfile.TemporaryDirectory() as folder:
        environment = Path(folder) / "environment"
        install(environment, extras_of_users())
        (ROOT / "sbom.cdx.json").write_text(bill_of_materials(environment), encoding="utf-8")


if __name__ == "__main__":
    main()
