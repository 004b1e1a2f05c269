"""The custodian's pages: what they show, what they do, and that they never show a count."""

import re
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tabulary.builder.app import create_app
from tabulary.builder.pages.custodian_data import HEIGHT, WIDTH, BudgetShare, Timeline, parts, percent
from tabulary.builder.service import Service
from tabulary.builder.state import Action, Actor, Requests, State
from tabulary.core.neighbours import Neighbours
from tabulary.core.privacy import ZCDP, ApproxDP, PureDP
from tabulary.ledger import Amount, Balance, Ledger
from tests.builders import DOMAIN, GENEROUS, SECRET, service
from tests.visitors import Visitor, form_token, words

ROOMS = ["", "/accounts", "/ledger", "/tokens", "/usage", "/log"]
ACCOUNT = {"name": "ada", "rho": "1/3", "epsilon": "", "delta": "", "relation": "add-remove", "records": "1"}
TOKEN = {"name": "Ada Lovelace", "role": "analyst", "account": "ada", "days": "30"}


class Office:
    """A service without data, and its custodian with a browser."""

    def __init__(self, folder, *, keeps_ledger=True):
        self.state = State.create(folder / "state.sqlite")
        self.ledger = Ledger.create(folder / "ledger.sqlite") if keeps_ledger else None
        self.app = create_app(Service({}, self.state, self.ledger, "ab" * 8, GENEROUS))
        self.carl, text = self.state.tokens.add("Carl", "custodian")
        self.visitor = Visitor(self.app)
        assert self.visitor.sign_in(text).status_code == 303

    def submit(self, room, **fields):
        return self.visitor.submit(f"/custodian{room}", f"/custodian{room}", **fields)

    def close(self):
        self.state.close()
        if self.ledger is not None:
            self.ledger.close()


@pytest.fixture
def office(tmp_path):
    opened = Office(tmp_path)
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def refusing_office(tmp_path_factory):
    """An office for requests that are refused: nothing is left behind."""
    opened = Office(tmp_path_factory.mktemp("office"))
    _debited(opened, 1)
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def builder(tmp_path_factory):
    """A table builder with a dataset of each method, and its custodian with a browser."""
    built = service(tmp_path_factory.mktemp("builder"))
    _, text = built.state.tokens.add("Carl", "custodian")
    visitor = Visitor(create_app(built))
    visitor.sign_in(text)
    yield built, visitor
    built.close()


def _with_amounts(text):
    return text.replace("\u00a0", " ")


def test_the_overview_shows_method_version_plan_promise_and_key(builder):
    built, visitor = builder
    said = _with_amounts(visitor.read("/custodian"))
    for dataset in built.datasets.values():
        for shown in (dataset.title, dataset.answers.version, dataset.answers.promise.statement):
            assert shown in said
        assert dataset.answers.method.value in said
    assert built.datasets["census"].answers.plan_of(()).digest() in said
    assert built.key_fingerprint in said
    assert built.ledger.identity in said
    assert "ρ = 0.5 spent of ρ = 0.5 (100 %); ρ = 0 left" in said


def test_the_key_itself_is_on_no_page(builder):
    _, visitor = builder
    for room in ROOMS:
        assert SECRET.hex() not in visitor.get(f"/custodian{room}").text


def test_nothing_on_the_pages_depends_on_the_records(tmp_path):
    """Twice the people, and every page is the same but for fingerprints, times and the chance in digests."""
    pages = []
    for people in (1, 2):
        folder = Path(tmp_path, str(people))
        folder.mkdir()
        counts = people * (np.arange(DOMAIN.size).reshape(DOMAIN.shape) + 20)
        built = service(folder, counts=counts, only=("census",))
        _, text = built.state.tokens.add("Carl", "custodian")
        visitor = Visitor(create_app(built))
        visitor.sign_in(text)
        pages.append([visitor.get(f"/custodian{room}").text for room in ROOMS])
        built.close()
    chance = re.compile(r"[0-9a-f]{12,64}|\d{4}-\d\d-\d\d[T ][0-9:+.]+|\d\d:\d\d:\d\d")
    assert [chance.sub("…", page) for page in pages[0]] == [chance.sub("…", page) for page in pages[1]]


