"""Signing in: the cookie, the form token, and who is turned away."""

from datetime import UTC, datetime, timedelta
from http.cookies import SimpleCookie

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tabulary.builder.app import create_app
from tabulary.builder.pages import sessions
from tabulary.builder.service import Service, ServiceLimits
from tabulary.builder.state import State
from tabulary.builder.state.sessions import IDLE
from tests.builders import GENEROUS, Caller
from tests.visitors import Visitor, form_token, words

FORGED = {"form_token": "0" * 64}


class House:
    """A service without data, and those who come to it."""

    def __init__(self, folder, limits=GENEROUS):
        self.now = datetime(2026, 5, 4, 12, tzinfo=UTC)
        self.state = State.create(folder / "state.sqlite", clock=lambda: self.now)
        self.app = create_app(Service({}, self.state, limits=limits))
        self.carl, self.carls = self.state.tokens.add("Carl", "custodian")
        self.ada, self.adas = self.state.tokens.add("Ada", "analyst", account="ada")

    def visitor(self, **given):
        return Visitor(self.app, **given)

    def custodian(self, **given):
        visitor = self.visitor(**given)
        assert visitor.sign_in(self.carls).status_code == 303
        return visitor


@pytest.fixture
def house(tmp_path):
    opened = House(tmp_path)
    yield opened
    opened.state.close()


def _is_in(visitor):
    return visitor.get("/custodian").status_code == 200


def _set_cookies(answer):
    found = SimpleCookie()
    for header in answer.headers.get_list("set-cookie"):
        found.load(header)
    return found


def test_a_token_signs_a_custodian_in_once_and_the_session_opens_the_pages(house):
    visitor = house.visitor()
    turned_away = visitor.get("/custodian/tokens?after=0123456789ab")
    assert turned_away.status_code == 303
    wanted = "/custodian/tokens?after=0123456789ab"
    assert turned_away.headers["location"] == sessions.sign_in_url(wanted)
    page = visitor.get(turned_away.headers["location"])
    assert page.status_code == 200
    signed = visitor.post(
        "/sign-in", {"form_token": form_token(page, "/sign-in"), "to": wanted, "token": f" {house.carls}\n"}
    )
    assert (signed.status_code, signed.headers["location"]) == (303, wanted)
    assert _is_in(visitor)
    # The session is this browser's alone.
    assert not _is_in(house.visitor())


def test_without_a_token_that_is_good_nobody_is_signed_in_and_all_are_told_the_same(house):
    gone, revoked = house.state.tokens.add("Bob", "custodian")
    house.state.tokens.revoke(gone.id)
    told = set()
    for i, bad in enumerate(("", "nonsense", revoked, house.carls[:-1] + "x", "\ud800")):
        visitor = house.visitor(address=f"192.0.2.{i}")
        page = visitor.get("/sign-in")
        refused = visitor.post(
            "/sign-in",
            {"form_token": form_token(page, "/sign-in"), "token": bad.encode(errors="replace").decode()},
        )
        assert refused.status_code == 401
        assert refused.headers["content-type"].startswith("text/html")
        assert refused.headers["www-authenticate"].startswith("Bearer")
        assert bad == "" or bad not in refused.text
        told.add(words(refused))
        assert not _is_in(visitor)
    assert len(told) == 1


def test_guesses_are_slowed_as_those_of_the_api_are_and_with_them(house):
    visitor = house.visitor(address="192.0.2.1")
    assert visitor.sign_in("nonsense").status_code == 401
    waiting = visitor.sign_in(house.carls)
    assert (waiting.status_code, waiting.headers["retry-after"]) == (429, "1")
    assert not _is_in(visitor)
    # The API waits for the guesses of the form, and nobody at another address does.
    shown = {"Authorization": f"Bearer {house.carls}"}
    assert visitor.ask("GET", "/api/custodian/key", headers=shown).status_code == 429
    assert _is_in(house.custodian(address="192.0.2.2"))


def test_one_token_cannot_sign_in_from_everywhere_at_once(tmp_path):
    house = House(tmp_path, ServiceLimits(requests_a_minute=1, burst=3))
    statuses = []
    for i in range(4):
        visitor = house.visitor(address=f"192.0.2.{i}")
        statuses.append(visitor.sign_in(house.carls).status_code)
    assert statuses == [303, 303, 303, 429]
    house.state.close()


@pytest.mark.parametrize(("base", "secure"), [("http://localhost", False), ("https://localhost", True)])
def test_the_cookie_is_for_this_service_alone_and_for_no_script(house, base, secure):
    visitor = house.visitor(base=base)
    signed = visitor.sign_in(house.carls)
    (name,) = (name for name, cookie in _set_cookies(signed).items() if cookie.value)
    cookie = _set_cookies(signed)[name]
    assert cookie["httponly"] is True
    assert cookie["samesite"].lower() == "strict"
    assert bool(cookie["secure"]) is secure
    # As the prefix asks: for this host, all of it, by HTTPS.
    assert name.startswith("__Host-") is secure
    assert (cookie["domain"], cookie["path"]) == ("", "/")
    # It goes when the browser does.
    assert (cookie["expires"], cookie["max-age"]) == ("", "")
    assert len(bytes.fromhex(cookie.value)) == 32
    assert house.state.sessions.find(cookie.value) == house.carl
    assert _is_in(visitor)


