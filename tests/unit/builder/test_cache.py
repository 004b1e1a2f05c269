"""The one cache of a worker: every dataset and every answer below one limit."""

import pytest

from tabulary.builder.api.formats import FORMATS
from tabulary.builder.app import create_app
from tabulary.builder.service import ServiceLimits
from tabulary.core.cache import Cache
from tabulary.errors import ServiceError
from tests.builders import ALLOWED, Caller, service


def everything():
    """Every table of every dataset, as every kind of answer."""
    for margin in ALLOWED.margins:
        by = [("by", a) for a in margin]
        rows = [("rows", a) for a in margin]
        for dataset in ("census", "survey", "old"):
            for name in FORMATS:
                yield f"/api/datasets/{dataset}/tables.{name}", by
            yield f"/api/datasets/{dataset}/plan", by
            yield f"/datasets/{dataset}/table", rows


@pytest.mark.parametrize("limit", [0, 20_000, 200_000])
def test_all_datasets_and_answers_of_a_worker_stay_below_its_limit_and_answer_the_same(tmp_path, limit):
    bodies = {}
    for most in (limit, 1 << 30):
        (tmp_path / str(most)).mkdir()
        held = service(tmp_path / str(most), cache=Cache(most), question="1/160")
        _, token = held.state.tokens.add("Bob", "analyst", account="bob")
        caller = Caller(create_app(held), token)
        for path, query in everything():
            answer = caller.get(path, params=query)
            assert held.cache.held_bytes <= most
            assert bodies.setdefault((path, *query), answer.content) == answer.content, path
        if most > limit:
            # Nothing was dropped: what all of it takes is far above the limit that held.
            assert held.cache.held_bytes > 200_000
        held.close()


def test_nothing_of_a_dataset_is_kept_once_it_is_closed(tmp_path):
    held = service(tmp_path)
    for dataset in held.datasets.values():
        dataset.answers.answer(("sex",), asker="bob")
    assert held.cache.held_bytes > 0
    held.close()
    assert held.cache.held_bytes == 0


@pytest.mark.parametrize("wrong", [(1 << 20) - 1, (1 << 40) + 1])
def test_a_cache_out_of_range_is_refused_with_the_range(wrong):
    with pytest.raises(ServiceError, match=f"from '1 MiB' to '1 TiB'.*{wrong:,} bytes. Nothing was opened"):
        ServiceLimits(cache_bytes=wrong)
