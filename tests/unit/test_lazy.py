import ast
import importlib
import itertools
import json
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "tabulary"
LAZY = [file for file in SOURCE.rglob("__init__.py") if "load_on_use(__name__)" in file.read_text("utf-8")]
# Each takes longer to load than numpy, or nearly so, and none is needed to show a help text.
HEAVY = {
    *("altair", "duckdb", "fastapi", "highspy", "ibis", "jinja2", "numba", "pandas", "polars", "pyarrow"),
    *("scipy", "sqlalchemy", "vl_convert"),
}


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package whose function `sold` has the name of one of its modules."""
    folder = tmp_path / "shop"
    folder.mkdir()
    (folder / "__init__.py").write_text(
        "from typing import TYPE_CHECKING\n"
        "from tabulary.lazy import load_on_use\n"
        "if TYPE_CHECKING:\n"
        "    from shop import prices\n"
        "    from shop.sold import sold, sold as given_away\n"
        "load_on_use(__name__)\n"
    )
    (folder / "prices.py").write_text("bread = 3\n")
    (folder / "sold.py").write_text("def sold():\n    return 'sold'\n")
    monkeypatch.syspath_prepend(tmp_path)
    yield "shop"
    for name in [name for name in sys.modules if name.split(".")[0] == "shop"]:
        del sys.modules[name]


STEPS = {
    "the module": lambda: importlib.import_module("shop.sold").sold,
    "the function from the module": lambda: __import__("shop.sold", fromlist=["sold"]).sold,
    "the function from the package": lambda: __import__("shop", fromlist=["sold"]).sold,
    "the attribute": lambda: importlib.import_module("shop").sold,
}


@pytest.mark.parametrize("order", list(itertools.permutations(STEPS)))
def test_a_name_means_what_the_package_imports_whatever_is_loaded_first(package, order):
    found = [STEPS[step]() for step in order]
    assert {each() for each in found} == {"sold"}
    assert importlib.import_module("shop").sold is found[0]


def test_a_name_is_loaded_when_it_is_first_used(package):
    shop = importlib.import_module(package)
    assert "shop.prices" not in sys.modules
    assert shop.prices.bread == 3
    assert "shop.prices" in sys.modules
    assert "shop.sold" not in sys.modules
    assert shop.given_away() == "sold"


def test_a_name_that_the_package_does_not_import_is_unknown(package):
    shop = importlib.import_module(package)
    assert {"prices", "sold", "given_away"} <= set(dir(shop))
    assert not hasattr(shop, "stolen")
    with pytest.raises(AttributeError, match="module 'shop' has no attribute 'stolen'"):
        _ = shop.stolen


def test_a_name_can_be_replaced(package, monkeypatch):
    shop = importlib.import_module(package)
    monkeypatch.setattr(shop, "sold", lambda: "bought")
    assert shop.sold() == "bought"
    monkeypatch.undo()
    assert shop.sold() == "sold"


@pytest.mark.parametrize("import_", ["import shop.prices", "from .prices import bread"])
def test_an_import_that_cannot_wait_is_refused(package, tmp_path, import_):
    text = (tmp_path / "shop" / "__init__.py").read_text()
    (tmp_path / "shop" / "__init__.py").write_text(text.replace("from shop import prices", import_))
    with pytest.raises(ImportError, match="only what it imports by `from a import b`"):
        importlib.import_module(package)


@pytest.mark.parametrize("file", LAZY, ids=lambda file: file.parent.name)
def test_a_package_that_loads_on_use_exports_all_that_it_imports(file):
    tree = ast.parse(file.read_text("utf-8"))
    blocks = [node for node in tree.body if isinstance(node, ast.If)]
    imported = {
        alias.asname or alias.name
        for block in blocks
        for each in block.body
        if isinstance(each, ast.ImportFrom)
        for alias in each.names
    }
    name = ".".join(["tabulary", *file.parent.relative_to(SOURCE).parts])
    module = importlib.import_module(name)
    assert imported <= {*module.__all__}
    assert all(hasattr(module, each) for each in module.__all__)


def test_the_public_names_mean_the_same_whatever_is_imported_first():
    said = loaded_after(
        "import tabulary.release.table, tabulary.planning.plan, tabulary.release as module\n"
        "import tabulary as tb\n"
        "print(tb.release.__module__, tb.plan.__module__, module is tb.release)\n"
    )
    assert said[0] == "tabulary.workflows.releasing tabulary.planning.choice True"


def test_importing_tabulary_loads_no_other_package():
    *_, names = loaded_after("import tabulary\n")
    assert not HEAVY & {*json.loads(names)}
    assert "numpy" not in json.loads(names)


@pytest.mark.parametrize(
    "arguments", [["--help"], ["plan", "--help"], ["show", "--help"], ["audit", "--help"], ["--version"]]
)
def test_a_help_text_loads_nothing_heavy(arguments):
    *_, names = loaded_after(f"from tabulary.cli.app import run\nassert run({arguments}) == 0\n")
    assert not HEAVY & {*json.loads(names)}


def test_the_list_of_commands_loads_none_of_them():
    *said, names = loaded_after("from tabulary.cli.app import run\nassert run(['--help']) == 0\n")
    assert "tabulary.cli.plan" not in json.loads(names)
    assert "rich" not in json.loads(names)
    listed = [line.split()[0] for line in said[said.index("Commands:") + 1 :] if line.startswith("  ")]
    assert {"demo", "plan", "release", "token"} <= {*listed}
    assert not [line for line in said if line.endswith("...") and "Usage" not in line]


def loaded_after(program):
    """The lines that a program prints in a process of its own, and then the names of all modules that it loaded."""
    program += "import json, sys\nprint(json.dumps(list(sys.modules)))"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return ran.stdout.splitlines()
