"""`tabulary serve DIR`: a release folder opens as a table builder, read-only, without a record, a key or a ledger."""

import json
import os
import re
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from playwright.sync_api import expect

import tabulary as tb
from tabulary.cli.app import run
from tabulary.release import Release
from tests.browsers import PHONE, accessibility_faults, chromium_browser, wider_than_its_window, window
from tests.pages import blocks
from tests.release_folders import written_release
from tests.services import Ask, ServerProcess, table_of

pytestmark = pytest.mark.slow

NAME = "census-2026"
PAGES = [
    Ask("/"),
    Ask(f"/datasets/{NAME}"),
    Ask(f"/datasets/{NAME}/table?rows=sex&columns=age&chart=bars"),
    Ask(f"/datasets/{NAME}/table?rows=sex&columns=age&test=independence"),
    Ask(f"/api/datasets/{NAME}"),
    Ask(f"/api/datasets/{NAME}/plan"),
    Ask(f"/api/datasets/{NAME}/tables.csv?by=age&by=region"),
    Ask(f"/api/datasets/{NAME}/tables.parquet?by=age&by=region"),
    table_of(NAME, "sex", "age"),
    table_of(NAME, "age", sex="F"),
    table_of(NAME),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder that holds only a release, which nobody may change."""
    place = tmp_path_factory.mktemp("machine") / NAME
    written_release(place)
    for path in [place, *place.rglob("*")]:
        path.chmod(stat.S_IMODE(path.stat().st_mode) & ~0o222)
    return place


@pytest.fixture(scope="module")
def address(folder):
    with ServerProcess(folder, workers=1) as server:
        yield f"http://127.0.0.1:{server.port}"


def _contents(folder):
    """Everything in a folder: names, modes, times and bytes."""
    return [
        (path, path.stat().st_mode, path.stat().st_mtime_ns, path.is_file() and path.read_bytes())
        for path in sorted([folder, *folder.rglob("*")])
    ]


def _open_files(process):
    """The regular files that a process has open, or has mapped without being the code of a library."""
    found = set()
    for descriptor in Path(f"/proc/{process.pid}/fd").iterdir():
        target = str(descriptor.readlink())
        if target.startswith("/") and not target.startswith("/dev/"):
            found.add(target)
    for line in Path(f"/proc/{process.pid}/maps").read_text().splitlines():
        mapped = line.split(maxsplit=5)[5] if len(line.split(maxsplit=5)) > 5 else ""
        if mapped.startswith("/") and not re.search(r"\.so(\.|$|\b)|/python3[^/]*$|locale|gconv", mapped):
            found.add(mapped)
    return found


@pytest.mark.skipif(
    sys.platform != "linux", reason="only Linux tells in /proc which files a process has open"
)
def test_a_process_that_serves_a_release_opens_no_record_ledger_or_key_and_writes_nothing(folder):
    before = _contents(folder.parent)
    importing = ("-X", "importtime", "-m", "tabulary")
    with ServerProcess(folder, workers=1, program=importing) as server:
        assert {reply.status for _, reply in server.ask_all(PAGES)} == {200}
        (process,) = server.workers()
        assert _open_files(process) == set()
        libraries = Path(f"/proc/{process.pid}/maps").read_text()
        assert "duckdb" not in libraries
        assert not [name for name in process.environ() if name.startswith("TABULARY_SERVICE")]
        log = server.log()
    loaded = set(re.findall(r"\|\s+([\w.]+)$", log, re.MULTILINE))
    # The list is complete: it has what this process certainly needs.
    assert {"tabulary.release", "tabulary.workflows.answering.released"} <= loaded
    sees_records = ("tabulary.confidential", "tabulary.mechanisms", "tabulary.cellkey", "duckdb")
    assert not [name for name in loaded if name.startswith(sees_records)]
    assert _contents(folder.parent) == before


@pytest.mark.skipif(
    sys.platform != "linux", reason="only Linux tells in /proc which files a process has open"
)
def test_a_file_that_a_process_has_open_or_mapped_would_be_found(tmp_path):
    held = tmp_path / "ledger.sqlite"
    held.write_bytes(b"x" * 5000)
    script = (
        "import mmap, sys\n"
        f"held = open({str(held)!r}, 'rb')\n"
        "if sys.argv[1] == 'mapped': kept = mmap.mmap(held.fileno(), 0, prot=mmap.PROT_READ); held.close()\n"
        "print('ready', flush=True); sys.stdin.read()"
    )
    for how in ("open", "mapped"):
        command = [sys.executable, "-c", script, how]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout.readline() == "ready\n"
            assert str(held) in _open_files(process)
            process.stdin.close()


def test_the_page_reads_both_faces_of_a_table_from_the_service(address, folder, capsys):
    (program,) = blocks("docs/how-to/serve-a-release.md", "python")
    names = {}
    exec(program.replace("http://127.0.0.1:8000", address), names)
    table = Release.load(folder)["sex", "age"]
    assert names["table"].counts.tolist() == table.counts.tolist()
    assert str(table.estimate) in capsys.readouterr().out


def test_several_workers_give_the_answers_of_the_release(folder):
    with ServerProcess(folder, workers=2) as server:
        server.wait_until_served()
        told = json.loads(server.ask(table_of(NAME, "sex", "age")).body)
        builder = tb.connect(f"http://127.0.0.1:{server.port}")
        table = builder.table(NAME, ["age", "region"])
    release = Release.load(folder)
    assert told["count"] == release["sex", "age"].counts.reshape(-1).tolist()
    assert table.counts.tolist() == release["age", "region"].counts.tolist()
    assert table.estimate.tolist() == release["age", "region"].estimate.tolist()


def test_a_command_line_that_cannot_be_served_says_what_to_do(folder, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("empty").mkdir()
    Path("service.toml").touch()
    for arguments, words in (
        ([], "needs a service file or a release folder"),
        (
            ["empty", "--port", "0"],
            "the folder has no manifest.json. Give a folder that `tabulary release` wrote.",
        ),
        (["nowhere"], "there is no service file and no release folder 'nowhere'"),
        ([str(folder), "nowhere"], "there is no service file and no release folder 'nowhere'"),
        ([str(folder), "service.toml"], "one service file, or only release folders"),
        ([str(folder), "--init"], "A release folder needs no preparation"),
        ([str(folder), "--check"], "A release folder needs no preparation"),
    ):
        assert run(["serve", *arguments]) == 2
        assert words in " ".join(capsys.readouterr().err.split())


def _walk(page):
    """Go from the list of datasets to a table, compare two cells, and download it."""
    page.goto("/")
    page.get_by_role("main").get_by_role("link", name="Census 2026").click()
    expect(page.get_by_role("main")).to_contain_text("Where the numbers come from")
    for variable, place in (("Sex", "Rows"), ("Age in years", "Columns")):
        group = page.get_by_role("group", name=variable, exact=True)
        group.get_by_role("radio", name=place, exact=True).click()
    expect(page.locator("#forecast")).to_contain_text("6 cells")
    page.get_by_role("button", name="Show the table").click()
    expect(page.get_by_role("row").filter(has_text="Women")).to_contain_text("±")
    for name, sex in (("First cell", "Women"), ("Second cell", "Men")):
        page.get_by_role("group", name=name).get_by_label("Sex").select_option(sex)
    page.get_by_role("button", name="Compare the two cells").click()
    expect(page.locator(".outcome")).to_contain_text("“Women” minus “Men”")
    with page.expect_download() as downloading:
        page.get_by_role("link", name="CSV", exact=True).click()
    return downloading.value.path().read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "size",
    [{"viewport": {"width": 1280, "height": 900}}, {"viewport": {"width": 768, "height": 1024}}, PHONE],
    ids=["desk", "tablet", "phone"],
)
def test_a_reader_builds_compares_and_downloads_a_table_of_a_release(address, size, folder, tmp_path):
    pictures = Path(os.environ.get("TABULARY_PICTURES", tmp_path))
    width = size["viewport"]["width"]
    with chromium_browser() as browser, window(browser, address, accept_downloads=True, **size) as page:
        written = _walk(page)
        for number, path in enumerate(("/", f"/datasets/{NAME}", page.url)):
            page.goto(path)
            assert not wider_than_its_window(page)
            assert not accessibility_faults(page)
            page.emulate_media(color_scheme="light")
            page.screenshot(path=pictures / f"serve-{number}-{width}.png", full_page=True)
    counts = [int(line.split(",")[2]) for line in written.splitlines()[1:]]
    assert counts == Release.load(folder)["sex", "age"].counts.reshape(-1).tolist()
