"""The tests of what changed since `main`, run: `python -m tools.changed_tests`. `make check` does.

What changed is what differs from the last commit that this branch shares with `main`, and what git does not know yet;
on `main` itself, what is not committed. The tests of a changed file are

- the file itself, if it holds tests or examples;
- its mirror: `src/tabulary/core/table.py` has `tests/unit/core/test_table.py`, `bench/lp.py` has `test_lp.py`;
- every test file that imports it, by its own name or from a package that passes its names on.

Nobody waits for more than `MOST` files of the last kind, or for slow tests: `make test` runs what is left out here.
"""

import ast
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
MOST = 12
PYTEST = [
    sys.executable,
    "-m",
    "pytest",
    "-q",
    "--no-header",
    "--durations=5",
    "-m",
    "not audit and not slow",
]
NO_TESTS = 5
"""What pytest exits with if all tests of the files are slow."""


def main() -> int:
    """Run the tests of what changed, and return their exit code."""
    chosen, left_out = choose(changed_files(ROOT), ROOT)
    if not chosen:
        print("Nothing that changed has tests.")
        return 0
    print(f"The tests of what changed: {' '.join(chosen)}")
    if left_out:
        print(f"{len(left_out)} more test files use what changed; `make test` runs them.")
    processes = ["-n", "2", "--dist", "loadgroup"] if len(chosen) > 2 else []
    code = subprocess.run([*PYTEST, *processes, *chosen], cwd=ROOT, check=False).returncode
    return 0 if code == NO_TESTS else code


def changed_files(root: Path) -> list[str]:
    """Return the paths of all files that changed and are still there."""
    bases = [_git(root, "merge-base", "HEAD", main) for main in ("main", "origin/main")]
    base = next((found[0] for found in bases if found), "HEAD")
    changed = _git(root, "diff", "--name-only", "--diff-filter=d", base)
    return sorted({*changed, *_git(root, "ls-files", "--others", "--exclude-standard")})


def choose(changed: Iterable[str], root: Path) -> tuple[list[str], list[str]]:
    """Return the files whose tests are run for these changes, and those that are left out."""
    files = [Path(path) for path in changed]
    near = {path for file in files for path in (file, _mirror(file)) if _holds_tests(path, root)}
    modules = {_module(file) for file in files if file.suffix == ".py"}
    using = {
        path.relative_to(root)
        for path in (root / "tests").rglob("test_*.py")
        if not modules.isdisjoint(_imported(path, root))
    }
    further = sorted(map(str, using - near))
    return sorted(map(str, near)) + further[:MOST], further[MOST:]


def _holds_tests(file: Path, root: Path) -> bool:
    """Whether a file is there and has tests, or examples that are run as tests."""
    if file.suffix == ".py":
        return (root / file).exists() and (file.name.startswith("test_") or "src" in file.parts)
    return file == Path("README.md") or (file.match("docs/**/*.md") and "reference" not in file.parts)


def _mirror(file: Path) -> Path:
    """Return where the unit tests of a module are, or would be."""
    inside = file.parts
    if "src" in inside:
        # Without the name of the package, which is the only folder of its `src`.
        at = inside.index("src")
        inside = inside[:at] + inside[at + 2 :]
    inside = inside[1:] if inside[0] == "tools" else inside
    return Path("tests", "unit", *inside[:-1], f"test_{file.stem}.py")


def _module(file: Path) -> str:
    """Return the dotted name by which a file is imported."""
    parts = file.parts[file.parts.index("src") + 1 :] if "src" in file.parts else file.parts
    names = [*parts[:-1], file.stem]
    return ".".join(names[:-1] if file.stem == "__init__" else names)


def _imported(test: Path, root: Path) -> Iterator[str]:
    """Yield the modules that a file of tests imports: also those behind a name that a package passes on."""
    for module, name in _imports(test):
        yield module
        yield f"{module}.{name}"
        package = root / "src" / Path(*module.split(".")) / "__init__.py"
        if package.exists():
            yield from (home for home, passed_on in _imports(package) if passed_on == name)


def _imports(file: Path) -> Iterator[tuple[str, str]]:
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from ((node.module, alias.name) for alias in node.names)


def _git(root: Path, *arguments: str) -> list[str]:
    ran = subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, check=False)
    return ran.stdout.splitlines() if ran.returncode == 0 else []


if __name__ == "__main__":
    sys.exit(main())
