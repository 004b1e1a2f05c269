"""The generated pages on Python names: one for each room, and a list of them all."""

import dataclasses
import functools
import inspect
import re
import textwrap
import types
from collections import Counter
from collections.abc import Iterable
from typing import Any

import tabulary as tb
from docs.command_pages import GENERATED
from tabulary.client import TableBuilder
from tabulary.ledger import Account

# What stands directly in `tabulary` is told by the room that it comes from.
ROOMS = {
    "core": ("vocabulary", "Domains, workloads, tables, privacy"),
    "confidential": ("records", "Records"),
    "planning": ("planning", "Plans"),
    "release": ("releases", "Releases"),
    "workflows": ("releases", "Releases"),
    "ledger": ("ledger", "The ledger"),
    "client": ("client", "Asking a table builder"),
}
# What has no public name, since others make it, and is used all the same: after which name it is told.
MADE = {"connect": TableBuilder, "Ledger": Account}
_WIDTH, _NARROW = 88, 34
_MEMBERS = (types.FunctionType, property, classmethod, staticmethod, functools.cached_property)


def python_pages() -> dict[str, str]:
    """Return every page on Python names, by its path below `docs/reference`."""
    titles: dict[str, str] = {}
    anchors: Counter[str] = Counter()
    parts: dict[str, list[str]] = {}
    rows: dict[str, list[str]] = {}
    for name in tb.__all__:
        thing = getattr(tb, name)
        if inspect.ismodule(thing):
            place, titles[name] = name, f"`tb.{name}`"
            parts[place] = [_prose(_first_paragraph(thing.__doc__)), *_module(name, thing)]
            rows[place] = [_row(f"{place}.md", f"tb.{name}", thing)]
        else:
            room = thing.__module__.split(".")[1]
            place, titles[place] = ROOMS[room][0], ROOMS[room][1]
            told = {f"tb.{name}": thing} | {kind.__name__: kind for kind in [MADE.get(name)] if kind}
            for shown, each in told.items():
                parts.setdefault(place, []).extend(_entry(shown, each))
                # `Plan` and `plan` stand below one another: the site numbers headings that share an anchor.
                before = anchors[_anchor(shown)]
                anchors[_anchor(shown)] += 1
                target = f"{place}.md#{_anchor(shown)}" + (f"_{before}" if before else "")
                rows.setdefault(place, []).append(_row(target, shown, each))
    pages = {
        f"python/{place}.md": _text([f"# {titles[place]}", GENERATED, "", *lines])
        for place, lines in parts.items()
    }
    direct = dict.fromkeys(place for place, _ in ROOMS.values())
    order = [*direct, *sorted(set(rows) - set(direct))]
    lines = [
        "# Python",
        GENERATED,
        "",
        "`import tabulary as tb` gives these names. They stay as they are.",
        "",
    ]
    lines += ["| name | what it is |", "| --- | --- |", *(row for place in order for row in rows[place]), ""]
    return {"python.md": _text(lines), **pages}


def _module(name: str, module: Any) -> list[str]:
    if name == "errors":
        return _errors(module)
    lines: list[str] = []
    for inner in module.__all__:
        thing, full = getattr(module, inner), f"{name}.{inner}"
        if inspect.ismodule(thing):
            lines += ["", f"## `tb.{full}`", "", _prose(inspect.getdoc(thing) or ""), ""]
            for key, function in inspect.getmembers(thing, inspect.isfunction):
                if function.__module__ == thing.__name__ and not key.startswith("_"):
                    lines += _entry(f"tb.{full}.{key}", function)
        else:
            lines += _entry(f"tb.{full}", thing)
    return lines


def _errors(module: Any) -> list[str]:
    """Every error, in the order of the source, with what it stands below."""
    lines = ["", "| error | is a | when |", "| --- | --- | --- |"]
    for name, kind in vars(module).items():
        if inspect.isclass(kind) and issubclass(kind, BaseException) and kind.__module__ == module.__name__:
            said = _cell(_prose(_first_paragraph(kind.__doc__)))
            lines.append(f"| `{name}` | `{kind.__bases__[0].__name__}` | {said} |")
    return [*lines, ""]


def _row(target: str, name: str, thing: object) -> str:
    return f"| [`{name}`](python/{target}) | {_cell(_prose(_first_sentence(inspect.getdoc(thing))))} |"


def _anchor(name: str) -> str:
    return re.sub(r"[^\w-]", "", name.lower())


def _entry(name: str, thing: object) -> list[str]:
    lines = ["", f"## `{name}`", ""]
    if callable(thing) and thing not in MADE.values():
        lines += ["```python", _signature(name, thing), "```", ""]
    if inspect.isclass(thing) or inspect.isroutine(thing):
        lines += [_prose(inspect.getdoc(thing) or ""), ""]
    elif not callable(thing):
        lines += [f"`{thing!r}`" if len(repr(thing)) < _WIDTH else f"A {type(thing).__name__}.", ""]
    if thing in MADE.values() and dataclasses.is_dataclass(thing):
        fields = (each.name for each in dataclasses.fields(thing) if not each.name.startswith("_"))
        lines += [f"Its fields: {', '.join(f'`{each}`' for each in fields)}.", ""]
    if inspect.isclass(thing):
        rows = [
            f"| {_call(thing, key)} | {_cell(_prose(_first_paragraph(inspect.getdoc(getattr(thing, key)))))} |"
            for key in _members(thing)
        ]
        lines += ["| member | |", "| --- | --- |", *rows, ""] if rows else []
    return lines


