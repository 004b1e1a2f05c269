"""What the TOML files of a custodian share: tables with known keys, a domain, a promise."""

import tomllib
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from tabulary.confidential.coding import Coding
from tabulary.core.domain import Domain, bin_labels
from tabulary.core.neighbours import Neighbours
from tabulary.core.privacy import ZCDP, ApproxDP, Privacy, PureDP
from tabulary.errors import InvalidArgument, InvalidSettings, TabularyError, listed

T = TypeVar("T")


class Section:
    """One table of a file; its reader takes keys until none is left.

    An unknown key is an error. Otherwise a misspelt key would silently mean its default.

    >>> section = Section("[server]", {"port": 8000, "prot": 1})
    >>> section.take("port", int)
    8000
    >>> section.done()
    Traceback (most recent call last):
    ...
    tabulary.errors.InvalidSettings: [server] holds the unknown key 'prot'. It may hold 'port'.
    """

    def __init__(self, name: str, content: Mapping[str, Any]) -> None:
        self.name = name
        self._left = dict(content)
        self._known: list[str] = []

    def section(self, key: str, *, required: bool = True) -> "Section":
        """Return the table with that name below this one."""
        content = self.take(key, dict, default=None if required else {}, required=required)
        # A file has a name; a table in it is written in brackets, with the names of the tables around it.
        return Section(f"{self.name[:-1]}.{key}]" if self.name.startswith("[") else f"[{key}]", content)

    def take(self, key: str, kind: Any, *, default: Any = ..., required: bool = False) -> Any:
        """Return the value of a key, which must have one of the kinds; a key without a default is required."""
        self._known.append(key)
        if key not in self._left:
            if default is ... or required:
                raise InvalidSettings(f"{self.name} lacks the key {key!r}.")
            return default
        value = self._left.pop(key)
        # Python counts True as 1; a person who writes a file does not.
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise InvalidSettings(f"{self.name} {key} has the wrong type: it must be {_kind(kind)}.")
        return value

    def names(self) -> list[str]:
        """Return the keys that nobody has taken yet."""
        return list(self._left)

    def done(self) -> None:
        """Refuse a key that nobody has taken."""
        if self._left:
            raise InvalidSettings(
                f"{self.name} holds the unknown key {listed(self._left)}. It may hold {listed(self._known)}."
            )


def read_toml(path: Path, what: str) -> Section:
    """Return the content of a TOML file; `what` names the file in an error."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise InvalidSettings(f"there is no {what} {str(path)!r}.") from None
    except (OSError, UnicodeDecodeError):
        raise InvalidSettings(f"the {what} {str(path)!r} cannot be read as UTF-8 text.") from None
    try:
        return Section(path.name, tomllib.loads(text))
    except tomllib.TOMLDecodeError as problem:
        raise InvalidSettings(f"{path.name} is not valid TOML: {problem}.") from None


def read_domain(
    attributes: Section, zeros: list[Any], take_also: Callable[[str, Section], None] | None = None
) -> tuple[Domain, dict[str, Coding]]:
    """Return the domain that a table of attributes declares, and how each is read from its column.

    `take_also` is called with the name and the table of each attribute: it takes the keys that one kind of file
    adds.
    """
    levels: dict[str, Iterable[str | int]] = {}
    codings: dict[str, Coding] = {}
    for name in attributes.names():
        entry = attributes.section(name)
        if take_also is not None:
            take_also(name, entry)
        levels[name], codings[name] = located(entry.name, partial(_attribute, entry))
    if not levels:
        raise InvalidSettings(
            f"{attributes.name} names no attribute. Add a table such as {attributes.name[:-1]}.sex] with its levels."
        )
    domain = located(attributes.name, lambda: Domain(levels, zeros))
    for name, coding in codings.items():
        located(f"{attributes.name[:-1]}.{name}]", partial(coding.resolve, domain, name))
    return domain, codings


def _attribute(entry: Section) -> tuple[Iterable[str | int], Coding]:
    bins = entry.take("bins", list, default=None)
    levels = entry.take("levels", list, default=None)
    if (bins is None) == (levels is None):
        raise InvalidSettings("an attribute needs either `levels` or `bins`.")
    coding = Coding(
        column=entry.take("from", str, default=None),
        mapping=entry.take("map", dict, default=None),
        bins=bins,
        unknown=entry.take("unknown", str, default="error"),
    )
    entry.done()
    return (levels if bins is None else bin_labels(bins)), coding


def read_privacy(section: Section) -> tuple[Privacy, Neighbours]:
    """Return what is promised and to whom: an amount and the neighbouring relation."""
    relation = section.take("neighbours", str, default="add-remove")
    records = section.take("contribution", int, default=1)
    sensitive = section.take("sensitive", list, default=[])
    privacy = read_amount(section)
    return privacy, located(section.name, lambda: Neighbours(relation, records, tuple(map(str, sensitive))))


def read_amount(section: Section) -> Privacy:
    """Return an amount of privacy: ε, ε with δ, or ρ. The section must contain nothing else."""
    number = (int, float, str)
    epsilon = section.take("epsilon", number, default=None)
    delta = section.take("delta", number, default=None)
    rho = section.take("rho", number, default=None)
    section.done()
    match (epsilon is None, delta is None, rho is None):
        case (False, True, True):
            return located(section.name, lambda: PureDP(epsilon))
        case (False, False, True):
            return located(section.name, lambda: ApproxDP(epsilon, delta))
        case (True, True, False):
            return located(section.name, lambda: ZCDP(rho))
    raise InvalidSettings(f"{section.name} needs `epsilon` alone, `epsilon` with `delta`, or `rho` alone.")


def located(place: str, build: Callable[[], T]) -> T:
    """Return what `build` makes; if it raises an error, add the place to the message."""
    try:
        return build()
    except TabularyError as problem:
        # The errors of a section already name it.
        said = str(problem)
        kind = InvalidSettings if isinstance(problem, InvalidArgument) else type(problem)
        raise kind(said if said.startswith(place) else f"{place}: {said}") from None


def _kind(kind: Any) -> str:
    words = {
        str: "text",
        int: "a whole number",
        float: "a number",
        list: "a list",
        dict: "a table",
        bool: "true or false",
    }
    kinds = kind if isinstance(kind, tuple) else (kind,)
    return " or ".join(dict.fromkeys(words[each] for each in kinds))