def test_every_page_says_where_it_is_and_is_written_for_everyone(builder):
    _, visitor = builder
    for room in ROOMS:
        page = visitor.get(f"/custodian{room}").text
        assert page.count("<h1>") == 1
        (current,) = re.findall(r'<a href="([^"]*)" aria-current="page">', page)
        assert current == f"/custodian{room}"
        # A field without a label, a form without a form token.
        labelled = set(re.findall(r'<label for="([^"]*)"', page))
        assert set(re.findall(r'<(?:input|select)[^>]* id="([^"]*)"', page)) == labelled
        for form in re.findall(r'<form method="post".*?</form>', page, re.DOTALL):
            assert re.search(r'name="form_token" value="[0-9a-f]{64}"', form)
        headings = [int(level) for level in re.findall(r"<h([1-6])", page)]
        assert all(after <= before + 1 for before, after in pairwise(headings))
        assert len(re.findall(r'id="([^"]*)"', page)) == len(set(re.findall(r'id="([^"]*)"', page)))


def test_an_account_is_opened_and_shown_with_exact_amounts(office):
    opened = office.submit("/accounts", **ACCOUNT)
    assert (opened.status_code, opened.headers["location"]) == (303, "/custodian/accounts?opened=ada")
    account = office.ledger.account("ada")
    assert (account.budget, account.neighbours) == (ZCDP("1/3"), Neighbours())
    account.debit(ZCDP("1/7"), Neighbours(), purpose="sex by age", plan_digest="5f")
    page = office.visitor.get(opened.headers["location"])
    assert "The account “ada” is open." in words(page)
    assert 'href="/custodian/tokens?account=ada"' in page.text
    assert "ρ = 1/7 spent of ρ = 1/3 (43 %); ρ = 4/21 left" in _with_amounts(words(page))


@pytest.mark.parametrize(
    ("budget", "privacy"),
    [
        ({"rho": "", "epsilon": "0.5"}, PureDP(Fraction(1, 2))),
        ({"rho": "", "epsilon": "2", "delta": "1/1000000"}, ApproxDP(2, Fraction(1, 10**6))),
    ],
)
def test_every_kind_of_budget_can_be_given(office, budget, privacy):
    given = {**ACCOUNT, **budget, "relation": "replace", "records": "3"}
    assert office.submit("/accounts", **given).status_code == 303
    account = office.ledger.account("ada")
    assert (account.budget, account.neighbours) == (privacy, Neighbours("replace", 3))


def test_an_account_that_cannot_be_is_not_opened_and_the_form_says_why(office):
    office.ledger.create_account("bob", ZCDP(1), Neighbours())
    for wrong, status, field in (
        ({"name": ""}, 422, "name"),
        ({"name": "a\x00b"}, 422, "name"),
        ({"rho": "x"}, 422, "rho"),
        ({"rho": "1e999999999"}, 422, "rho"),
        ({"epsilon": "-1", "rho": ""}, 422, "epsilon"),
        ({"relation": "same"}, 422, "relation"),
        ({"records": "0"}, 422, "records"),
        ({"rho": ""}, 422, None),
        ({"rho": "0"}, 422, None),
        ({"epsilon": "1"}, 422, None),
        ({"name": "bob"}, 409, None),
    ):
        refused = office.submit("/accounts", **{**ACCOUNT, **wrong})
        assert refused.status_code == status, wrong
        assert "Nothing was changed." in words(refused)
        if field:
            assert f'<a href="#{field}">' in refused.text
            (invalid,) = re.findall(r'<\w+ [^>]*aria-invalid="true"', refused.text)
            assert f'id="{field}"' in invalid
    assert [account.name for account in office.ledger.accounts()] == ["bob"]


def test_what_was_filled_in_stays_in_the_form_and_is_escaped(office):
    refused = office.submit("/accounts", **{**ACCOUNT, "name": '"><script>', "rho": "x"})
    assert 'value="&#34;&gt;&lt;script&gt;"' in refused.text
    assert "<script" not in refused.text
    assert 'value="x"' in refused.text


def test_names_from_the_books_are_escaped_everywhere(office):
    name = "<b>&\"'%/?#"
    office.ledger.create_account(name, ZCDP(1), Neighbours()).debit(
        ZCDP("1/2"), Neighbours(), purpose="<i>why", plan_digest="<u>"
    )
    office.state.tokens.add("<em>Eve", "analyst", account=name)
    for room in ROOMS[1:4]:
        page = office.visitor.get(f"/custodian{room}").text
        assert not re.search("<b>&|<i>why|<u>|<em>", page)
    (link,) = re.findall(r'<h2><a href="([^"]*)"', office.visitor.get("/custodian/accounts").text)
    assert name in office.visitor.read(link.replace("&amp;", "&"))


