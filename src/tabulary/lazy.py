"""Names of a package that are loaded when they are first used, so that importing the package costs little."""

import ast
import importlib
import sys
from types import ModuleType
from typing import Any


def load_on_use(package: str) -> None:
    """Make the imports below `if TYPE_CHECKING:` of a package happen when one of their names is first used.

    The imports are read from the package's own source: they are written once, and type checkers and import rules see
    them. The package's `__init__.py` ends with `load_on_use(__name__)`.

    A name of the package may also be the name of one of its modules: `tabulary.release` is a function, and the folder
    `tabulary/release` is a package. The name then always means what the package imports, whatever was loaded first.
    """
    module = sys.modules[package]
    module.__class__ = _LoadedOnUse
    vars(module)["_homes"] = _homes(package)


class _LoadedOnUse(ModuleType):
    """A package that loads its names when they are first used."""

    def __getattr__(self, name: str) -> Any:
        if name not in vars(self)["_homes"]:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        home, inner = vars(self)["_homes"][name]
        found = importlib.import_module(home)
        if inner:
            found = getattr(found, inner)
        vars(self)[name] = found
        return found

    def __setattr__(self, name: str, value: object) -> None:
        # Python binds a module that it has imported in its package, also where that name means something else.
        if not (isinstance(value, ModuleType) and vars(self)["_homes"].get(name, ("", ""))[1]):
            super().__setattr__(name, value)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *vars(self)["_homes"]})


def _homes(package: str) -> dict[str, tuple[str, str]]:
    """Return for each name the module that has it, and what it is called there: nothing if it is the module itself."""
    spec = sys.modules[package].__spec__
    source = spec.loader.get_source(package) if spec and spec.loader else None  # type: ignore[attr-defined]
    if source is None:
        raise ImportError(f"the source of {package} is missing, and it says where the package's names are.")
    homes = {}
    for block in ast.parse(source).body:
        if not (isinstance(block, ast.If) and ast.unparse(block.test) == "TYPE_CHECKING"):
            continue
        for statement in block.body:
            if not (isinstance(statement, ast.ImportFrom) and statement.module and not statement.level):
                raise ImportError(f"{package} can load on use only what it imports by `from a import b`.")
            for imported in statement.names:
                here = imported.asname or imported.name
                # `from tabulary import infer` in tabulary names a module, and what it means here is that module.
                place = f"{package}.{imported.name}" if statement.module == package else statement.module
                homes[here] = (place, "" if statement.module == package else imported.name)
    return homes
