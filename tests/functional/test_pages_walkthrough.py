"""The walkthrough of the documentation does what it says: a custodian opens a dataset, a reader answers a question."""

import re
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq
from playwright.sync_api import expect

from tabulary.builder.configuration import read_service_file
from tabulary.builder.opening import open_service
from tabulary.cli.app import run
from tests.browsers import chromium_browser, window
from tests.pages import blocks, lines_of, read, run_curl
from tests.serving import served

PAGE = "docs/tutorial/open-a-dataset.md"


def test_a_custodian_opens_a_dataset_and_a_reader_answers_a_question(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (service_file,) = blocks(PAGE, "toml")
    make, check, init, serve = (line.split()[1:] for line in lines_of(PAGE, "tabulary"))
    assert run(make) == 0
    Path("service.toml").write_text(service_file, encoding="utf-8")
    assert run(check) == 0
    assert re.search(r"6\.9.*region sex employment", capsys.readouterr().out)
    assert run(init) == 0
    (token,) = re.findall(r"tab_\w+", capsys.readouterr().out)
    # Served in this process; the command itself is tested elsewhere.
    assert serve == ["serve", "service.toml"]
    with (
        served(open_service(read_service_file("service.toml"))) as address,
        chromium_browser() as browser,
        window(browser, address) as page,
    ):
        _reader(page)
        page.goto("/custodian")
        page.get_by_label("Token").fill(token)
        page.get_by_role("button", name="Sign in").click()
        expect(page.get_by_role("main")).to_contain_text("Fingerprint of the key")
        (call,) = lines_of(PAGE, "curl")
        said = run_curl(call.replace("http://127.0.0.1:8000", address), tmp_path)
        assert said.startswith("employment,sex,count,")
    assert _unemployed_in_london("people.parquet") == {"female": 194, "male": 252}
    assert "The true numbers are 194 and 252" in read(PAGE)


def _reader(page):
    """Follow the steps of a reader, by the words that the page prints in italics."""
    page.goto("/")
    page.get_by_role("link", name="100,000 generated people").click()
    for variable, place in (("Employment status", "Rows"), ("Sex", "Columns"), ("Region", "Filter")):
        group = page.get_by_role("group", name=variable, exact=True)
        group.get_by_role("radio", name=place, exact=True).click()
    page.get_by_label("Only those in").locator("visible=true").select_option("London")
    expect(page.locator("#forecast")).to_contain_text("10 cells")
    expect(page.locator("#forecast")).to_contain_text("±6.9")
    page.get_by_role("button", name="Show the table").click()
    unemployed = page.get_by_role("row").filter(has_text="unemployed")
    expect(unemployed).to_contain_text("±7")
    for name, sex in (("First cell", "Women"), ("Second cell", "Men")):
        group = page.get_by_role("group", name=name)
        group.get_by_label("Employment status").select_option("unemployed")
        group.get_by_label("Sex").select_option(sex)
    page.get_by_role("button", name="Compare the two cells").click()
    # Ten standard errors from zero: whatever the key, the answer is the same.
    expect(page.locator(".outcome")).to_contain_text("Real")


def _unemployed_in_london(file):
    people = pq.read_table(file)
    meant = pc.and_(pc.equal(people["region"], "London"), pc.equal(people["employment"], "unemployed"))
    counted = people.filter(meant)["sex"].combine_chunks().value_counts().to_pylist()
    return {each["values"]: each["counts"] for each in counted}
