"""JSON-stat 2.0: one JSON document, read by statistical offices' own software and by most of their clients.

The measures of a cell (count, standard error, both ends of the interval) are a dimension with the role `metric`, the
last and fastest one, and every value has a `status`. The form is that of json-stat.org, version 2.0.
"""

import json
from typing import Any

from tabulary.core.labels import VariableLabels
from tabulary.core.long_form import value_name
from tabulary.release.publication import Publication, Status

# The form that RFC 6838 defines for a JSON format; json-stat.org names no media type.
MEDIA_TYPE = "application/vnd.json-stat+json"


def json_stat_document(published: Publication) -> dict[str, Any]:
    """Return the publication as the plain data of a JSON-stat dataset.

    >>> import numpy as np
    >>> from tabulary.core.domain import Domain
    >>> document = json_stat_document(Publication(Domain({"sex": ["F", "M"]}), np.array([12, 9]), None))
    >>> document["id"], document["size"], document["value"], document["status"]
    (['sex', 'measure'], [2, 1], [12, 9], ['e', 'e'])
    """
    domain, labels = published.domain, published.measure_labels
    measure = value_name("measure", domain.attributes)
    dimensions: dict[str, Any] = {
        attribute: {
            "label": published.label(attribute),
            "category": {
                "index": list(domain.levels_of(attribute)),
                "label": {
                    level: published.level_label(attribute, level) for level in domain.levels_of(attribute)
                },
            },
            **_about(published.words.variable(attribute)),
        }
        for attribute in domain.attributes
    }
    dimensions[measure] = {
        "label": "Measure",
        "category": {
            "index": list(labels),
            "label": dict(labels),
            "unit": {
                name: {"label": published.unit, "decimals": published.decimals(name)} for name in labels
            },
        },
    }
    columns = [published.values(name) for name in labels]
    words = {"label": published.heading, "source": published.origin, "note": list(published.small_print())}
    given = published.words
    told = {
        "title": given.title,
        "unit": given.unit,
        "language": given.language,
    }
    return {
        "version": "2.0",
        "class": "dataset",
        **{name: said for name, said in words.items() if said},
        "id": list(dimensions),
        "size": [*domain.shape, len(labels)],
        "role": {"metric": [measure]},
        "dimension": dimensions,
        "value": [value for cell in zip(*columns, strict=True) for value in cell],
        "status": [mark for mark in published.marks() for _ in labels],
        "extension": {
            **published.facts,
            **{name: said for name, said in told.items() if said},
            "edition": published.edition,
            "status": {s.value: published.meaning(s) for s in Status},
        },
    }


def _about(variable: VariableLabels) -> dict[str, Any]:
    """Return what a publisher says about an attribute; JSON-stat leaves all but notes to extensions."""
    told = {"description": variable.description, "unit": variable.unit, "source": variable.source}
    more = {name: said for name, said in told.items() if said}
    return {
        **({"note": list(variable.notes)} if variable.notes else {}),
        **({"extension": more} if more else {}),
    }


def json_stat_bytes(published: Publication) -> bytes:
    """Return the publication as JSON-stat 2.0; the numbers read back to the same floats."""
    document = json_stat_document(published)
    return json.dumps(document, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
