import pickle
import tomllib
from dataclasses import FrozenInstanceError
from importlib.resources import files

import numpy as np
import pytest

from tabulary import datasets
from tabulary.core.table import Table
from tabulary.core.workload import Workload
from tabulary.errors import PublicError, UnknownDataset

every_dataset = pytest.mark.parametrize("name", datasets.names())


def test_the_six_published_tables_are_there():
    assert datasets.names() == (
        "fungus",
        "autoworkers",
        "rochdale",
        "journey-to-work",
        "uk-census",
        "hair-eye-gene",
    )


@every_dataset
def test_a_loaded_table_holds_non_negative_whole_numbers_that_cannot_be_changed(name):
    table = datasets.load(name)
    assert isinstance(table, Table)
    assert table.counts.dtype == np.int64
    assert table.counts.min() >= 0
    with pytest.raises(ValueError, match="read-only"):
        table.counts[(0,) * table.counts.ndim] = 1


@every_dataset
def test_a_description_names_its_source_and_the_meaning_of_every_attribute(name):
    about = datasets.describe(name)
    assert about.name == name
    assert about.title
    assert "(20" in about.source
    assert tuple(about.meanings) == about.table.domain.attributes
    assert all(about.meanings.values())
    assert name in repr(about)


@every_dataset
def test_a_description_cannot_be_changed(name):
    about = datasets.describe(name)
    with pytest.raises(FrozenInstanceError):
        about.source = "elsewhere"
    with pytest.raises(TypeError, match="does not support item assignment"):
        about.meanings["A"] = "something else"


@every_dataset
def test_the_model_of_a_source_can_be_read_on_its_table(name):
    about = datasets.describe(name)
    if about.model is not None:
        assert len(Workload.parse(about.model, about.table.domain)) >= 3


@pytest.mark.parametrize("name", ["fungus", "rochdale", "journey-to-work", "hair-eye-gene"])
def test_where_the_printed_page_is_wrong_the_description_says_so(name):
    assert datasets.describe(name).corrections


def test_only_hair_eye_gene_comes_with_group_sizes_and_probabilities():
    for name in datasets.names():
        about = datasets.describe(name)
        assert (about.people is not None) == (about.probability is not None) == (name == "hair-eye-gene")


@pytest.mark.parametrize("name", ["census", "", "Fungus", "../fungus", None, 3])
def test_an_unknown_name_is_refused_with_the_names_there_are(name):
    for function in (datasets.load, datasets.describe):
        with pytest.raises(UnknownDataset, match="'fungus', 'autoworkers', 'rochdale'") as refusal:
            function(name)
        assert isinstance(refusal.value, PublicError)


@every_dataset
def test_every_line_of_a_table_file_is_used(name):
    entry = tomllib.loads(files("tabulary.datasets").joinpath("tables", f"{name}.toml").read_text("utf-8"))
    known = {
        "title",
        "source",
        "corrections",
        "notes",
        "model",
        "printed",
        "counts",
        "attributes",
        "companions",
    }
    assert set(entry) <= known


@every_dataset
def test_a_dataset_goes_from_process_to_process(name):
    before = datasets.describe(name)
    after = pickle.loads(pickle.dumps(before))
    assert after.meanings == before.meanings
    assert after.table.counts.tolist() == before.table.counts.tolist()
    with pytest.raises(TypeError, match="does not support item assignment"):
        after.meanings["A"] = "something else"
