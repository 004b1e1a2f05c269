"""Rules of the house that no linter knows."""

import ast
import re
from importlib import import_module
from pathlib import Path

import pytest

from tabulary import errors
from tools.plain_english import findings, prose

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
    expected = [
        call for call in calls if "raises" in (getattr(call.func, "attr", ""), getattr(call.func, "id", ""))
    ]
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


def test_prose_has_no_idiom_that_readers_with_another_first_language_stumble_over():
    found = [
        each for file in prose() for each in findings(file.read_text("utf-8"), str(file.relative_to(ROOT)))
    ]
    assert not found, "\n".join(map(str, found))


@pytest.mark.parametrize(
    "text",
    [
        "one row a count",
        "A line a key.",
        "12 bytes a cell",
        "cells that cannot be.",
        "as much as can be told from noise",
        "what the plan reckons with",
        "ten unless told otherwise",
        "what is open about a cell",
        "it has to earn its bias",
        "the table is led to its margins",
        "the budget stands for good",
    ],
)
def test_an_idiom_is_found_with_the_words_to_write_instead(text):
    (found, *_) = findings(f"First line.\n{text}", "page.md")
    assert str(found).startswith("page.md:2: ")
    assert found.instead


@pytest.mark.parametrize(
    "text",
    ["one row per count", "one row at a time", "the file cannot be read", "a cell that cannot be counted"],
)
def test_plain_words_are_no_idiom(text):
    assert not list(findings(text))


# Names of other packages that say what a test must know, and that have no public twin.
OTHERS = {
    "_active_spark_context",
    "_hypothesis_internal_use_settings",
    "_jsc",
    "_native_telemetry",
    "_protected_args",
}


def is_private(dotted: str) -> bool:
    """Whether a name, or a part of a dotted one, begins with an underscore, but for those of the language."""
    return any(re.match(r"_(?!_)|__.*(?<!__)$", part) and part not in OTHERS for part in dotted.split("."))


def private_names(text: str) -> list[str]:
    """The private names of others that a file of tests imports, reads or patches.

    Its own classes and functions may have private names, and use those of themselves.
    """
    nodes = list(ast.walk(ast.parse(text)))
    own = {node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    own |= {node.attr for node in nodes if isinstance(node, ast.Attribute) and _is_self(node.value)}
    found = []
    for node in nodes:
        match node:
            case ast.Attribute(value=value, attr=name) if is_private(name) and not _is_self(value):
                found += [ast.unparse(node)] if name not in own else []
            case ast.ImportFrom(module=str(module), names=names):
                found += [f"{module}.{each.name}" for each in names if is_private(f"{module}.{each.name}")]
            case ast.Import(names=names):
                found += [each.name for each in names if is_private(each.name)]
            case ast.Call(
                func=ast.Name(id="getattr" | "setattr") | ast.Attribute(attr="setattr" | "delattr")
            ):
                texts = [each.value for each in node.args[:2] if isinstance(each, ast.Constant)]
                found += [each for each in texts if isinstance(each, str) and is_private(each)]
    return found


def _is_self(value: ast.expr) -> bool:
    return isinstance(value, ast.Name) and value.id in {"self", "cls"}


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("records._engine.close()", "records._engine"),
        ("from tabulary.noise.normal import _two_pi", "tabulary.noise.normal._two_pi"),
        ("from tabulary._hidden import door", "tabulary._hidden.door"),
        ("import tabulary._hidden", "tabulary._hidden"),
        ('monkeypatch.setattr(engine, "_LIMIT", 3)', "_LIMIT"),
        ('monkeypatch.setattr("tabulary.core.bits._LIMIT", 3)', "tabulary.core.bits._LIMIT"),
        ('monkeypatch.delattr(engine, "_LIMIT")', "_LIMIT"),
        ('getattr(engine, "_limit")', "_limit"),
        ("engine.__limit", "engine.__limit"),
    ],
)
def test_a_private_name_of_others_is_found(line, name):
    assert private_names(line) == [name]


@pytest.mark.parametrize(
    "line",
    [
        "records.engine.close()",
        "self._count = 3\ntwin._count",
        "class Twin:\n    def _ask(self): ...\nTwin._ask",
        'monkeypatch.setattr(engine, "LIMIT", 3)',
        "table.__class__.__name__",
        "_, found = ask()",
        "spark.sparkContext._jsc",
    ],
)
def test_a_public_name_or_ones_own_is_not_found(line):
    assert private_names(line) == []


def test_tests_speak_to_public_names():
    found = {
        str(file.relative_to(ROOT)): private_names(file.read_text("utf-8"))
        for file in (ROOT / "tests").rglob("*.py")
    }
    assert not {file: names for file, names in found.items() if names}


def test_no_two_classes_share_a_name():
    """One concept has one name, and one name one concept."""
    homes: dict[str, list[str]] = {}
    for source in (SOURCE, PAPERS):
        for file in source.rglob("*.py"):
            for node in ast.parse(file.read_text("utf-8")).body:
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    homes.setdefault(node.name, []).append(str(file.relative_to(ROOT)))
    assert {name: files for name, files in homes.items() if len(files) > 1} == {}


def spoken_flags(text: str) -> list[str]:
    """The options of a command line that texts in a file name, style sheets aside."""
    texts = [
        node.value
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    return [
        found
        for each in texts
        if "var(--" not in each
        for found in re.findall(r"(?<![\w-])--[a-z][a-z-]+", each)
    ]


def test_flags_are_found_in_messages_and_style_sheets_are_left_alone():
    assert spoken_flags('raise ValueError(f"{name}: leave --by out.")') == ["--by"]
    assert spoken_flags('STYLE = ".a{--ink:black;color:var(--ink)}"') == []


def test_no_layer_below_the_command_line_speaks_of_flags():
    rooms = [file for file in SOURCE.rglob("*.py") if file.relative_to(SOURCE).parts[0] != "cli"]
    found = {str(file.relative_to(SOURCE)): spoken_flags(file.read_text("utf-8")) for file in rooms}
    assert {file: flags for file, flags in found.items() if flags} == {}
