"""Rules of the house that no linter knows."""

import ast
import re
from importlib import import_module
from pathlib import Path

import pytest

from tabulary import errors

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "tabulary"
PAPERS = ROOT / "papers" / "src" / "tabulary_papers"
# Errors that are raised for one reason only, so that their type says it.
ONE_REASON = {
    *("BudgetExceeded", "FrozenInstanceError", "Interrupted", "KeyboardInterrupt", "LedgerBusy"),
    *("CancelledError", "ClientDisconnect", "ReadTimeout"),
}


def test_random_numbers_of_numpy_are_used_for_people_who_do_not_exist_and_for_a_public_seed_only():
    users = {
        str(file.relative_to(source))
        for source in (SOURCE, PAPERS)
        for file in source.rglob("*.py")
        if re.search(
            r"np\.random|numpy\.random|^import random|^from random", file.read_text("utf-8"), re.MULTILINE
        )
    }
    seeded = str(Path("table_samplers", "public_seed.py"))
    assert {user for user in users if Path(user).parts[0] != "datasets"} <= {seeded}


def test_every_package_says_what_it_is_for():
    packages = [*SOURCE.rglob("__init__.py"), *PAPERS.rglob("__init__.py")]
    silent = [str(f) for f in packages if not f.read_text("utf-8").startswith('"""')]
    assert not silent


def from_inside(text: str) -> list[str]:
    """The imports in a file that take something else of `tabulary` than a public name of it or of one of its rooms."""
    found = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            found += [each.name for each in node.names if each.name.startswith("tabulary.")]
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "tabulary":
            room = node.module or ""
            # The errors are one module, and all of it is public.
            public = (
                vars(errors) if room == "tabulary.errors" else getattr(import_module(room), "__all__", ())
            )
            inside = room.count(".") > 1
            found += [f"{room}.{each.name}" for each in node.names if inside or each.name not in public]
    return found


@pytest.mark.parametrize(
    "line",
    [
        "from tabulary.reconstruct.lp import solve_program",
        "from tabulary.planning import shrink_weights",
        "from tabulary import planning",
        "import tabulary.noise.sums",
    ],
)
def test_an_import_from_inside_a_room_is_found(line):
    assert from_inside(line)


def test_the_papers_take_public_names_alone():
    files = list(PAPERS.rglob("*.py"))
    found = {str(file.relative_to(ROOT)): from_inside(file.read_text("utf-8")) for file in files}
    assert len(files) > 30
    assert not {file: names for file, names in found.items() if names}


def test_every_error_stands_in_the_tree():
    text = (SOURCE / "errors.py").read_text("utf-8")
    tree = text.split('"""')[1]
    for name in re.findall(r"^class (\w+)", text, re.MULTILINE):
        assert re.search(rf"\b{name}\b", tree), name


def unexplained(text: str) -> list[str]:
    """The calls of `pytest.raises` in a file that do not say why the error is expected.

    An error says why by `match=`, or by a type that has one reason: those above, and those that the file defines.
    """
    nodes = list(ast.walk(ast.parse(text)))
    own = {node.name for node in nodes if isinstance(node, ast.ClassDef)}
    calls = [node for node in nodes if isinstance(node, ast.Call)]
    expected = [call for call in calls if ast.unparse(call.func).split(".")[-1] == "raises"]
    return [ast.unparse(call) for call in expected if not _has_pattern(call) and not _is_narrow(call, own)]


def _has_pattern(call: ast.Call) -> bool:
    """Whether a call has a pattern, and not one that is found in any text."""
    patterns = [keyword.value for keyword in call.keywords if keyword.arg == "match"]
    return bool(patterns) and not any(
        isinstance(pattern, ast.Constant) and re.search(pattern.value or "", "any text")
        for pattern in patterns
    )


def _is_narrow(call: ast.Call, own: set[str]) -> bool:
    [expected] = call.args[:1] or [ast.Constant(None)]
    types = expected.elts if isinstance(expected, ast.Tuple) else [expected]
    return {ast.unparse(each).split(".")[-1] for each in types} <= ONE_REASON | own


@pytest.mark.parametrize(
    "call",
    [
        "pytest.raises(ValueError)",
        "pytest.raises(tb.errors.InvalidPlan)",
        "pytest.raises(error)",
        "pytest.raises((BudgetExceeded, PublicError))",
        "pytest.raises(expected_exception=ValueError)",
        "raises(ValueError)",
        'pytest.raises(ValueError, match="")',
        'pytest.raises(ValueError, match=".")',
        'pytest.raises(ValueError, match=r".*")',
        "pytest.raises(ValueError, match=None)",
    ],
)
def test_an_expected_error_without_its_reason_is_found(call):
    assert unexplained(f"with {call} as caught:\n    ask()") == [ast.unparse(ast.parse(call))]


@pytest.mark.parametrize(
    "call",
    [
        'pytest.raises(ValueError, match="no level")',
        "pytest.raises(error, match=reason)",
        'pytest.raises(ValueError, match=re.escape("f(x)"))',
        "pytest.raises(KeyboardInterrupt)",
        "pytest.raises(tb.errors.BudgetExceeded)",
        "pytest.raises((LedgerBusy, BudgetExceeded))",
        "pytest.raises(Crash)",
    ],
)
def test_an_expected_error_with_its_reason_is_not_found(call):
    assert not unexplained(f"class Crash(Exception): ...\nwith {call}:\n    ask()")


def test_every_expected_error_says_why_it_is_expected():
    files = [file for folder in ("tests", "docs", "bench") for file in (ROOT / folder).rglob("*.py")]
    found = {str(file.relative_to(ROOT)): unexplained(file.read_text("utf-8")) for file in files}
    assert not {file: calls for file, calls in found.items() if calls}