def _call(kind: type, key: str) -> str:
    """A member as one would write it: a method with its parameters and their defaults, their types left out."""
    member = getattr(kind, key)
    if not callable(member):
        return f"`{key}`"
    signature = inspect.signature(member)
    given = [
        each.replace(annotation=inspect.Parameter.empty)
        for name, each in signature.parameters.items()
        if name != "self"
    ]
    call = key + str(signature.replace(parameters=given, return_annotation=inspect.Signature.empty))
    # The site does not break what stands between two backticks in a table.
    lines = textwrap.wrap(call, _NARROW, break_long_words=False, break_on_hyphens=False)
    return " ".join(f"`{line}`" for line in lines)


def _members(kind: type) -> list[str]:
    """The public methods and properties of a class that Tabulary itself has written and described."""
    own = {key for base in kind.__mro__ if base.__module__.startswith("tabulary") for key in vars(base)}
    return sorted(
        key
        for key in own
        if not key.startswith("_")
        and isinstance(inspect.getattr_static(kind, key), _MEMBERS)
        and inspect.getdoc(getattr(kind, key))
    )


def _signature(name: str, thing: Any) -> str:
    """The call as one would write it: types by their own names, one parameter a line where one line is too short."""
    try:
        signature = inspect.signature(thing)
    except (TypeError, ValueError):
        return f"{name}(...)"
    if inspect.isclass(thing):
        signature = signature.replace(return_annotation=inspect.Signature.empty)
    line = name + _short_types(str(signature))
    if len(line) <= _WIDTH:
        return line
    inside, after = [], ""
    kinds = [each.kind for each in signature.parameters.values()]
    for i, each in enumerate(signature.parameters.values()):
        bare = each.kind is each.KEYWORD_ONLY and each.VAR_POSITIONAL not in kinds
        if bare and each.KEYWORD_ONLY not in kinds[:i]:
            inside.append("*")
        inside.append(_short_types(str(each)))
    if signature.return_annotation is not inspect.Signature.empty:
        after = _short_types(str(signature).rpartition(" -> ")[2])
    lines = [f"{name}(", *(f"    {each}," for each in inside), f") -> {after}" if after else ")"]
    return "\n".join(lines)


def _short_types(text: str) -> str:
    text = re.sub(
        r"numpy\._typing\._array_like\._Buffer.*?_NestedSequence\[complex \| bytes \| str\]",
        "ArrayLike",
        text,
    )
    text = re.sub(r"(?:typing\.)?Union\[ArrayLike\]", "ArrayLike", text)
    while found := re.search(r"numpy\.ndarray\[", text):
        end = _closing(text, found.end() - 1)
        element = re.findall(r"numpy\.dtype\[(?:numpy\.|typing\.)?(\w+)\]", text[found.start() : end + 1])
        text = f"{text[: found.start()]}NDArray[{element[0] if element else 'Any'}]{text[end + 1 :]}"
    text = re.sub(r"<(?:class )?'?([^'>]+)'?>", r"\1", text)
    # Keywords that a dictionary type lists.
    text = re.sub(r"(\*\*\w+: )\*([\w.]+)", r"\1Unpack[\2]", text)
    return re.sub(r"\b(?:[a-z_]\w*\.)+([A-Z]\w*|date\b|ufunc\b)", r"\1", text)


def _closing(text: str, opening: int) -> int:
    depth = 0
    for place in range(opening, len(text)):
        depth += {"[": 1, "]": -1}.get(text[place], 0)
        if depth == 0:
            return place
    return len(text) - 1


def _prose(text: str) -> str:
    """A docstring as Markdown: its examples in fences, its lists of arguments as lists."""
    lines = text.splitlines()
    out: list[str] = []
    place = 0
    while place < len(lines):
        line = lines[place]
        if line.lstrip().startswith(">>>"):
            end = next((i for i in range(place, len(lines)) if not lines[i].strip()), len(lines))
            out += ["", "```python", *lines[place:end], "", "```"]
            place = end
        elif re.fullmatch(r"(Args|Returns|Raises|Yields|Attributes):", line.strip()):
            end = next(
                (
                    i
                    for i in range(place + 1, len(lines))
                    if lines[i].strip() and not lines[i].startswith("    ")
                ),
                len(lines),
            )
            out += ["", f"**{line.strip()[:-1]}**", "", *_items(lines[place + 1 : end]), ""]
            place = end
        else:
            plain = line.startswith("    ") or ("`" in line and line.count("`") % 2)
            out.append(line if plain else _harmless(line))
            place += 1
    return re.sub(r"\n{3,}", "\n\n", "\n".join(out)).strip()


def _items(lines: Iterable[str]) -> list[str]:
    items: list[str] = []
    for line in (each for each in lines if each.strip()):
        if line.startswith("     "):
            items[-1] += f" {_harmless(line.strip())}"
        else:
            name, _, words = line.strip().partition(":")
            items.append(f"- `{name}`: {_harmless(words.strip())}")
    return items


def _harmless(line: str) -> str:
    """A line of prose in which nothing outside backticks is a tag or an emphasis by accident."""
    parts = line.split("`")
    for i in range(0, len(parts), 2):
        parts[i] = re.sub(r"<(?=[A-Za-z/!])", "&lt;", parts[i])
        parts[i] = re.sub(r"(?<=\w)\*\*(?=\w)", r"\\*\\*", parts[i])
    return "`".join(parts)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _first_paragraph(text: str | None) -> str:
    return " ".join((text or "").split("\n\n")[0].split())


def _first_sentence(text: str | None) -> str:
    paragraph = _first_paragraph(text)
    return re.split(r"(?<=[.])\s(?=[A-Z`])", paragraph)[0]


def _text(lines: Iterable[str]) -> str:
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).rstrip() + "\n"
