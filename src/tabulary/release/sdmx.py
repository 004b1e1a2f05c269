"""SDMX-CSV 2.0, written by pysdmx: the exchange format of central banks and statistical offices.

Attributes and levels get SDMX identifiers, and beside each a column with the label; a total has the code _T.
OBS_STATUS uses the codes of the SDMX cross-domain code list CL_OBS_STATUS: E estimated, U low reliability, Q
suppressed, M data cannot exist. The publisher's title, unit, source and notes are columns if they are given.
"""

import re
from collections.abc import Iterable
from typing import Any

import numpy as np

from tabulary.release.publication import Publication, Status, told_apart
from tabulary.release.totals import TOTAL

MEDIA_TYPE = "application/vnd.sdmx.data+csv; version=2.0.0"

PACKAGES = ("pandas", "pysdmx")

_CODES = {Status.estimated: "E", Status.unreliable: "U", Status.withheld: "Q", Status.impossible: "M"}
# The required and the optional columns of SDMX-CSV itself.
_RESERVED = ("STRUCTURE", "STRUCTURE_ID", "STRUCTURE_NAME", "ACTION", "SERIES_KEY", "OBS_KEY", "OBS_STATUS")
# The publisher's words, under the identifiers of SDMX cross-domain concepts.
_WORDS = ("TITLE", "UNIT_MEASURE", "DATA_SOURCE", "COMMENT_DSET")


def sdmx_csv_bytes(published: Publication) -> bytes:
    """Return the publication as SDMX-CSV 2.0; the numbers read back to the same floats."""
    import pandas
    from pysdmx.io.csv.sdmx20.writer import write
    from pysdmx.io.pd import PandasDataset
    from pysdmx.model import Component, Components, Concept, DataType, Role, Schema

    domain = published.domain
    measures = {"count": "OBS_VALUE", "standard_error": "STD_ERROR"}
    measures = {name: measures.get(name) or _identifier(name) for name in published.measures}
    taken = (*_RESERVED, *_WORDS, *measures.values())
    names = identifiers(domain.attributes, taken=taken)
    labels = told_apart((f"{name}_LABEL" for name in names), taken=(*taken, *names))
    columns: dict[str, Any] = {}
    places = np.indices(domain.shape).reshape(len(domain.shape), domain.size)
    for attribute, name, label, at in zip(domain.attributes, names, labels, places, strict=True):
        levels = domain.levels_of(attribute)
        columns[name] = np.array(codes(levels), dtype=object)[at]
        shown = [published.level_label(attribute, level) for level in levels]
        columns[label] = np.array(shown, dtype=object)[at]
    for measure, name in measures.items():
        columns[name] = ["" if v is None else repr(v) for v in published.values(measure)]
    columns["OBS_STATUS"] = [_CODES[Status(mark)] for mark in published.marks()]
    said = published.words
    if said.unit:
        columns["UNIT_MEASURE"] = [said.unit] * domain.size
    # What holds for the whole table is said once, in its first row: notes are long.
    whole = {"TITLE": said.title, "DATA_SOURCE": said.source, "COMMENT_DSET": " ".join(said.notes)}
    columns |= {name: [text] + [""] * (domain.size - 1) for name, text in whole.items() if text}

    roles = dict.fromkeys(columns, Role.ATTRIBUTE)
    roles |= dict.fromkeys(names, Role.DIMENSION) | dict.fromkeys(measures.values(), Role.MEASURE)
    components = [
        Component(
            id=name,
            required=role is Role.DIMENSION,
            role=role,
            concept=Concept(name),
            local_dtype=DataType.STRING,
            attachment_level="O" if role is Role.ATTRIBUTE else None,
        )
        for name, role in roles.items()
    ]
    schema = Schema(
        context="dataflow",
        agency="TABULARY",
        id=_identifier(published.name),
        version="1.0",
        components=Components(components),
        name=published.heading,
    )
    text = write([PandasDataset(structure=schema, data=pandas.DataFrame(columns, dtype="str"))])
    return str(text).encode()


def identifiers(names: Iterable[str], *, taken: Iterable[str] = ()) -> list[str]:
    """Return an SDMX name for each name, each used once: letters, digits and underscores, a letter first.

    >>> identifiers(["age group", "age-group", "2026", "年"])
    ['AGE_GROUP', 'AGE_GROUP_2', 'X_2026', 'X']
    """
    return told_apart(map(_identifier, names), taken=taken)


def codes(levels: Iterable[str]) -> list[str]:
    """Return an SDMX code for each level, each used once: letters, digits and - _ @ $. A total keeps its code.

    >>> codes(["0-14", "not applicable", "65+", "%T", "_T"])
    ['0-14', 'not_applicable', '65_', '_T_2', '_T']
    """
    given = list(levels)
    others = (re.sub(r"[^A-Za-z0-9_@$-]+", "_", level) for level in given if level != TOTAL)
    found = iter(told_apart(others, taken=[TOTAL]))
    return [level if level == TOTAL else next(found) for level in given]


def _identifier(text: str) -> str:
    stem = re.sub(r"[^A-Za-z0-9]+", "_", text).upper().strip("_")
    return stem if stem[:1].isalpha() else f"X_{stem}".rstrip("_")
