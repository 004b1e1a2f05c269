"""What a reader does with the pages of a table builder, in a real browser."""

import re
import shlex

import numpy as np
import pytest
from playwright.sync_api import expect

from tabulary.planning import show_width
from tests.browsers import chromium_browser, tab_to, window
from tests.builders import DOMAIN, service
from tests.serving import served

pytestmark = pytest.mark.slow

SEX_BY_AGE = "/datasets/census/table?rows=sex&columns=age"


@pytest.fixture(scope="module")
def browser():
    with chromium_browser() as opened:
        yield opened


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    with served(service(tmp_path_factory.mktemp("builder"))) as answering:
        yield answering


def place(page, variable, where):
    """Choose where a variable stands, with the mouse."""
    page.get_by_role("group", name=variable, exact=True).get_by_role("radio", name=where, exact=True).click()


def numbers(page):
    """The numbers of the table on a page, row by row, totals included; how far they may be off is left out."""
    rows = page.locator("main table tbody tr").evaluate_all(
        "rows => rows.map((row) => [...row.querySelectorAll('td')].map((cell) => cell.innerText))"
    )
    return [[_number(text) for text in row] for row in rows]


def _number(text):
    # Without the mark of doubt, the commas and the sign of per cent; the minus is a typographer's.
    return float(re.sub(r"[^0-9.-]", "", text.split("±")[0].replace("−", "-")))


def counts(page, query):
    """The counts that the API gives to the same question, with nothing rounded, in the shape of the table."""
    answer = page.request.get(f"/api/datasets/census/tables?{query}").json()
    return np.reshape(answer["count"], [len(each["levels"]) for each in answer["variables"]]).tolist()


def announced(page, words):
    expect(page.locator("#announcement")).to_contain_text(words)


def test_a_table_is_built_with_the_mouse_and_is_the_one_of_the_api(browser, address):
    with window(browser, address) as page:
        page.goto("/")
        page.get_by_role("link", name="Census 2026").click()
        place(page, "Sex", "Rows")
        place(page, "Age", "Columns")
        forecast = page.locator("#forecast")
        expect(forecast).to_contain_text("6 cells")
        expected = page.request.get("/api/datasets/census/accuracy?by=sex&by=age").json()
        assert expected["cells"] == 6
        # Before anything was asked, from the plan; the words of the page are those of the plan.
        expect(forecast).to_contain_text(f"±{show_width(expected['half_width_95'])}")
        page.get_by_role("button", name="Show the table").click()
        expect(page).to_have_url(re.compile(re.escape(SEX_BY_AGE)))
        table = page.get_by_role("table")
        for name in ("0-14", "15-64", "65+"):
            expect(table.get_by_role("columnheader", name=name)).to_be_visible()
        for name in ("F", "M"):
            expect(table.get_by_role("rowheader", name=name, exact=True)).to_be_visible()
        shown = numbers(page)
        for row, exact in zip(shown, counts(page, "by=sex&by=age"), strict=False):
            assert row[:3] == pytest.approx(exact, abs=0.51)
        # Totals are there, and are those of the smaller tables.
        assert [row[3] for row in shown[:2]] == pytest.approx(counts(page, "by=sex"), abs=0.51)
        assert shown[2][:3] == pytest.approx(counts(page, "by=age"), abs=0.51)


def test_a_table_is_built_with_the_keyboard_alone(browser, address):
    with window(browser, address) as page:
        page.goto("/")
        tab_to(page, page.get_by_role("link", name="Census 2026"))
        page.keyboard.press("Enter")
        sex, age = (page.get_by_role("group", name=name, exact=True) for name in ("Sex", "Age"))
        tab_to(page, sex.get_by_role("radio", name="Not used"))
        page.keyboard.press("ArrowRight")
        tab_to(page, age.get_by_role("radio", name="Not used"))
        page.keyboard.press("ArrowRight")
        page.keyboard.press("ArrowRight")
        announced(page, "6 cells")
        tab_to(page, page.get_by_role("button", name="Show the table"))
        page.keyboard.press("Enter")
        expect(page).to_have_url(re.compile(re.escape(SEX_BY_AGE)))
        tab_to(page, page.get_by_role("link", name="Pivot"))
        page.keyboard.press("Enter")
        expect(page).to_have_url(re.compile(r"rows=age&columns=sex"))
        expect(page.get_by_role("link", name="Pivot")).to_be_focused()
        shown = page.get_by_role("combobox", name="Numbers")
        tab_to(page, shown)
        page.keyboard.press("ArrowDown")
        expect(page).to_have_url(re.compile("show=row-percent"))
        expect(page.get_by_role("combobox", name="Numbers")).to_be_focused()
        tab_to(page, page.locator(".region"))
        tab_to(page, page.get_by_role("link", name="CSV", exact=True))
        tab_to(page, page.get_by_role("button", name="Compare the two cells"))


