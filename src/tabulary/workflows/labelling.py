"""The words in a plan file or a service file: texts for readers, in one language or in several."""

import re
from collections.abc import Mapping
from functools import partial
from typing import Any

from tabulary.core.domain import Domain
from tabulary.core.labels import Labels, VariableLabels
from tabulary.errors import InvalidSettings, listed
from tabulary.workflows.sections import Section, located

_TAG = re.compile(r"[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})*")


class LabelReader:
    """Takes the words of attributes and of a release from the tables of a file; `labels` returns all of them.

    `section` may hold `languages`, a list of tags whose first is the default. With languages, each text is either text
    for all of them or a table by language, such as `{ en = "Sex", fi = "Sukupuoli" }`, which must hold the default
    language: a language without a text uses that one.

    >>> output = Section("[output]", {"languages": ["en", "fi"], "unit": {"en": "persons", "fi": "henkilöä"}})
    >>> reader = LabelReader(output)
    >>> reader.take_attribute("sex", Section("[domain.sex]", {"label": "Sex", "names": {"F": {"en": "Female"}}}))
    >>> english, finnish = reader.labels(Domain({"sex": ["F", "M"]}), "[domain]")
    >>> finnish.language, finnish.unit, finnish.name("sex"), finnish.level("sex", "F")
    ('fi', 'henkilöä', 'Sex', 'Female')
    """

    def __init__(self, section: Section, *, title: str = "", source: str = "source") -> None:
        """Take the words of the release; `title` is the usual title, and `source` is the key of the source line."""
        self._place = section.name
        self.languages = _languages(section)
        self._words = {
            "title": self._take(section, "title") or dict.fromkeys(self.languages, title),
            "description": self._take(section, "description"),
            "unit": self._take(section, "unit"),
            "source": self._take(section, source),
            "total": self._take(section, "total"),
        }
        self._notes = self._take_notes(section)
        self._variables: dict[str, dict[str, VariableLabels]] = {}

    def take_attribute(self, attribute: str, entry: Section) -> None:
        """Take the words of an attribute from its table."""
        words = {key: self._take(entry, key) for key in ("label", "description", "unit", "source")}
        names = entry.take("names", dict, default={})
        levels = {code: self._text(f"{entry.name} names.{code}", given) for code, given in names.items()}
        notes = self._take_notes(entry)
        if not any((*words.values(), levels, notes)):
            return
        words["label"] = words["label"] or dict.fromkeys(self.languages, attribute)
        self._variables[attribute] = {
            language: located(
                entry.name,
                partial(
                    VariableLabels,
                    **_said(words, language),
                    levels=_said(levels, language),
                    notes=tuple(note[language] for note in notes),
                ),
            )
            for language in self.languages
        }

    def labels(self, domain: Domain, place: str) -> tuple[Labels, ...]:
        """Return the words in each language, the default first; `place` is the table of the attributes."""
        return tuple(self._labels(language, domain, place) for language in self.languages)

    def _labels(self, language: str, domain: Domain, place: str) -> Labels:
        variables = {name: words[language] for name, words in self._variables.items()}
        for name, variable in variables.items():
            located(f"{place[:-1]}.{name}] names", partial(variable.check, domain.levels_of(name)))
        notes = tuple(note[language] for note in self._notes)
        said = _said(self._words, language)
        made = located(
            self._place, lambda: Labels(**said, notes=notes, variables=variables, language=language)
        )
        located(place, lambda: made.check(domain))
        return made

    def _take(self, section: Section, key: str) -> Mapping[str, str]:
        given = section.take(key, (str, dict), default=None)
        return {} if given is None else self._text(f"{section.name} {key}", given)

    def _take_notes(self, section: Section) -> list[Mapping[str, str]]:
        given = section.take("notes", list, default=[])
        return [
            self._text(f"{section.name} notes, number {n}", note) for n, note in enumerate(given, start=1)
        ]

    def _text(self, place: str, given: Any) -> Mapping[str, str]:
        """Return a text in every language; where one is missing, the text in the default language."""
        if isinstance(given, str):
            return dict.fromkeys(self.languages, given)
        if not isinstance(given, dict) or not all(isinstance(text, str) for text in given.values()):
            raise InvalidSettings(
                f"{place} has the wrong type: it must be text, or a table of texts by language."
            )
        default = self.languages[0]
        if not default:
            raise InvalidSettings(
                f'{place} is a table by language, but {self._place} names no languages. Add `languages = ["en", "fi"]` '
                "there, the default language first, or write one text."
            )
        if strangers := [language for language in given if language not in self.languages]:
            raise InvalidSettings(
                f"{place} has a text in {listed(strangers)}, but the languages of {self._place} are "
                f"{listed(self.languages)}."
            )
        if default not in given:
            raise InvalidSettings(f"{place} has no text in {default!r}, the default language.")
        return {language: given[language if language in given else default] for language in self.languages}


def _languages(section: Section) -> tuple[str, ...]:
    given = section.take("languages", list, default=[])
    if not all(isinstance(tag, str) and _TAG.fullmatch(tag) for tag in given) or len(set(given)) < len(given):
        raise InvalidSettings(
            f'{section.name} languages is a list of different language tags such as ["en", "pt-BR"], the default first.'
        )
    return tuple(given) or ("",)


def _said(words: Mapping[str, Mapping[str, str]], language: str) -> dict[str, Any]:
    return {key: said[language] for key, said in words.items() if said}
