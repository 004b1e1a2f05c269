"""The words of a release in one language: titles, descriptions, units, names of levels, notes and sources.

Codes are for programs and never change; labels are for readers. A release has one `Labels` per language.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from tabulary.core.domain import Domain
from tabulary.errors import InvalidArgument, listed

LONGEST = 2_000
"""The most characters of one text: an area name has a hundred, a note is a paragraph."""


@dataclass(frozen=True)
class VariableLabels:
    """How an attribute is shown to a reader: its label, and the labels of its levels.

    A level without a label in `levels` is shown by its code. `unit` is what its levels count, such as "years".

    >>> sex = VariableLabels("Sex", levels={"F": "Female"})
    >>> sex.level("F"), sex.level("M")
    ('Female', 'M')
    """

    label: str
    description: str = ""
    levels: Mapping[str, str] = field(default_factory=dict)
    unit: str = ""
    notes: tuple[str, ...] = ()
    source: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "levels", MappingProxyType(dict(self.levels)))
        object.__setattr__(self, "notes", tuple(self.notes))
        _check_texts(self.label, self.description, self.unit, self.source, *self.notes, *self.levels.values())
        if not self.label.strip():
            raise InvalidArgument(
                "the label of an attribute is empty. Leave it out to show the attribute's name."
            )

    def level(self, code: str) -> str:
        """Return the label of a level for readers."""
        return self.levels.get(code, code)

    def check(self, codes: Sequence[str]) -> None:
        """Raise InvalidArgument unless all labels belong to these levels and differ from each other."""
        if strangers := [code for code in self.levels if code not in codes]:
            raise InvalidArgument(
                f"labels are given to {listed(strangers)}, which are no levels of {self.label!r}. Its levels are "
                f"{listed(codes)}."
            )
        if blank := [code for code, label in self.levels.items() if not label.strip()]:
            raise InvalidArgument(f"the label of the level {blank[0]!r} of {self.label!r} is empty.")
        shown = [self.level(code) for code in codes]
        if len(set(shown)) < len(shown):
            twice = next(label for label in shown if shown.count(label) > 1)
            raise InvalidArgument(
                f"two levels of {self.label!r} would both be shown as {twice!r}, and nobody could tell them apart."
            )

    def describe(self) -> dict[str, Any]:
        """Return the labels as plain data."""
        return {
            "label": self.label,
            "description": self.description,
            "levels": dict(self.levels),
            "unit": self.unit,
            "notes": list(self.notes),
            "source": self.source,
        }

    @classmethod
    def from_description(cls, described: Mapping[str, Any]) -> "VariableLabels":
        """Return what `describe` wrote; refuse anything else."""
        found = cls(**{**described, "notes": tuple(described["notes"])})
        if found.describe() != described:
            raise InvalidArgument("these are not the labels of an attribute as Tabulary writes them.")
        return found


@dataclass(frozen=True)
class Labels:
    """The words of a release in one language. What is not given is shown by its code.

    `language` is a tag such as "en" or "pt-BR"; it is empty where a publisher uses one language and does not name it.
    `unit` is what is counted, such as "persons"; `source` is the line that names where the records come from; `total`
    is the word for a total.

    >>> labels = Labels(title="Census", variables={"sex": VariableLabels("Sex", levels={"F": "Female"})})
    >>> labels.name("sex"), labels.level("sex", "F"), labels.name("age"), labels.level("age", "0-14")
    ('Sex', 'Female', 'age', '0-14')
    """

    title: str = ""
    description: str = ""
    unit: str = ""
    source: str = ""
    notes: tuple[str, ...] = ()
    variables: Mapping[str, VariableLabels] = field(default_factory=dict)
    language: str = ""
    total: str = "Total"

    def __post_init__(self) -> None:
        object.__setattr__(self, "variables", MappingProxyType(dict(self.variables)))
        object.__setattr__(self, "notes", tuple(self.notes))
        _check_texts(
            self.title, self.description, self.unit, self.source, self.language, self.total, *self.notes
        )

    def variable(self, attribute: str) -> VariableLabels:
        """Return the labels of an attribute; by default its name and its codes."""
        return self.variables.get(attribute) or VariableLabels(attribute)

    def name(self, attribute: str) -> str:
        """Return the label of an attribute."""
        return self.variable(attribute).label

    def level(self, attribute: str, code: str) -> str:
        """Return the label of a level of an attribute."""
        return self.variable(attribute).level(code)

    def levels(self, domain: Domain, attribute: str) -> tuple[str, ...]:
        """Return the labels of all levels of an attribute, in the order of the domain."""
        variable = self.variable(attribute)
        return tuple(variable.level(code) for code in domain.levels_of(attribute))

    def counted(self) -> str:
        """Return what is counted, as a heading: "Number of people" where nothing else is said."""
        return f"Number of {self.unit or 'people'}" if self._in_english else _capital(self.unit)

    def heading(self, names: Sequence[str]) -> str:
        """Return the heading of a table: what is counted, by the names of its attributes.

        Only the English heading joins them by words: another language has words of its own.

        >>> Labels(unit="persons").heading(["Sex", "Age", "Job"])
        'Persons by Sex, Age and Job'
        >>> Labels(unit="henkilöä", language="fi").heading(["Sukupuoli", "Ikä"])
        'Henkilöä: Sukupuoli, Ikä'
        """
        if not names:
            return self.counted()
        if not self._in_english:
            return ": ".join(filter(None, (_capital(self.unit), ", ".join(names))))
        *firsts, last = names
        by = f"{', '.join(firsts)} and {last}" if firsts else last
        return f"{_capital(self.unit or 'people')} by {by}"

    def table_name(self, attributes: Sequence[str]) -> str:
        """Return a table as a reader would say it, by the names of its attributes.

        >>> words = {"sex": VariableLabels("Sukupuoli"), "age": VariableLabels("Ikä")}
        >>> Labels(language="fi", variables=words).table_name(["sex", "age"]), Labels().table_name(["sex", "age"])
        ('Sukupuoli, Ikä', 'sex by age')
        """
        return (" by " if self._in_english else ", ").join(map(self.name, attributes)) or self.total

    def remarks(self, attributes: Iterable[str]) -> tuple[str, ...]:
        """Return what the publisher remarks on a table by these attributes: on the release, then on each of them.

        >>> age = VariableLabels("Age", "On the last day", unit="years", notes=("Rounded down.",))
        >>> Labels(notes=("Made in 2026.",), variables={"age": age}).remarks(["age"])
        ('Made in 2026.', 'Age, years: On the last day', 'Age, years: Rounded down.')
        """
        return (*filter(None, (self.description, *self.notes)), *self.attribute_remarks(attributes))

    @property
    def source_line(self) -> str:
        """The line that names the source, for a reader; empty where none is given."""
        return f"Source: {self.source}" if self.source else ""

    def attribute_remarks(self, attributes: Iterable[str]) -> tuple[str, ...]:
        """Return what the publisher remarks on these attributes."""
        told: list[str] = []
        for variable in map(self.variable, attributes):
            name = ", ".join(filter(None, (variable.label, variable.unit)))
            source = f"Source: {variable.source}" if variable.source else ""
            lines = [line for line in (variable.description, *variable.notes, source) if line]
            told += [f"{name}: {line}" for line in lines] or ([name] if variable.unit else [])
        return tuple(told)

    @property
    def _in_english(self) -> bool:
        return self.language.lower().split("-")[0] in ("", "en")

    def check(self, domain: Domain) -> None:
        """Raise InvalidArgument unless these labels fit the attributes and levels of a domain."""
        if strangers := [name for name in self.variables if name not in domain.attributes]:
            raise InvalidArgument(
                f"labels are given to {listed(strangers)}, which are no attributes of the data."
            )
        for attribute, variable in self.variables.items():
            variable.check(domain.levels_of(attribute))
        shown = [self.name(attribute) for attribute in domain.attributes]
        if len(set(shown)) < len(shown):
            twice = next(name for name in shown if shown.count(name) > 1)
            raise InvalidArgument(
                f"two attributes would both be shown as {twice!r}. Give them different labels."
            )

    def describe(self) -> dict[str, Any]:
        """Return the labels as plain data."""
        return {
            "title": self.title,
            "description": self.description,
            "unit": self.unit,
            "source": self.source,
            "notes": list(self.notes),
            "variables": {name: variable.describe() for name, variable in self.variables.items()},
            "language": self.language,
            "total": self.total,
        }

    @classmethod
    def from_description(cls, described: Mapping[str, Any]) -> "Labels":
        """Return what `describe` wrote; refuse anything else."""
        try:
            variables = {n: VariableLabels.from_description(v) for n, v in described["variables"].items()}
            found = cls(**{**described, "notes": tuple(described["notes"]), "variables": variables})
        except (AttributeError, KeyError, TypeError):
            raise InvalidArgument("these are not labels as Tabulary writes them.") from None
        if found.describe() != described:
            raise InvalidArgument("these are not labels as Tabulary writes them.")
        return found


def _capital(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}"


def _check_texts(*texts: object) -> None:
    for text in texts:
        if not isinstance(text, str) or not text.isprintable() or len(text) > LONGEST:
            raise InvalidArgument(
                f"a label must be printable text on one line of at most {LONGEST:,} characters, not {text!r:.60}."
            )


CODES = Labels()
"""No words of a publisher: everything is shown by its code."""