def test_the_keyboard_skips_to_the_content_and_every_stop_is_seen(browser, address):
    with window(browser, address) as page:
        page.goto(SEX_BY_AGE)
        page.keyboard.press("Tab")
        skip = page.get_by_role("link", name="Skip to the content")
        expect(skip).to_be_focused()
        expect(skip).to_be_in_viewport()
        page.keyboard.press("Enter")
        expect(page.get_by_role("main")).to_be_focused()
        stops = []
        for _ in range(12):
            page.keyboard.press("Tab")
            stops.append(page.evaluate(_OUTLINED))
        assert [stop for stop in stops if not stop["seen"]] == []
        assert len({stop["what"] for stop in stops}) == len(stops)


# Either the focused element has an outline, or a radio button without a face of its own lends it to its words.
_OUTLINED = """() => {
    const focused = document.activeElement;
    const outlined = [focused, focused.nextElementSibling, focused.closest("label")].filter(Boolean);
    const seen = outlined.some((each) => {
        const style = getComputedStyle(each);
        return style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2;
    });
    return { seen, what: focused.outerHTML.slice(0, 200) };
}"""


def test_a_variable_is_found_by_its_name_and_by_a_level(browser, address):
    with window(browser, address) as page:
        page.goto("/datasets/census")
        for words, found in (("completed", ["Age"]), ("straße", ["region"]), ("", ["Sex", "Age", "region"])):
            page.get_by_role("searchbox").fill(words)
            groups = page.locator("#choices").get_by_role("group")
            expect(groups).to_have_count(len(found) if words else 4)
            for name in found:
                expect(page.get_by_role("heading", name=name, exact=True)).to_be_visible()
        announced(page, "4 of 4 shown")


def test_pivoting_turns_the_table_in_place_and_the_way_back_turns_it_again(browser, address):
    with window(browser, address) as page:
        page.goto(f"{SEX_BY_AGE}&totals=off")
        before = numbers(page)
        page.evaluate("window.same = true")
        page.get_by_role("link", name="Pivot").click()
        expect(page.get_by_role("rowheader", name="15-64")).to_be_visible()
        assert numbers(page) == [list(column) for column in zip(*before, strict=True)]
        announced(page, "Age")
        expect(page.get_by_role("link", name="Pivot")).to_be_focused()
        expect(page).to_have_title(re.compile("by Age and Sex"))
        page.go_back()
        expect(page.get_by_role("columnheader", name="15-64")).to_be_visible()
        assert numbers(page) == before
        # All of that without loading a page again.
        assert page.evaluate("window.same") is True


def test_a_filter_shows_a_slice_and_can_be_taken_away(browser, address):
    with window(browser, address) as page:
        page.goto("/datasets/census")
        place(page, "Age", "Rows")
        region = page.get_by_role("group", name="region", exact=True)
        expect(region.get_by_label("Only those in")).to_be_hidden()
        place(page, "region", "Filter")
        region.get_by_label("Only those in").select_option('Straße, "old"')
        expect(page.locator("#forecast")).to_contain_text("3 cells")
        page.get_by_role("button", name="Show the table").click()
        expect(page.get_by_role("heading", level=1)).to_contain_text("Straße")
        sliced = numbers(page)
        exact = counts(page, "by=age&where=region:Stra%C3%9Fe,%20%22old%22")
        assert [row[0] for row in sliced][:3] == pytest.approx(exact, abs=0.51)
        page.get_by_role("link", name="Remove the filter").click()
        expect(page.get_by_role("heading", level=1)).not_to_contain_text("Straße")
        assert [row[0] for row in numbers(page)][:3] == pytest.approx(counts(page, "by=age"), abs=0.51)


def test_some_levels_alone_can_be_shown(browser, address):
    with window(browser, address) as page:
        page.goto("/datasets/census?rows=age")
        age = page.get_by_role("group", name="Age", exact=True)
        age.get_by_text("Choose levels").click()
        age.get_by_label("65+").check()
        expect(page.locator("#forecast")).to_contain_text("1 cell")
        page.get_by_role("button", name="Show the table").click()
        expect(page.get_by_role("rowheader", name="65+")).to_be_visible()
        assert page.get_by_role("rowheader", name="0-14").count() == 0


def test_a_permalink_shows_the_same_page_to_someone_else(browser, address):
    with window(browser, address, permissions=["clipboard-read", "clipboard-write"]) as page:
        page.goto(SEX_BY_AGE)
        page.get_by_role("combobox", name="Numbers").select_option("row-percent")
        expect(page).to_have_url(re.compile("show=row-percent"))
        page.get_by_role("combobox", name="Chart").select_option("bars")
        expect(page).to_have_url(re.compile("chart=bars"))
        link = page.locator("#permalink")
        expect(link).to_have_text(page.url)
        page.locator("#permalink + button").click()
        announced(page, "Copied")
        copied = page.evaluate("navigator.clipboard.readText()")
        shown, percent = page.get_by_role("main").inner_text(), numbers(page)
    with window(browser, address) as page:
        page.goto(copied)
        # The button says that something was copied; nothing else differs.
        assert page.get_by_role("main").inner_text() == shown.replace("Copied", "Copy")
        assert numbers(page) == percent
        assert [sum(row[:3]) for row in percent[:2]] == pytest.approx([100, 100], abs=0.3)


