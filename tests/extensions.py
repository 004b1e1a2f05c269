"""Packages that extend Tabulary as anyone may write them: one file, and one line that names what it offers."""

import subprocess
import sys


def install(folder, module, code, *, group, **offered):
    """Put a package of one module into a folder, with what it offers as entry points of a group."""
    (folder / f"{module}.py").write_text(code)
    information = folder / f"{module}-1.0.dist-info"
    information.mkdir()
    (information / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 1.0\n")
    lines = [f"[{group}]", *(f"{name} = {module}:{thing}" for name, thing in offered.items())]
    (information / "entry_points.txt").write_text("\n".join(lines) + "\n")


def python(code, *words, path):
    """Return the exit code of some Python and what it printed, in a process that sees what is installed in `path`."""
    code = f"import sys; sys.path.insert(0, {str(path)!r})\n{code}"
    done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, cwd=path)
    return done.returncode, " ".join(f"{done.stdout} {done.stderr}".split())


def tabulary(*words, path, before=""):
    """Return the exit code of a command and what it printed, in a process that sees what is installed in `path`."""
    return python(f"{before}\nfrom tabulary.cli.app import main; main()", *words, path=path)
