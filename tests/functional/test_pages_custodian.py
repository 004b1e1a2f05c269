"""The custodian's pages in a real browser: signing in, accounts, tokens, the ledger, usage; and an analyst who pays."""

import re

import pytest
from playwright.sync_api import expect

from tests.browsers import (
    PHONE,
    accessibility_faults,
    chromium_browser,
    tab_to,
    wider_than_its_window,
    window,
)
from tests.builders import service
from tests.serving import served

pytestmark = pytest.mark.slow

ROOMS = tuple(f"/custodian{room}" for room in ("", "/accounts", "/ledger", "/tokens", "/usage", "/log"))


@pytest.fixture(scope="module")
def browser():
    with chromium_browser() as opened:
        yield opened


@pytest.fixture(scope="module")
def opened(tmp_path_factory):
    """A builder, with a custodian's token and an analyst's."""
    made = service(tmp_path_factory.mktemp("builder"))
    _, custodian = made.state.tokens.add("Grace", "custodian")
    _, analyst = made.state.tokens.add("Bob", "analyst", account="bob")
    with served(made) as address:
        yield address, custodian, analyst


def sign_in(page, token, path="/custodian"):
    page.goto(path)
    page.get_by_label("Token").fill(token)
    page.get_by_role("button", name="Sign in").click()


@pytest.mark.parametrize("script", [True, False])
def test_a_custodian_signs_in_opens_an_account_makes_a_token_and_signs_out(browser, opened, script):
    address, token, _ = opened
    name = "Mary" if script else "Émilie"
    with window(browser, address, refused={401}, java_script_enabled=script) as page:
        page.goto("/custodian")
        expect(page).to_have_url(re.compile("/sign-in"))
        sign_in(page, token)
        expect(page).to_have_url(re.compile("/custodian$"))
        expect(page.get_by_role("main")).to_contain_text("Fingerprint of the key")
        page.get_by_role("link", name="Accounts").click()
        page.get_by_label("Name").fill(name)
        page.get_by_label("ρ", exact=True).fill("1/8")
        page.get_by_role("button", name="Open the account").click()
        expect(page.get_by_role("status").first).to_contain_text(name)
        page.get_by_role("link", name="Make a token for it").click()
        page.get_by_label("Whose it is").fill(name)
        expect(page.get_by_label("Account that pays")).to_have_value(name)
        page.get_by_role("button", name="Make the token").click()
        made = page.locator("#made").inner_text()
        assert made.startswith("tab_")
        # It is shown once: going back and on again does not bring it back.
        page.get_by_role("link", name="To the tokens").click()
        assert made not in page.content()
        page.get_by_role("link", name=name).click()
        page.get_by_role("button", name="Revoke the token").click()
        expect(page.get_by_role("row").filter(has_text=name)).to_contain_text("revoked")
        page.get_by_role("button", name="Sign out").click()
        expect(page.get_by_role("heading", name="Datasets")).to_be_visible()
        page.goto("/custodian/accounts")
        expect(page.get_by_label("Token")).to_be_visible()
        assert "bob" not in page.content()


def test_a_custodian_signs_in_with_the_keyboard_alone(browser, opened):
    address, token, _ = opened
    with window(browser, address, refused={401}) as page:
        page.goto("/custodian/usage")
        tab_to(page, page.get_by_label("Token"))
        page.keyboard.type(token)
        page.keyboard.press("Enter")
        # To where one wanted to go.
        expect(page).to_have_url(re.compile("/custodian/usage$"))
        tab_to(page, page.get_by_role("button", name="Sign out"))
        page.keyboard.press("Enter")
        expect(page.get_by_role("heading", name="Datasets")).to_be_visible()


