"""Publications that every test of a format can write, and what each cell of them is."""

from dataclasses import replace
from itertools import product

import numpy as np
from hypothesis import strategies as st

from tabulary.core.domain import Domain
from tabulary.core.labels import Labels, VariableLabels
from tabulary.release.publication import Publication
from tabulary.release.totals import labelled_totals

# What looks like a formula, a number, a date, nothing, a mark of the format, or another label.
ODD = [
    *("=1+1", "+1", "@x", "007", "7", "1-2", "1e5", "TRUE", "NA", "nan", "null", "None", "-", "..", "*", "#"),
    *(
        '"',
        "'",
        'a"b',
        "a'b",
        "a,b",
        "a;b",
        "a  b",
        "a_b",
        "a b",
        "DATA=",
        "_x0041_",
        "<b>&amp;",
        "\\n",
        "年",
        "é",
    ),
]
NAMES = [
    "sex",
    "sex label",
    "SEX",
    "count",
    "status",
    "measure",
    "Measure",
    "action",
    "obs value",
    "年",
    "a;b",
]

levels = st.one_of(
    st.sampled_from(ODD),
    st.text(min_size=1, max_size=8).map(str.strip).filter(lambda text: text and text.isprintable()),
)


@st.composite
def publications(draw, label=levels):
    """Return a table with odd names: on no attribute or several, with errors or withheld cells, with zeros."""
    names = draw(st.lists(st.sampled_from(NAMES), unique=True, max_size=3))
    domain = Domain({name: draw(st.lists(label, min_size=1, max_size=4, unique=True)) for name in names})
    if names and domain.size > 1 and draw(st.booleans()):
        domain = Domain(
            dict(zip(names, domain.levels, strict=True)),
            [{a: given[0] for a, given in zip(names, domain.levels, strict=True)}],
        )
    possible = ~domain.impossible(domain.attributes)
    number = draw(
        st.sampled_from([st.integers(-(10**9), 10**9), st.floats(-1e9, 1e9, allow_subnormal=False)])
    )
    counts = np.array(draw(st.lists(number, min_size=domain.size, max_size=domain.size))).reshape(
        domain.shape
    )
    counts = np.asarray(counts * possible)
    words = {
        "title": draw(st.sampled_from(["", "Åldrar; 2026", 'A "quoted" title'])),
        "words": Labels(
            source=draw(st.sampled_from(["", "A survey"])),
            variables={name: VariableLabels("Sex") for name in names[:1]},
        ),
        "edition": "2026",
        "notes": ("A note; with a semicolon.",),
    }
    if draw(st.booleans()):
        deviations = np.asarray(draw(st.floats(1e-7, 1e9)) * possible)
        widths = np.asarray(draw(st.integers(0, 10**9)) * possible)
        return Publication(domain, counts, (deviations, counts - widths, counts + widths), **words)
    hidden = np.array(draw(st.lists(st.booleans(), min_size=domain.size, max_size=domain.size)))
    return Publication(domain, counts, None, hidden.reshape(domain.shape) & possible, **words)


def cells(published):
    """Return each cell, the last attribute fastest: its levels, its numbers by measure, its status."""
    columns = [published.values(name) for name in published.measures]
    return [
        (at, dict(zip(published.measures, numbers, strict=True)), mark)
        for at, numbers, mark in zip(
            product(*published.domain.levels), zip(*columns, strict=True), published.marks(), strict=True
        )
    ]


def a_publication(**words):
    """Return people by age and job: a plain cell, one that noise dominates, an impossible one."""
    domain = Domain(
        {"age": ["0-14", "15-64", "65+"], "job": ["none", "paid, or self"]},
        structural_zeros=[{"age": "0-14", "job": "paid, or self"}],
    )
    counts = np.array([[148, 0], [201, 457], [191, 3]])
    possible = ~domain.impossible(domain.attributes)
    given = {
        "words": Labels(
            source="A survey", variables={"age": VariableLabels("Age", levels={"0-14": "Children"})}
        ),
        "edition": "2026",
        "notes": ("A promise.",),
        "facts": {"plan": "5f3a"},
    }
    errors = (2.8 * possible, counts - 6 * possible, counts + 6 * possible)
    return Publication(domain, counts, errors, **{**given, **words})


def withheld_publication():
    """Return a table without known errors, of which one count is withheld."""
    return Publication(
        Domain({"sex": ["F", "M"]}),
        np.array([12, 0]),
        None,
        np.array([False, True]),
        words=Labels(variables={"sex": VariableLabels("Sex")}),
    )


def large_publication(zones=100):
    """Return a table of a hundred cells a zone, half of which noise dominates."""
    domain = Domain({"zone": [f"zone {i}" for i in range(zones)], "age": range(100)})
    counts = np.arange(domain.size).reshape(domain.shape) % 2 * 40
    return Publication(domain, counts, (np.full(domain.shape, 2.8), counts - 6, counts + 6))


def with_all_totals(published):
    """Return a publication whose attributes have totals as their last level, sums of its cells with twice the error."""
    domain = published.domain
    if not domain.attributes:
        return published

    def summed(numbers, grow):
        for axis in range(len(domain.attributes)):
            numbers = np.concatenate([numbers, grow(numbers, axis)], axis=axis)
        return numbers

    counts = summed(published.counts, lambda numbers, axis: numbers.sum(axis=axis, keepdims=True))
    zeros = summed(
        domain.impossible(domain.attributes),
        lambda impossible, axis: impossible.all(axis=axis, keepdims=True),
    )
    names = {a: [*domain.levels_of(a), "_T"] for a in domain.attributes}
    wider = Domain(
        names,
        [
            {a: names[a][i] for a, i in zip(names, place, strict=True)}
            for place in np.argwhere(zeros).tolist()
        ],
    )
    errors = published.errors
    if errors is not None:
        largest = lambda numbers, axis: 2 * numbers.max(axis=axis, keepdims=True)  # noqa: E731
        deviations, widths = summed(errors[0], largest), summed(errors[2] - published.counts, largest)
        errors = (deviations, counts - widths, counts + widths)
    words = labelled_totals(published.words, domain.attributes)
    return replace(published, domain=wider, counts=counts, errors=errors, withheld=None, words=words)


WORDS = Labels(
    "Census 2026",
    "Everyone on census night.",
    "persons",
    "Statistics Demo",
    ("A note on the census.",),
    {
        "age": VariableLabels(
            "Age", "In completed years.", {"0-14": "Children"}, "years", ("Rounded down.",), "Register"
        )
    },
    "en",
)
FINNISH = Labels(
    "Väestölaskenta 2026",
    unit="henkilöä",
    source="Tilastot",
    variables={"age": VariableLabels("Ikä", levels={"0-14": "Lapset"})},
    language="fi",
    total="Yhteensä",
)
