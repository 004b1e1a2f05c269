"""Someone with a browser that keeps cookies and runs no scripts."""

import asyncio
import re
from html import unescape
from typing import Any
from urllib.parse import urlencode

import httpx
from starlette.types import ASGIApp

FORM = "application/x-www-form-urlencoded"


class Visitor:
    """Someone who reads the pages of an application in this process and fills in their forms."""

    def __init__(self, app: ASGIApp, *, base: str = "http://localhost", address: str = "192.0.2.1") -> None:
        self.app = app
        self.base = base
        self.address = address
        self.cookies = httpx.Cookies()

    def ask(self, method: str, path: str, **given: Any) -> httpx.Response:
        """Return the answer to one request; a redirection is not followed."""

        async def asking() -> httpx.Response:
            transport = httpx.ASGITransport(self.app, client=(self.address, 5000))
            async with httpx.AsyncClient(
                transport=transport, base_url=self.base, cookies=self.cookies
            ) as client:
                answer = await client.request(method, path, **given)
                self.cookies = client.cookies
                return answer

        headers = {"Accept": "text/html", **given.pop("headers", {})}
        given["headers"] = {name: value for name, value in headers.items() if value is not None}
        return asyncio.run(asking())

    def get(self, path: str, **headers: str) -> httpx.Response:
        """Return a page."""
        return self.ask("GET", path, headers=headers)

    def read(self, path: str) -> str:
        """Return what a page says, without its markup; fail if it is not there."""
        page = self.get(path)
        assert page.status_code == 200, (path, page.status_code, page.text)
        return words(page)

    def post(self, path: str, fields: dict[str, str], **headers: str) -> httpx.Response:
        """Return the answer to a form as it stands, whatever it carries."""
        return self.ask("POST", path, content=urlencode(fields), headers={"Content-Type": FORM, **headers})

    def submit(self, page: str, action: str, **fields: str) -> httpx.Response:
        """Return the answer to a form of a page, with the form token that the page gives it."""
        return self.post(action, {"form_token": form_token(self.get(page), action), **fields})

    def sign_in(self, token: str, to: str = "") -> httpx.Response:
        """Sign in with a token."""
        return self.submit("/sign-in", "/sign-in", token=token, to=to)


def form_token(page: httpx.Response, action: str) -> str:
    """Return the form token of the form with that action."""
    found = re.search(
        rf'action="{re.escape(action)}"[^>]*>\s*<input type="hidden" name="form_token" value="([^"]*)"',
        page.text,
    )
    assert found is not None, page.text
    return found[1]


def words(page: httpx.Response) -> str:
    """Return what a page says, without its markup."""
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]+>", " ", page.text)))