def test_the_custodians_pages_are_for_everyone_and_show_no_count_of_people(browser, opened):
    address, token, _ = opened
    with window(browser, address, refused={401}) as page:
        page.goto("/sign-in")
        assert accessibility_faults(page) == []
        sign_in(page, token)
        # How many people there are, and how many are women, is what the tables tell with noise.
        counted = [
            page.request.get(f"/api/datasets/census/tables?{asked}").json()["count"]
            for asked in ("", "by=sex")
        ]
        near = [round(count) for counts in counted for count in counts]
        for room in ROOMS:
            page.goto(room)
            assert accessibility_faults(page) == [], room
            shown = {int(number.replace(",", "")) for number in re.findall(r"\b\d[\d,]{2,}\b", _words(page))}
            assert not {count + off for count in near for off in range(-20, 21)} & shown
            assert page.locator("[style], style, script").count() == 0


def _words(page):
    """What a page says, without the digests and the days that it shows."""
    return page.get_by_role("main").evaluate(
        """main => {
            const copy = main.cloneNode(true);
            copy.querySelectorAll("code, time, svg").forEach((each) => each.remove());
            return copy.textContent.replaceAll(/\\d{4}-\\d\\d-\\d\\d/g, "");
        }"""
    )


def test_the_custodians_pages_fit_a_phone(browser, opened):
    address, token, _ = opened
    with window(browser, address, refused={401}, **PHONE) as page:
        sign_in(page, token)
        for room in ROOMS:
            page.goto(room)
            assert wider_than_its_window(page) == [], room


def test_the_session_is_out_of_reach_of_scripts_and_of_other_sites(browser, opened):
    address, token, _ = opened
    with window(browser, address, refused={401}) as page:
        sign_in(page, token)
        (cookie,) = [each for each in page.context.cookies() if "session" in each["name"]]
        assert cookie["httpOnly"]
        assert cookie["sameSite"] == "Strict"
        assert token not in cookie["value"]
        page.goto("/")
        assert "session" not in page.evaluate("document.cookie")


def test_a_form_with_another_sessions_token_does_nothing(browser, opened):
    address, token, _ = opened
    with window(browser, address, refused={401, 403}) as page:
        sign_in(page, token, "/custodian/accounts")
        page.get_by_label("Name").fill("mallory")
        page.get_by_label("ρ", exact=True).fill("1")
        page.locator("form.fields input[name=form_token]").evaluate(
            "field => { field.value = 'a'.repeat(64) }"
        )
        with page.expect_response(re.compile("/custodian/accounts")) as answered:
            page.get_by_role("button", name="Open the account").click()
        assert answered.value.status == 403
        page.goto("/custodian/accounts")
        assert page.get_by_role("link", name="mallory").count() == 0


def test_what_is_wrong_with_a_form_is_said_beside_it(browser, opened):
    address, token, _ = opened
    with window(browser, address, refused={401, 422}) as page:
        sign_in(page, token, "/custodian/accounts")
        page.get_by_label("Name").fill("eve")
        page.get_by_label("ρ", exact=True).fill("a lot")
        page.get_by_role("button", name="Open the account").click()
        expect(page.get_by_role("alert")).to_contain_text("Nothing was changed")
        expect(page.get_by_label("ρ", exact=True)).to_have_value("a lot")
        assert accessibility_faults(page) == []


def test_an_analyst_pays_for_a_question_once_and_sees_no_page_of_the_custodian(browser, opened):
    address, custodian, token = opened
    with window(browser, address, refused={401, 403}) as page:
        page.goto("/datasets/survey/table?rows=sex")
        page.get_by_role("main").get_by_role("link", name=re.compile("sign in", re.IGNORECASE)).first.click()
        page.get_by_label("Token").fill(token)
        page.get_by_role("button", name="Sign in").click()
        # Back at the question, which still costs: to look is not to pay.
        expect(page).to_have_url(re.compile("/datasets/survey/table"))
        assert page.get_by_role("table").count() == 0
        page.get_by_role("main").get_by_role("button", name=re.compile("pay|ask", re.IGNORECASE)).click()
        expect(page.get_by_role("table")).to_be_visible()
        assert page.goto("/custodian").status == 403
    with window(browser, address, refused={401}) as page:
        sign_in(page, custodian, "/custodian/ledger?account=bob")
        expect(page.locator(".timeline li")).to_have_count(1)
        expect(page.locator(".timeline")).to_contain_text(re.compile(r"ρ\s=\s0\.0625"))