def test_a_token_is_made_shown_once_and_good(office):
    office.ledger.create_account("ada", ZCDP(1), Neighbours())
    made = office.submit("/tokens", **TOKEN)
    assert (made.status_code, made.headers["cache-control"]) == (201, "no-store")
    (text,) = re.findall(r"tab_[0-9a-f]{12}_[0-9a-f]{64}", made.text)
    token = office.state.tokens.find(text)
    assert (token.name, token.role, token.account) == ("Ada Lovelace", "analyst", "ada")
    assert (token.expires - token.created).days == 30
    for path in ("/custodian/tokens", f"/custodian/tokens/{token.id}"):
        page = office.visitor.get(path)
        assert "Ada Lovelace" in page.text
        assert text.split("_")[2] not in page.text


def test_a_token_without_an_end_is_good_until_it_is_revoked(office):
    made = office.submit("/tokens", name="Carla", role="custodian", account="", days="")
    assert "it is revoked" in words(made)
    assert office.state.tokens.list()[-1].expires is None


def test_a_token_that_cannot_be_is_not_made_and_the_form_says_why(builder):
    built, visitor = builder
    before = len(built.state.tokens.list())
    for wrong, said in (
        ({"name": ""}, "A name has"),
        ({"role": "owner"}, "for an analyst or for a custodian"),
        ({"days": "0"}, "1 to 3,650 days"),
        ({"days": "many"}, "1 to 3,650 days"),
        ({"account": ""}, "needs the account that pays"),
        ({"account": "nobody"}, "There is no account 'nobody'"),
        ({"account": "survey"}, "is that of a dataset"),
        ({"role": "custodian"}, "a custodian's has none"),
    ):
        refused = visitor.submit("/custodian/tokens", "/custodian/tokens", **{**TOKEN, **wrong})
        assert refused.status_code == 422, wrong
        assert said in words(refused)
    assert len(built.state.tokens.list()) == before


def test_the_accounts_of_datasets_are_not_offered_to_analysts(builder):
    _, visitor = builder
    page = visitor.get("/custodian/tokens?account=bob").text
    assert re.findall(r"<option( selected)?>(\w+)</option>", page) == [("", "ada"), (" selected", "bob")]


def test_a_token_is_revoked_after_a_question_and_ends_its_sessions(office):
    eve, text = office.state.tokens.add("Eve", "custodian")
    other = Visitor(office.app)
    other.sign_in(text)
    assert other.get("/custodian").status_code == 200
    page = f"/custodian/tokens/{eve.id}"
    assert "You are signed in with this token" not in office.visitor.read(page)
    gone = office.visitor.submit(page, page)
    assert (gone.status_code, gone.headers["location"]) == (303, f"/custodian/tokens?revoked={eve.id}")
    assert "The token of “Eve” is revoked." in office.visitor.read(gone.headers["location"])
    assert office.state.tokens.find(text) is None
    assert other.get("/custodian").status_code == 303
    assert "Revoke the token" not in office.visitor.read(page)


def test_whoever_revokes_their_own_token_is_told_before_and_is_out(office):
    page = f"/custodian/tokens/{office.carl.id}"
    assert "You are signed in with this token" in office.visitor.read(page)
    assert office.visitor.submit(page, page).headers["location"] == "/"
    assert office.visitor.get("/custodian").status_code == 303


def test_a_link_cannot_make_a_page_say_what_is_not_so(office):
    office.ledger.create_account("ada", ZCDP(1), Neighbours())
    assert "is open." not in office.visitor.read("/custodian/accounts?opened=nobody")
    assert "” is revoked." not in office.visitor.read(f"/custodian/tokens?revoked={office.carl.id}")
    assert "” is revoked." not in office.visitor.read("/custodian/tokens?revoked=%00")


def test_tokens_are_shown_a_page_at_a_time(office):
    for i in range(60):
        office.state.tokens.add(f"number {i}", "custodian")
    shown, path = [], "/custodian/tokens"
    while path:
        page = office.visitor.get(path).text
        shown += re.findall(r'<th scope="row"><a href="[^"]*">([^<]*)</a>', page)
        further = re.findall(r'href="([^"]*)">Later ones', page)
        path = further[0] if further else None
    assert shown == ["Carl", *(f"number {i}" for i in range(60))]


def _debited(office, number):
    account = office.ledger.create_account("census", ZCDP(1), Neighbours())
    for i in range(number):
        account.debit(ZCDP("1/100"), Neighbours(), purpose=f"question {i}", plan_digest=f"{i:02}")
    return account


