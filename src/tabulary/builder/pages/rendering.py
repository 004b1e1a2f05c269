"""Write pages: one style, one policy for browsers, and the few files that every page loads."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from tabulary.builder.problems import HTTPProblem
from tabulary.release import PublicKey
from tabulary.release.pages import page_template
from tabulary.release.svg import STYLE

PACKAGE = "tabulary.builder.pages"

PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
"""A page may load its own style and its own script, and nothing from other sites."""

MEDIA_TYPE = "text/html; charset=utf-8"

_KEPT_FOR_GOOD = "public, max-age=31536000, immutable"
_KINDS = {
    "builder.css": "text/css; charset=utf-8",
    "builder.js": "text/javascript; charset=utf-8",
    "icon.svg": "image/svg+xml",
}


@dataclass(frozen=True)
class Asset:
    """A file that pages load. Its address holds a digest of its bytes, so that a browser may keep it for ever."""

    content: bytes
    media_type: str
    url: str


@cache
def assets() -> Mapping[str, Asset]:
    """Return every file that pages load, by name."""
    folder = files(PACKAGE) / "static"
    # First the common style of all pages and pictures of the project, then the style of these pages.
    common = {"builder.css": f"{page_template('page.css.j2').render()}{STYLE}\n".encode()}
    found = {}
    for name, media_type in _KINDS.items():
        content = common.get(name, b"") + (folder / name).read_bytes()
        digest = hashlib.sha256(content).hexdigest()[:16]
        found[name] = Asset(content, media_type, f"/static/{digest}/{name}")
    return found


@dataclass(frozen=True)
class Site:
    """The common frame of all pages of a service."""

    title: str
    signer: PublicKey | None = None
    has_custodian: bool = True

    @property
    def css(self) -> str:
        """The address of the style sheet."""
        return assets()["builder.css"].url

    @property
    def js(self) -> str:
        """The address of the script."""
        return assets()["builder.js"].url

    @property
    def icon(self) -> str:
        """The address of the icon."""
        return assets()["icon.svg"].url

    def html(self, template: str, **given: Any) -> bytes:
        """Return a page from a template that extends `base.html.j2`. All values are escaped."""
        return page_template(template, PACKAGE).render(site=self, **given).encode()

    def response(
        self, template: str, status: int = 200, headers: Mapping[str, str] | None = None, **given: Any
    ) -> Response:
        """Return a page as an answer that nobody stores."""
        return html_response(self.html(template, **given), status, headers)


def html_response(content: bytes, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Return a written page as an answer, with the policy of pages."""
    return Response(content, status, {"Content-Security-Policy": PAGE_POLICY, **(headers or {})}, MEDIA_TYPE)


async def static(request: Request) -> Response:
    """Give a file that pages load."""
    for asset in assets().values():
        if request.url.path == asset.url:
            return Response(
                asset.content, headers={"Cache-Control": _KEPT_FOR_GOOD}, media_type=asset.media_type
            )
    raise HTTPProblem(
        404, "not-found", "There is no such file. A page that is loaded again names those that are."
    )
