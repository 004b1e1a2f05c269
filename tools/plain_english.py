"""Idioms that a reader with another first language stumbles over: `python -m tools.plain_english`. `make lint` does.

Each rule is a pattern and the plain words to write instead. STYLE: short main clauses, the usual word, the subject
named. A new rule is one line below, together with the corrections that let it pass.
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
# Where prose is: code with its messages and docstrings, templates of pages, and the pages of the documentation.
PLACES = (
    *("src/**/*.py", "src/**/*.j2", "papers/src/**/*.py", "papers/src/**/*.j2"),
    *("docs/**/*.md", "README.md", "SECURITY.md", "CONTRIBUTING.md", "papers/README.md"),
)
_EACH = "row|column|line|file|module|array|thread|byte|bytes|coin|letter|sentence|draw|word|query|value|box|person"

RULES = {
    rf"\b(?:one|a|an|two|four|eight) (?:{_EACH}) an? (?!time\b|hundred\b|thousand\b)\w+": "one row per count",
    r"\b(?:bytes|nanoseconds|records|losses) an? (?:record|cell|person|margin|key)\b": "bytes per cell",
    r"\b(?:that|which|what) cannot be(?=[.,;:)\"'`]|\s+(?:and|is|are)\b|$)": "impossible, invalid; structural zeros",
    r"\btold (?:nowhere|from)\b": "never reported; distinguished from",
    r"\breckon(?:s|ed|ing)? with\b": "assumes; accounts for",
    r"\bunless (?:it is |they are )?(?:told|said otherwise)\b": "by default",
    r"\bopen about\b": "the posterior spread of",
    r"\bearns? (?:its|their) bias\b|\bhas to earn\b": "choose it only if its expected error is clearly smaller",
    r"\b(?:is|are) led to\b|, led to their\b": "is adjusted to match",
    r"\bin need of\b": "needs",
    r"\bexactly when\b": "if and only if",
    r"\bbetray(?:s|ed)?\b": "reveals",
    r"\bheld against\b": "compared with",
    r"\b(?:for|at once and for) good\b": "for ever; never changes; immediately and permanently",
    r"\b(?:is|are) such[.,;]": "name what it is",
    r"\b(?:plan|file|option|request|workload) asks for\b": "requests; needs",
    r"\blets? go of\b": "releases; closes",
    r"\bse(?:e|en|es) to it that\b": "makes sure that",
    r"\bis of no avail\b|\bto no avail\b": "does not help",
    r"\bit is to be (?:had|found)\b": "there is",
}


class Finding(NamedTuple):
    """An idiom, where it is, and what to write instead."""

    file: str
    line: int
    found: str
    instead: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: “{self.found}”: write “{self.instead}”"


def findings(text: str, file: str = "") -> Iterator[Finding]:
    """Yield the idioms in a text.

    >>> [str(each) for each in findings("It has one row a count.", "page.md")]
    ['page.md:1: “one row a count”: write “one row per count”']
    """
    for number, line in enumerate(text.splitlines(), start=1):
        for pattern, instead in RULES.items():
            for match in re.finditer(pattern, line, re.IGNORECASE):
                yield Finding(file, number, match.group(), instead)


def prose() -> Iterator[Path]:
    """Yield the files whose prose is checked."""
    for place in PLACES:
        yield from sorted(ROOT.glob(place))


def main() -> int:
    """Print every idiom of the project; return 1 if there is one."""
    found = [
        each for file in prose() for each in findings(file.read_text("utf-8"), str(file.relative_to(ROOT)))
    ]
    for each in found:
        print(each)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
