"""The list of the software that Tabulary brings along: valid, and without a trace of this machine."""

import json
import shutil
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

from tools.sbom import OWN_EXTRAS, ROOT, bill_of_materials, extras_of_users

PACKAGES = ("duckdb", "fastapi", "numba", "numpy", "pyarrow")


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """An environment that says it holds Tabulary, installed from a folder, and a few packages in our versions."""
    folder = tmp_path_factory.mktemp("sbom") / "environment"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    (packages,) = folder.glob("lib/python*/site-packages")
    for name in ("tabulary", *PACKAGES):
        distribution = metadata.distribution(name)
        about = packages / f"{name}-{distribution.version}.dist-info"
        about.mkdir()
        (about / "METADATA").write_text(distribution.read_text("METADATA") or "", encoding="utf-8")
        if name == "tabulary":
            (about / "direct_url.json").write_text(json.dumps({"url": folder.as_uri(), "dir_info": {}}))
    return folder


@pytest.fixture(scope="module")
def text(environment):
    return bill_of_materials(environment)


def test_it_is_valid_cyclonedx_about_tabulary_and_its_licence(text):
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(text) is None
    subject = json.loads(text)["metadata"]["component"]
    assert (subject["name"], subject["version"]) == ("tabulary", metadata.version("tabulary"))
    assert [each["license"]["id"] for each in subject["licenses"]] == ["Apache-2.0"]


def test_it_names_what_is_installed_in_the_versions_of_the_constraints_and_nothing_else(text):
    pinned = dict(line.split("==") for line in (ROOT / "constraints.txt").read_text().split())
    bill = json.loads(text)
    assert {each["name"]: each["version"] for each in bill["components"]} == {n: pinned[n] for n in PACKAGES}
    assert all(each["purl"] == f"pkg:pypi/{each['name']}@{each['version']}" for each in bill["components"])
    needs = {each["ref"]: each.get("dependsOn", []) for each in bill["dependencies"]}
    assert f"numpy=={pinned['numpy']}" in needs[bill["metadata"]["component"]["bom-ref"]]


def test_it_holds_no_path_no_address_and_no_time(text, environment):
    bill = json.loads(text)
    bill.pop("$schema")
    assert "://" not in json.dumps(bill)
    for trace in (str(environment), str(ROOT), sys.prefix, str(Path.home()), "externalReferences"):
        assert trace not in text
    assert "timestamp" not in bill["metadata"]
    assert "serialNumber" not in bill


def test_the_same_software_gives_the_same_bytes(text, environment, tmp_path):
    shutil.copytree(environment, tmp_path / "elsewhere", symlinks=True)
    assert bill_of_materials(tmp_path / "elsewhere") == text


def test_every_extra_that_a_user_may_add_is_listed_and_none_of_the_projects_own():
    named = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    assert set(named) > OWN_EXTRAS
    assert set(extras_of_users()) == set(named) - OWN_EXTRAS
    assert {"formats", "serve"} <= set(extras_of_users())