def test_the_ledger_is_a_timeline_with_running_totals_a_page_at_a_time(office):
    account = _debited(office, 60)
    found, path, newer = [], "/custodian/ledger?account=census", []
    while path:
        page = office.visitor.get(path)
        found += re.findall(r"<h3>question (\d+)</h3>", page.text)
        newer += re.findall(r'href="([^"]*)">Newer', page.text)
        said = _with_amounts(words(page))
        for number in (int(each) + 1 for each in re.findall(r"<h3>question (\d+)</h3>", page.text)):
            spent = Amount(rho=Fraction(number, 100))
            assert f"ρ = 0.01 · spent so far {spent} · left {Amount(rho=1 - spent.rho)}" in said
        assert str(account.head()) in said
        further = re.findall(r'href="([^"]*)">Older', page.text)
        path = further[0].replace("&amp;", "&") if further else None
    assert found == [str(i) for i in reversed(range(60))]
    # The way back from the last page but one is the beginning itself.
    assert newer == ["/custodian/ledger?account=census", "/custodian/ledger?account=census&amp;before=36"]


def test_without_an_account_named_the_ledger_shows_the_first(office):
    assert "There is no account" in office.visitor.read("/custodian/ledger")
    _debited(office, 0)
    assert "Nothing was paid from this account yet" in office.visitor.read("/custodian/ledger")


def test_costs_of_another_kind_count_in_the_unit_of_the_account(office):
    account = office.ledger.create_account("ada", ZCDP(1), Neighbours())
    account.debit(PureDP("1/2"), Neighbours(), purpose="pure", plan_digest="00")
    said = _with_amounts(office.visitor.read("/custodian/ledger?account=ada"))
    assert "ε = 0.5 · spent so far ρ = 0.125 · left ρ = 0.875" in said


def test_an_approximate_account_shows_both_of_its_parameters(office):
    account = office.ledger.create_account("ada", ApproxDP(2, "1/1000"), Neighbours())
    account.debit(ApproxDP("1/2", "1/2000"), Neighbours(), purpose="both", plan_digest="00")
    said = _with_amounts(office.visitor.read("/custodian/accounts"))
    assert "ε = 0.5 spent of ε = 2 (25 %); ε = 1.5 left" in said
    assert "δ = 0.0005 spent of δ = 0.001 (50 %); δ = 0.0005 left" in said


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("ledger?account=nobody", 404),
        ("ledger?account=census&before=0", 422),
        ("ledger?account=census&before=x", 422),
        ("ledger?account=census&before=99999999999999999999", 422),
        ("ledger?wish=more", 422),
        ("accounts?wish=more", 422),
        ("tokens?after=x", 422),
        ("tokens/nonsense", 404),
        ("tokens/%00", 404),
        (f"tokens/{'0' * 12}", 404),
        ("usage?days=8", 422),
        ("usage?wish=more", 422),
        ("nowhere", 404),
    ],
)
def test_a_page_that_cannot_be_is_refused_in_words(refusing_office, path, status):
    office = refusing_office
    refused = office.visitor.get(f"/custodian/{path}")
    assert refused.status_code == status
    assert refused.headers["content-type"].startswith("text/html")
    if path.startswith("tokens/"):
        token = form_token(office.visitor.get("/custodian"), "/sign-out")
        assert office.visitor.post(f"/custodian/{path}", {"form_token": token}).status_code == 404


def test_the_usage_is_shown_by_day_and_dataset(builder):
    built, visitor = builder
    built.state.usage.add([Requests("1999-01-01", "census", "tables", 2, "public", 987654)])
    built.state.counter.count("census", "tables", 200, "public")
    built.state.counter.count("census", "tests", 422, "public")
    built.state.counter.count("survey", "tables", 503, "public")
    built.state.counter.flush()
    page = visitor.get("/custodian/usage")
    rows = [
        re.sub(r"<[^>]+>", " ", row).split()
        for row in re.findall(r"<tr><th scope=\"row\">.*?</tr>", page.text, re.DOTALL)
    ]
    found = {" ".join(row[1:-3]): [int(n) for n in row[-3:]] for row in rows}
    assert found["Census 2026"] == [2, 1, 0]
    assert found["Survey"] == [1, 0, 1]
    assert "987,654" not in page.text
    assert "in 7 days" in visitor.read("/custodian/usage?days=7")


def test_a_service_that_nobody_asked_says_so(office):
    assert "Nobody has asked in these 30 days" in office.visitor.read("/custodian/usage")


def test_a_service_without_a_ledger_has_no_accounts(tmp_path):
    office = Office(tmp_path, keeps_ledger=False)
    assert "keeps no ledger" in office.visitor.read("/custodian/accounts")
    assert "no account" in office.visitor.read("/custodian/ledger")
    assert "no ledger is kept" in office.visitor.read("/custodian")
    token = form_token(office.visitor.get("/custodian"), "/sign-out")
    refused = office.visitor.post("/custodian/accounts", {**ACCOUNT, "form_token": token})
    assert refused.status_code == 404
    office.close()


