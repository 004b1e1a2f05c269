"""Units of systemd as the examples have them: read, and their filter of system calls laid on a real process."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

# Loads the filter into itself and becomes the interpreter that it stands for: children inherit it.
_FILTERED = """#!{python}
import ctypes, os, sys
seccomp = ctypes.CDLL("libseccomp.so.2")
seccomp.seccomp_init.restype = ctypes.c_void_p
REFUSED = 0x00050000 | 1  # SCMP_ACT_ERRNO(EPERM)
ALLOWED = 0x7FFF0000  # SCMP_ACT_ALLOW
chosen = ctypes.c_void_p(seccomp.seccomp_init(ctypes.c_uint32(REFUSED)))
for name in {names!r}:
    number = seccomp.seccomp_syscall_resolve_name(name.encode())
    if number >= 0:
        assert seccomp.seccomp_rule_add(chosen, ctypes.c_uint32(ALLOWED), number, 0) == 0, name
assert seccomp.seccomp_load(chosen) == 0
os.execv({python!r}, [{python!r}, *sys.argv[1:]])
"""


def systemd_analyze(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Return what systemd-analyze says, or skip the test where there is none."""
    program = shutil.which("systemd-analyze")
    if program is None:
        pytest.skip(
            "there is no systemd-analyze, so the units were NOT checked: sudo apt-get install --yes systemd"
        )
    return subprocess.run([program, *arguments], capture_output=True, text=True, check=False)


def settings(unit: Path) -> dict[str, list[str]]:
    """Return the values of each key of a unit, in their order."""
    found: dict[str, list[str]] = {}
    for key, value in re.findall(r"^(\w+)=(.*)$", unit.read_text(encoding="utf-8"), re.MULTILINE):
        found.setdefault(key, []).append(value)
    return found


def allowed_calls(unit: Path) -> set[str]:
    """Return the names of the system calls that a unit allows: what `SystemCallFilter=` lists, less what `~` lists."""
    allowed: set[str] = set()
    for value in settings(unit)["SystemCallFilter"]:
        named = {call for word in value.removeprefix("~").split() for call in _calls(word)}
        allowed = allowed - named if value.startswith("~") else allowed | named
    # systemd allows these always.
    return allowed | _calls("@default") | {"execve"}


def filtered_interpreter(unit: Path, folder: Path) -> Path:
    """Write a stand-in for Python that runs it under the system calls that the unit allows, and return its path."""
    script = folder / "filtered-python"
    script.write_text(_FILTERED.format(python=sys.executable, names=sorted(allowed_calls(unit))))
    script.chmod(0o755)
    return script


def _calls(word: str) -> set[str]:
    if not word.startswith("@"):
        return {word}
    lines = systemd_analyze("syscall-filter", word).stdout.splitlines()[1:]
    return {
        call for line in lines if not line.strip().startswith("#") for call in _calls(line.strip()) if call
    }
