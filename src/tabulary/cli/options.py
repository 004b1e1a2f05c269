"""What was written on a command line, and options with the form name=value."""

from collections.abc import Iterable, Mapping, Sequence

import typer

from tabulary.core.domain import Domain
from tabulary.errors import InvalidArgument, listed


def given_options(context: typer.Context) -> set[str]:
    """Return the names of the parameters that were written on the command line."""
    sources = {name: context.get_parameter_source(name) for name in context.params}
    return {name for name, source in sources.items() if source is not None and source.name == "COMMANDLINE"}


def assigned(option: str, texts: Iterable[str], example: str) -> dict[str, str]:
    """Return options such as `age=4` by name.

    >>> assigned("--bins", ["age=4", "income=3"], "age=4")
    {'age': '4', 'income': '3'}
    """
    found: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not (name and equals and value):
            raise InvalidArgument(f"{option} {text}: write it as {option} {example}. Nothing was read.")
        if name in found:
            raise InvalidArgument(f"{option} is given twice for {name!r}. Nothing was read.")
        found[name] = value
    return found


def named_levels(
    option: str, texts: Iterable[str] | None, domain: Domain, state: str
) -> dict[str, list[str]]:
    """Return the levels that an option such as `score=Medium+High` names, by attribute."""
    found = {}
    for attribute, text in assigned(option, texts or (), "score=Medium+High").items():
        domain.position(attribute)
        levels = _split(text, domain.levels_of(attribute))
        if levels is None:
            raise InvalidArgument(
                f"{option} {attribute}={text}: the levels of {attribute} are {listed(domain.levels_of(attribute))}. "
                f"Write several as High+Low. {state}"
            )
        found[attribute] = levels
    return found


def _split(text: str, levels: Sequence[str]) -> list[str] | None:
    """Return levels that are joined by + in a text; a level may have a + of its own, such as 65+.

    >>> _split("15-64+65+", ["0-14", "15-64", "65+"]), _split("65", ["65+"])
    (['15-64', '65+'], None)
    """
    if text in levels:
        return [text]
    for level in levels:
        if text.startswith(f"{level}+"):
            rest = _split(text[len(level) + 1 :], levels)
            if rest is not None:
                return [level, *rest]
    return None


def whole_number(option: str, text: str) -> int:
    """Return a whole number above zero."""
    if not (text.isascii() and text.isdigit() and int(text)):
        raise InvalidArgument(f"{option}: {text!r} is not a whole number above 0. Nothing was read.")
    return int(text)


def check_together(
    given: set[str], mode: str, allowed: Iterable[str], names: Mapping[str, str], state: str
) -> None:
    """Refuse an option that means nothing together with the option that chooses the action."""
    known = set(allowed)
    alien = sorted(given - known - {mode})
    if alien:
        takes = ", ".join(sorted(option_name(name, names) for name in known)) or "no other option"
        raise InvalidArgument(
            f"{option_name(alien[0], names)} does not go with {option_name(mode, names)}, which takes {takes}. {state}"
        )


def option_name(name: str, names: Mapping[str, str]) -> str:
    """Return a parameter as it is written on the command line."""
    return names.get(name, f"--{name.replace('_', '-')}")
