"""The units of systemd in `examples/` are sound, shut the service in, and let it work."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tabulary.cli.app import run
from tests.services import ServerProcess, table_of
from tests.units import allowed_calls, filtered_interpreter, settings, systemd_analyze

pytestmark = pytest.mark.slow

EXAMPLES = Path(__file__).parents[2] / "examples"
UNITS = [EXAMPLES / "one-machine" / "tabulary.service", EXAMPLES / "several-workers" / "tabulary.service"]
# What the two examples have to differ in: where they write, and what is there before them.
OWN = {"After", "Wants", "EnvironmentFile", "ReadOnlyPaths", "ReadWritePaths"}

every_unit = pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.parent.name)


def _runnable(unit, folder):
    """A copy whose command is one that this machine has: nothing else is changed."""
    text, changed = re.subn(
        r"^ExecStart=\S+", f"ExecStart={shutil.which('true')}", unit.read_text("utf-8"), flags=re.MULTILINE
    )
    assert changed == 1
    copy = folder / unit.name
    copy.write_text(text, encoding="utf-8")
    return copy


@every_unit
def test_systemd_finds_nothing_wrong_with_a_unit(unit, tmp_path):
    verified = systemd_analyze("verify", "--man=no", "--recursive-errors=no", _runnable(unit, tmp_path))
    assert (verified.returncode, verified.stderr) == (0, "")


def test_systemd_would_find_a_slip_of_the_pen(tmp_path):
    copy = _runnable(UNITS[0], tmp_path)
    copy.write_text(copy.read_text("utf-8").replace("ProtectSystem=", "ProtectSytem="), encoding="utf-8")
    verified = systemd_analyze("verify", "--man=no", "--recursive-errors=no", copy)
    assert "'ProtectSytem'" in verified.stderr


@every_unit
def test_systemd_calls_the_exposure_of_a_unit_small(unit, tmp_path):
    copy = _runnable(unit, tmp_path)
    # In tenths: at most 1.5 of 10.
    judged = systemd_analyze("security", "--offline=true", "--threshold=15", "--no-pager", copy)
    assert judged.returncode == 0, judged.stdout


def test_both_units_shut_the_service_in_alike():
    one, several = map(settings, UNITS)
    assert {k: v for k, v in one.items() if k not in OWN} == {
        k: v for k, v in several.items() if k not in OWN
    }


@every_unit
def test_a_unit_leaves_no_core_dump_and_no_way_to_change_the_key(unit):
    found = settings(unit)
    assert found["LimitCORE"] == ["0"]
    assert found["UMask"] == ["0077"]
    assert found["ProtectSystem"] == ["strict"]
    (written,) = found["ReadWritePaths"]
    kept_from_it = " ".join(found.get("ReadOnlyPaths", []))
    key = "/srv/tabulary/secret.key"
    assert not key.startswith(f"{written}/") or key in kept_from_it.split()
    assert "chmod 0400 secret.key" in unit.read_text("utf-8")


@every_unit
def test_no_secret_stands_in_a_unit(unit):
    text = unit.read_text("utf-8")
    assert not re.search(r"^Environment=.*PASSWORD", text, re.MULTILINE)
    assert "postgresql://tabulary:" not in text


def test_a_service_serves_under_the_system_calls_of_its_unit(tmp_path, monkeypatch, capsys):
    folder = tmp_path / "service"
    shutil.copytree(EXAMPLES / "one-machine", folder)
    monkeypatch.chdir(folder)
    assert run(["datasets", "people", "--rows", "2000", "-o", "people.parquet"]) == 0
    assert run(["serve", "service.toml", "--init"]) == 0
    filtered = filtered_interpreter(UNITS[0], tmp_path)
    refused = subprocess.run(
        [filtered, "-c", "import os; os.chown('people.parquet', -1, -1)"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert "PermissionError" in refused.stderr
    monkeypatch.setattr(sys, "executable", str(filtered))
    with ServerProcess(folder / "service.toml", workers=2) as server:
        for worker in server.workers():
            status = Path(f"/proc/{worker.pid}/status").read_text()
            assert re.search(r"^Seccomp:\s+2$", status, re.MULTILINE)
        assert server.ask(table_of("census", "region", "sex")).status == 200
        assert server.ask(table_of("census", "sex", "birth_country")).status == 200


@every_unit
def test_what_administrators_call_is_not_allowed(unit):
    calls = allowed_calls(unit)
    assert {"read", "openat", "mmap", "clone3", "futex", "prlimit64"} <= calls
    assert not calls & {
        "ptrace",
        "mount",
        "bpf",
        "chown",
        "setuid",
        "init_module",
        "reboot",
        "swapon",
        "settimeofday",
    }