def test_the_calls_on_the_page_give_the_same_table(browser, address):
    with window(browser, address) as page:
        page.goto(f"{SEX_BY_AGE}&where=region:South:%20east")
        exact = counts(page, "by=sex&by=age&where=region:South:%20east")
        called = page.request.get(page.locator("#api-address").inner_text())
        assert called.json()["count"] == [count for row in exact for count in row]
        command = shlex.split(page.locator("#api-curl").inner_text())
        assert command[0] == "curl"
        csv = page.request.get(command[-1]).text()
        python = page.locator("#api-python").inner_text()
    assert len(csv.splitlines()) == 7
    said = {}
    exec(compile(python, "the page", "exec"), said)
    assert said["table"].counts.tolist() == exact


def test_a_table_that_is_not_given_is_refused_while_it_is_chosen_and_when_it_is_asked_for(browser, address):
    with window(browser, address, refused={403, 422}) as page:
        page.goto("/datasets/census?rows=region")
        place(page, "job: kind", "Columns")
        refusal = page.locator("#forecast")
        expect(refusal).to_contain_text("not given")
        expect(refusal).to_contain_text("together")
        announced(page, "not given")
        page.get_by_role("button", name="Show the table").click()
        expect(page.get_by_role("heading", level=1)).to_be_visible()
        expect(page.get_by_role("main")).to_contain_text("Nothing was counted")
        assert page.get_by_role("table").count() == 0
        # The way on leads back to what was chosen.
        page.get_by_role("link", name="Change the choices").click()
        group = page.get_by_role("group", name="job: kind", exact=True)
        expect(group.get_by_role("radio", name="Columns")).to_be_checked()


UNANSWERABLE = {
    "/datasets/nothing": (404, "dataset"),
    "/nowhere": (404, "nothing at this address"),
    f"{SEX_BY_AGE}&colour=red": (422, "colour"),
    "/datasets/census/table?rows=sex&show=guesses": (422, "row-percent"),
    "/datasets/census/table?rows=sex&columns=sex": (422, "Choose one"),
    "/datasets/census/table?rows=sex&rows=age&rows=region&where=job:+kind:paid": (403, "3"),
}


def test_an_address_that_cannot_be_answered_is_a_page_with_a_way_on(browser, address):
    with window(browser, address, refused={403, 404, 422}) as page:
        for path, (status, words) in UNANSWERABLE.items():
            assert page.goto(path).status == status, path
            main = page.get_by_role("main")
            expect(main).to_contain_text(words)
            main.get_by_role("link").last.click()
            expect(page.locator(".problem")).to_have_count(0)
            expect(page.get_by_role("heading", level=1)).to_be_visible()


def test_noise_that_dominates_is_marked_by_more_than_colour(browser, tmp_path):
    # Almost nobody lives here, so that almost every interval reaches zero; in the other builder none does.
    held = np.zeros(DOMAIN.shape, dtype=np.int64)
    held[0, 0, 0, 0] = 1
    empty = service(tmp_path, counts=held, only=("census",))
    with served(empty) as address, window(browser, address) as page:
        page.goto(f"{SEX_BY_AGE}&columns=region&totals=off")
        marked = ["~" in text for text in page.locator("main table tbody td").all_inner_texts()]
        assert marked.count(True) > 12
        # The files say the same of the same cells.
        csv = page.request.get("/api/datasets/census/tables.csv?by=sex&by=age&by=region").text().splitlines()
        assert csv[0].endswith(",status")
        assert marked == [line.endswith(",u") for line in csv[1:]]
        expect(page.locator(".notes")).to_contain_text("~")


def test_a_chart_is_a_picture_with_words(browser, address):
    with window(browser, address) as page:
        page.goto(SEX_BY_AGE)
        for chart in ("heat", "bars"):
            page.get_by_role("combobox", name="Chart").select_option(chart)
            expect(page).to_have_url(re.compile(f"chart={chart}"))
            picture = page.locator("main figure svg")
            expect(picture).to_be_visible()
            assert picture.locator("title").first.text_content()
            assert picture.locator("desc").first.text_content()