def test_the_token_itself_is_in_no_cookie_and_on_no_page(house):
    visitor = house.custodian()
    held = "".join(cookie.value or "" for cookie in visitor.cookies.jar)
    assert house.carls.split("_")[2] not in held + visitor.get("/custodian/tokens").text


def test_a_session_is_made_anew_by_signing_in_and_the_old_one_ends(house):
    """Whoever put a session of their own into somebody's browser is not in afterwards."""
    planted = house.state.sessions.begin(house.ada)
    visitor = house.visitor()
    visitor.cookies.set("tabulary-session", planted, domain="localhost.local")
    visitor.get("/sign-in")
    assert visitor.sign_in(house.carls).status_code == 303
    names = {cookie.value for cookie in visitor.cookies.jar if cookie.name == "tabulary-session"}
    assert planted not in names
    assert house.state.sessions.find(planted) is None


def test_signing_out_ends_the_session_for_good(house):
    visitor = house.custodian()
    kept = dict(visitor.cookies)
    out = visitor.submit("/custodian", "/sign-out")
    assert (out.status_code, out.headers["location"]) == (303, "/")
    assert "tabulary-session" not in visitor.cookies
    assert not _is_in(visitor)
    # A copy of the cookie opens nothing either.
    copied = house.visitor()
    copied.cookies.update(kept)
    assert not _is_in(copied)
    assert visitor.post("/sign-out", {}).status_code == 303


def test_a_session_ends_when_it_is_not_used_and_when_its_token_is_revoked(house):
    idle, revoked = house.custodian(), house.custodian()
    house.now += IDLE - timedelta(minutes=1)
    assert _is_in(revoked)
    house.now += timedelta(minutes=1)
    assert not _is_in(idle)
    assert _is_in(revoked)
    house.state.tokens.revoke(house.carl.id)
    assert not _is_in(revoked)


def test_an_analyst_is_in_and_the_custodians_pages_stay_closed(house):
    visitor = house.visitor()
    signed = visitor.sign_in(house.adas, to="/custodian")
    assert (signed.status_code, signed.headers["location"]) == (303, "/")
    for path in ("", "/accounts", "/ledger", "/tokens", f"/tokens/{house.carl.id}", "/usage"):
        closed = visitor.get(f"/custodian{path}")
        assert closed.status_code == 403, path
        assert "need a custodian's token" in words(closed)
        assert "Ada" in words(closed)
    # With the form token of their own session, too.
    token = form_token(closed, "/sign-out")
    for path in ("/accounts", "/tokens", f"/tokens/{house.carl.id}"):
        assert visitor.post(f"/custodian{path}", {"form_token": token}).status_code == 403
    assert house.state.tokens.get(house.carl.id).revoked is None
    assert visitor.post("/sign-out", {"form_token": token}).status_code == 303


def test_an_analyst_goes_to_the_table_that_they_wanted(house):
    wanted = "/datasets/survey/table?rows=age"
    assert house.visitor().sign_in(house.adas, to=wanted).headers["location"] == wanted


def test_a_session_opens_pages_and_never_the_api(house):
    visitor = house.custodian()
    assert visitor.get("/api/custodian/tokens").status_code == 401
    shown = {"Authorization": f"Bearer {house.carls}"}
    # And a token opens the API, not the pages.
    assert house.visitor().ask("GET", "/custodian", headers=shown).status_code == 303


FORMS = ["/custodian/accounts", "/custodian/tokens", "/sign-out"]


@pytest.mark.parametrize("action", FORMS)
def test_a_form_without_the_token_of_its_session_does_nothing(house, action):
    visitor, other = house.custodian(), house.custodian()
    fields = {"name": "Eve", "role": "custodian", "rho": "1", "relation": "add-remove", "records": "1"}
    others = form_token(other.get("/custodian"), "/sign-out")
    visitors = form_token(visitor.get("/sign-in"), "/sign-in")
    for forged in ("", "0" * 64, others, visitors, "é"):
        refused = visitor.post(action, {**fields, "form_token": forged})
        assert refused.status_code == 403
        assert "not of your session" in words(refused)
    assert visitor.post(action, fields).status_code == 403
    assert _is_in(visitor)
    assert len(house.state.tokens.list()) == 2