def test_a_ledger_that_is_gone_is_told_without_its_address(office, tmp_path):
    (tmp_path / "ledger.sqlite").rename(tmp_path / "elsewhere")
    token = form_token(office.visitor.get("/custodian/usage"), "/sign-out")
    for answer in (
        office.visitor.get("/custodian/accounts"),
        office.visitor.post("/custodian/accounts", {**ACCOUNT, "form_token": token}),
        office.visitor.post("/custodian/tokens", {**TOKEN, "form_token": token}),
    ):
        assert answer.status_code == 503
        assert str(tmp_path) not in answer.text


@given(
    st.fractions(min_value=Fraction(1, 10**6), max_value=10**6),
    st.fractions(min_value=0, max_value=1),
)
def test_what_was_spent_and_what_is_left_are_the_whole_budget(budget, share):
    (part,) = parts(Balance(Amount(rho=budget), Amount(rho=budget * share)))
    read = [Fraction(text.removeprefix("ρ = ")) for text in (part.budget, part.spent, part.left)]
    assert read[0] == budget
    assert read[1] + read[2] == budget
    assert 0 <= part.share <= 1


@given(st.fractions(min_value=0, max_value=1))
def test_a_share_is_never_said_to_be_nothing_or_all_unless_it_is(share):
    said = percent(float(share))
    assert (said == "0 %") == (float(share) == 0)
    assert (said == "100 %") == (float(share) == 1)
    assert BudgetShare("", "", "", float(share)).percent == said


def test_the_picture_of_a_spending_rises_to_what_was_spent_and_stays_within_its_frame(office):
    account = _debited(office, 30)
    path = Timeline.of(account, before=None, size=5).path
    heights = [float(y) for y in re.findall(r"V([0-9.]+)", path)]
    places = [float(x) for x in re.findall(r"H([0-9.]+)", path)]
    assert heights == sorted(heights, reverse=True)
    assert heights[-1] == pytest.approx(HEIGHT * 0.7)
    assert places == sorted(places)
    assert places[-1] == WIDTH


def test_a_long_ledger_is_drawn_with_few_steps_and_ends_where_it_should(office, monkeypatch):
    monkeypatch.setattr("tabulary.builder.pages.custodian_data.MOST_POINTS", 7)
    path = Timeline.of(_debited(office, 30), before=None, size=5).path
    heights = [float(y) for y in re.findall(r"V([0-9.]+)", path)]
    assert len(heights) <= 7
    assert heights[-1] == pytest.approx(HEIGHT * 0.7)


def test_the_log_shows_what_was_done_the_last_first_page_by_page(office):
    office.submit("/accounts", **ACCOUNT)
    office.submit("/tokens", **TOKEN)
    (_, ada) = office.state.tokens.list()
    office.visitor.submit(f"/custodian/tokens/{ada.id}", f"/custodian/tokens/{ada.id}")
    said = office.visitor.read("/custodian/log")
    acts = ("token revoked", "token made", "account opened", "signed in", "token made")
    assert re.findall("|".join(set(acts)), said) == list(acts)
    assert f"{ada.id}, Ada Lovelace, analyst" in said
    assert "192.0.2.1" in said
    assert "Older" not in said
    for number in range(30):
        office.state.log.add(Actor("<Eve>"), Action.account_found, f"a{number}")
    first = office.visitor.get("/custodian/log")
    assert "&lt;Eve&gt;" in first.text
    (older,) = re.findall(r'href="(/custodian/log\?before=\d+)"', first.text)
    second = office.visitor.read(older)
    assert "signed in" in second
    assert "To the newest" in second
    assert "There is no entry before that" in office.visitor.read("/custodian/log?before=1")
    assert office.visitor.get("/custodian/log?before=x").status_code == 422


def test_a_custodian_who_signs_out_and_a_failed_sign_in_are_in_the_log(office):
    other = Visitor(office.app, address="192.0.2.99")
    assert other.sign_in("tab_guess").status_code == 401
    _, text = office.state.tokens.add("Grace", "custodian")
    grace = Visitor(office.app, address="192.0.2.50")
    grace.sign_in(text)
    grace.submit("/custodian", "/sign-out")
    acts = [(entry.actor, entry.action, entry.address) for entry in office.state.log.newest(size=4)]
    assert acts == [
        ("Grace", "signed out", "192.0.2.50"),
        ("Grace", "signed in", "192.0.2.50"),
        ("command line", "token made", None),
        ("unknown", "sign-in failed", "192.0.2.99"),
    ]
