"""The templates of every page of HTML, and the one style sheet that they share."""

from collections.abc import Sequence
from functools import cache
from itertools import groupby
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jinja2 import Template


@cache
def page_template(name: str, package: str = "tabulary.release") -> "Template":
    """Return a template of a package, which may include those of `tabulary.release`, such as `page.css.j2`.

    What is filled in is escaped, and a name that is not filled in is an error.
    """
    from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

    packages = dict.fromkeys([package, "tabulary.release"])
    environment = Environment(
        loader=ChoiceLoader([PackageLoader(each) for each in packages]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    return environment.get_template(name)


def label_spans(rows: Sequence[tuple[str, ...]], index: int) -> tuple[tuple[str, int], ...]:
    """Return the labels that begin on a line, each with the number of shown lines that it heads.

    >>> label_spans([("F", "young"), ("F", "old"), ("M", "young")], 0)
    (('F', 2), ('young', 1))
    """
    spans: list[tuple[str, int]] = []
    for depth, label in enumerate(rows[index]):
        head = rows[index][: depth + 1]
        if index and rows[index - 1][: depth + 1] == head:
            continue
        same = next(groupby(row[: depth + 1] for row in rows[index:]))[1]
        spans.append((label, sum(1 for _ in same)))
    return tuple(spans)