def test_signing_in_needs_a_form_of_this_browser_too(house):
    """Or another site could sign somebody in as somebody else."""
    elsewhere = form_token(house.visitor().get("/sign-in"), "/sign-in")
    for visitor, token in ((house.visitor(), elsewhere), (house.visitor(), "")):
        for _ in range(2):
            refused = visitor.post("/sign-in", {"form_token": token, "token": house.carls})
            assert refused.status_code == 403
            assert not _is_in(visitor)
    # Refused with a new form, which works, and no guess is counted.
    signed = visitor.post("/sign-in", {"form_token": form_token(refused, "/sign-in"), "token": house.carls})
    assert signed.status_code == 303


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Sec-Fetch-Site": "same-origin"}, 303),
        ({"Sec-Fetch-Site": "none"}, 303),
        ({"Sec-Fetch-Site": "same-origin", "Origin": "https://behind-a-proxy.example"}, 303),
        ({"Origin": "http://localhost"}, 303),
        ({}, 303),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Sec-Fetch-Site": "same-site"}, 403),
        ({"Sec-Fetch-Site": "cross-site", "Origin": "http://localhost"}, 403),
        ({"Origin": "http://elsewhere.example"}, 403),
        ({"Origin": "http://localhost.elsewhere.example"}, 403),
        ({"Origin": "http://localhost:8000"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://["}, 403),
    ],
)
def test_a_form_that_a_browser_says_is_from_elsewhere_does_nothing(house, headers, status):
    visitor = house.custodian()
    token = form_token(visitor.get("/custodian"), "/sign-out")
    assert visitor.post("/sign-out", {"form_token": token}, **headers).status_code == status
    assert _is_in(visitor) is (status == 403)


def test_a_page_with_a_form_lets_a_browser_say_where_the_form_comes_from(house):
    """Under `no-referrer` it would call the origin of its own pages null."""
    visitor = house.custodian()
    for path in ("/sign-in", "/custodian", "/custodian/tokens"):
        assert visitor.get(path).headers["referrer-policy"] == "same-origin"


@pytest.mark.parametrize(
    "media_type", ["application/json", "multipart/form-data; boundary=x", "text/plain", ""]
)
def test_what_is_no_form_is_not_read(house, media_type):
    visitor = house.custodian()
    answer = visitor.ask(
        "POST", "/custodian/tokens", content=b"{}", headers={"Content-Type": media_type or None}
    )
    assert answer.status_code == 415


@pytest.mark.parametrize("content", [b"\xff\xfe", b"&".join(b"a=1" for _ in range(100)), b"form_token=%ff"])
def test_a_form_that_cannot_be_read_does_nothing(house, content):
    visitor = house.custodian()
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    answer = visitor.ask("POST", "/sign-out", content=content, headers=headers)
    assert answer.status_code in (400, 403)
    assert _is_in(visitor)


@given(
    st.one_of(
        st.text(),
        st.sampled_from(["//evil.example", "https://evil.example", "/\\evil.example", "javascript:alert(1)"]),
        st.text().map("/custodian".__add__),
        st.text().map("/datasets/".__add__),
    )
)
def test_nobody_is_sent_elsewhere_after_signing_in(wanted):
    place = sessions.place_after(wanted, None)
    assert place == "/custodian" or place.startswith(("/custodian", "/datasets/"))
    # A browser reads nothing else into it, and a header holds it.
    assert place.isascii()
    assert place.isprintable()


def test_the_names_of_sessions_and_forms_do_not_give_each_other_away(house):
    visitor = house.custodian()
    name = visitor.cookies["tabulary-session"]
    token = form_token(visitor.get("/custodian"), "/sign-out")
    assert token == sessions.form_token(name)
    assert name not in visitor.get("/custodian").text
    assert house.state.sessions.find(token) is None


def test_the_pages_of_a_session_are_kept_by_nobody_and_load_no_script(house):
    visitor = house.custodian()
    for path in ("/sign-in", "/custodian", "/custodian/accounts", "/custodian/tokens", "/custodian/usage"):
        page = visitor.get(path)
        assert page.headers["cache-control"] == "no-store", path
        policy = page.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "form-action 'self'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert "<script" not in page.text
        assert "style=" not in page.text
        assert " on" + "click" not in page.text


def test_what_is_asked_with_a_session_is_counted_for_its_token(house):
    visitor = house.custodian()
    visitor.get("/custodian/usage")
    house.state.counter.flush()
    assert {(row.kind, row.status, row.caller) for row in house.state.usage.read()} == {
        ("custodian", 2, house.carl.id)
    }


def test_while_the_state_is_gone_nobody_is_in_and_nothing_is_told(house, tmp_path):
    visitor = house.custodian()
    house.state.close()
    for file in tmp_path.iterdir():
        file.rename(tmp_path / f"gone-{file.name}")
    answer = visitor.get("/custodian")
    assert answer.status_code == 503
    assert str(tmp_path) not in answer.text
    # What needs nobody goes on.
    assert Caller(house.app).get("/").status_code == 200
