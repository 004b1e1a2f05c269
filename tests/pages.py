"""The pages of the documentation as the tests read them: their fenced blocks, and what each would need to run."""

import doctest
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SHELL = ("sh", "")
# Written by `docs/build.py`: the sessions in them are doctests of the code, the commands are those of the help.
GENERATED = ("docs/reference/python", "docs/reference/commands")
_FENCE = re.compile(r"^(?P<indent> *)```(?P<language>\w*)(?P<rest>.*)$")


@dataclass(frozen=True)
class Block:
    """A fenced block: `title` is the name of the file that it shows, if it shows one."""

    page: str
    line: int
    language: str
    title: str
    text: str

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"

    @property
    def is_session(self) -> bool:
        """Whether it is Python with its answers: a doctest, which pytest runs."""
        return bool(re.search(r"^\s*>>> ", self.text, re.MULTILINE))

    def commands(self) -> Iterator[tuple[list[str], str]]:
        """Yield the words of each command line, and the remark behind it."""
        for line in self.text.replace("\\\n", " ").splitlines():
            if line.strip() and not line.lstrip().startswith("#"):
                command, _, remark = re.sub(r"\s+#\s*", "\0", line, count=1).partition("\0")
                yield shlex.split(command), remark


def pages() -> list[str]:
    """Return README.md and every page below docs/ that somebody wrote."""
    found = ["README.md", *(str(each.relative_to(ROOT)) for each in sorted((ROOT / "docs").rglob("*.md")))]
    return [each for each in found if not each.startswith(GENERATED)]


def read(page: str) -> str:
    """Return the text of a page."""
    return (ROOT / page).read_text(encoding="utf-8")


def blocks_of(page: str) -> list[Block]:
    """Return the fenced blocks of a page, in order; an unclosed one fails."""
    found: list[Block] = []
    opened: tuple[int, re.Match[str]] | None = None
    lines: list[str] = []
    for number, line in enumerate(read(page).splitlines(), start=1):
        fence = _FENCE.match(line)
        if opened is None and fence:
            opened, lines = (number, fence), []
        elif opened is not None and fence and not fence["language"]:
            start, first = opened
            title = re.search(r'title="([^"]+)"', first["rest"])
            indent = len(first["indent"])
            text = "".join(f"{each[indent:]}\n" for each in lines)
            found.append(Block(page, start, first["language"], title[1] if title else "", text))
            opened = None
        elif opened is not None:
            lines.append(line)
    assert opened is None, f"{page}: a fence is not closed"
    return found


def blocks(page: str, language: str) -> list[str]:
    """Return the texts of the blocks of one language on a page; a shell's are those without a language too."""
    wanted = SHELL if language in SHELL else (language,)
    return [each.text for each in blocks_of(page) if each.language in wanted]


def lines_of(page: str, program: str) -> list[str]:
    """Return the lines by which the shells of a page call a program, as typed but for remarks."""
    typed = "".join(blocks(page, "sh")).replace("\\\n", " ").splitlines()
    return [re.sub(r"\s+#.*", "", line) for line in typed if line.startswith(f"{program} ")]


def run_curl(line: str, folder: Path, **variables: str) -> str:
    """Return what a line with curl prints, typed in a folder, in a shell with these variables."""
    if shutil.which("curl") is None:
        pytest.skip("curl is not installed")
    done = subprocess.run(
        line.replace("curl", "curl --silent --fail", 1),
        shell=True,
        cwd=folder,
        # To this machine without a proxy, whatever the environment says.
        env={**os.environ, "no_proxy": "127.0.0.1", **variables},
        check=True,
        capture_output=True,
        text=True,
    )
    return done.stdout


def prose_of(page: str) -> str:
    """Return a page without its fenced blocks."""
    return re.sub(r"^ *```.*?^ *```$", "", read(page), flags=re.MULTILINE | re.DOTALL)


def copy_saved_folder(page: str, into: Path) -> None:
    """Copy the release that the sessions of a page save as `folder`, if they do, made by running them that far."""
    names: dict[str, object] = {}
    parser = doctest.DocTestParser()
    sources = [each.source for each in parser.get_examples(read(page))]
    until = next((i for i, each in enumerate(sources) if ".save(folder)" in each), None)
    if until is None:
        return
    for source in sources[: until + 1]:
        exec(compile(source, page, "single"), names)
    folder = names["folder"]
    assert isinstance(folder, Path)
    shutil.copytree(folder, into / folder.name)
    for each in names.values():
        if isinstance(each, tempfile.TemporaryDirectory):
            each.cleanup()