def test_two_cells_are_picked_in_the_table_and_their_difference_judged(browser, address):
    with window(browser, address) as page:
        page.goto(f"{SEX_BY_AGE}&totals=off")
        page.get_by_role("button", name="Pick in the table").click()
        cells = page.locator("main table tbody td")
        cells.nth(0).click()
        cells.nth(5).click()
        page.get_by_role("button", name="Compare the two cells").click()
        outcome = page.locator(".outcome")
        # Far more old men than young women were put in.
        expect(outcome).to_contain_text("Real")
        expect(outcome).to_contain_text("F, 0-14")
        expect(outcome).to_contain_text("M, 65+")
        announced(page, "Real")


def test_the_independence_of_two_variables_is_tested_on_the_page(browser, address):
    with window(browser, address) as page:
        page.goto(SEX_BY_AGE)
        page.get_by_role("button", name="Test independence").click()
        expect(page.locator(".outcome")).to_contain_text("degrees of freedom")
        found = page.request.post(
            "/api/datasets/census/tests", data={"test": "independence", "by": ["sex", "age"]}
        ).json()
        expect(page.locator(".outcome")).to_contain_text(f"{found['statistic']:.2f}")


def test_a_question_that_costs_is_priced_and_not_asked(browser, address):
    with window(browser, address) as page:
        page.goto("/datasets/survey")
        place(page, "sex", "Rows")
        expect(page.locator("#forecast")).to_contain_text("ρ = 0.0625")
        page.get_by_role("button", name="Show the table").click()
        expect(page.get_by_role("main")).to_contain_text("token")
        expect(page.get_by_role("main")).to_contain_text("ρ = 0.0625")
        assert page.get_by_role("table").count() == 0


def test_cell_keys_are_said_to_be_no_differential_privacy(browser, address):
    with window(browser, address) as page:
        for path in ("/", "/datasets/old", "/datasets/old/table?rows=sex&columns=age"):
            page.goto(path)
            expect(page.locator(".warning").first).to_contain_text("Not differentially private")
        # Too few are withheld, and said to be.
        page.goto("/datasets/old/table?rows=region&rows=age&columns=sex")
        assert ".." in page.get_by_role("table").inner_text()
        assert "±" not in page.get_by_role("table").inner_text()


def test_the_promise_and_the_citation_are_told_with_the_table(browser, address):
    with window(browser, address) as page:
        page.goto(SEX_BY_AGE)
        main = page.get_by_role("main")
        expect(main).to_contain_text("zero-concentrated differentially private")
        expect(main).to_contain_text("What the numbers promise")
        citation = page.locator("#citation")
        expect(citation).to_contain_text("Census 2026")
        expect(citation).to_contain_text("version 2026")


def test_everything_works_without_a_script(browser, address):
    with window(browser, address, java_script_enabled=False) as page:
        page.goto("/")
        page.get_by_role("link", name="Census 2026").click()
        assert page.get_by_role("searchbox").count() == 0
        place(page, "Sex", "Rows")
        place(page, "Age", "Columns")
        place(page, "region", "Filter")
        page.get_by_role("group", name="region", exact=True).get_by_label("Only those in").select_option(
            "North"
        )
        page.get_by_role("button", name="Preview").click()
        forecast = page.locator("#forecast")
        expect(forecast).to_contain_text("6 cells")
        expect(forecast).to_contain_text("±")
        page.get_by_role("button", name="Show the table").click()
        expect(page).to_have_url(re.compile("rows=sex&columns=age&where=region%3ANorth"))
        page.get_by_role("link", name="Pivot").click()
        expect(page.get_by_role("rowheader", name="15-64")).to_be_visible()
        page.get_by_role("link", name="Remove the filter").click()
        page.get_by_role("combobox", name="Numbers").select_option("total-percent")
        page.get_by_role("combobox", name="Chart").select_option("heat")
        page.get_by_role("button", name="Apply").click()
        expect(page.locator("main figure svg")).to_be_visible()
        first, second = (page.get_by_role("group", name=name) for name in ("First cell", "Second cell"))
        first.get_by_label("Sex").select_option("F")
        second.get_by_label("Sex").select_option("M")
        page.get_by_role("button", name="Compare the two cells").click()
        expect(page.locator(".outcome")).to_contain_text("Real")
        page.get_by_role("button", name="Test independence").click()
        expect(page.locator(".outcome")).to_contain_text("degrees of freedom")
        # What was chosen before is still chosen.
        expect(page).to_have_url(re.compile("rows=age&columns=sex&show=total-percent&chart=heat"))


def test_a_refusal_is_told_without_a_script(browser, address):
    with window(browser, address, java_script_enabled=False, refused={403}) as page:
        page.goto("/datasets/census?rows=region")
        place(page, "job: kind", "Columns")
        page.get_by_role("button", name="Preview").click()
        expect(page.locator("#forecast")).to_contain_text("not given")
        page.get_by_role("button", name="Show the table").click()
        expect(page.get_by_role("main")).to_contain_text("Nothing was counted")
