from tabulary.core.domain import Domain
from tabulary.core.labels import Labels, VariableLabels
from tabulary.core.neighbours import Neighbours
from tabulary.release import Release
from tabulary.release.who_is_counted import who_is_counted
from tests.unit.release.releases import PEOPLE, a_release


def told(*, dropping=(), labels=(), **options):
    made = a_release(**options)
    return " ".join(who_is_counted(Release(made.measurement, made.face, labels=labels, dropping=dropping)))


def test_a_record_counts_as_one_and_a_person_has_as_many_as_the_plan_says():
    assert "A person has one record at most." in told()
    many = told(neighbours=Neighbours(records=3))
    assert "A person may have up to 3 records, and each of them is counted." in many
    assert "survey weights are not used" in many


def test_what_is_left_out_for_an_unknown_value_is_named():
    assert "No record was left out because a value was missing or unknown." in told()
    one = told(dropping=["age"])
    assert "A record whose value of age is missing or unknown is left out of every table." in one
    assert "How many were left out is not published." in one
    two = told(dropping=["sex", "age"], labels=Labels(variables={"sex": VariableLabels("Gender")}))
    assert (
        "value of Gender and age is missing or unknown is left out of every table, even if it is one" in two
    )


def test_the_number_of_records_is_public_only_where_it_is():
    assert "The number of counted records is protected like every other number" in told()
    replaced = Neighbours("replace")
    assert "is public, and totals have hardly any error" in told(neighbours=replaced, mechanism="residual")
    for mechanism in ("cells", "margins", "fourier", "efron-stein"):
        said = told(neighbours=replaced, mechanism=mechanism)
        assert "The promise does not protect the number of counted records" in said
        assert "their totals are estimates" in said
    dropped = Neighbours("replace", may_drop=True)
    assert "The number of counted records is protected" in told(neighbours=dropped, dropping=["age"])


def test_impossible_combinations_are_named_in_the_words_of_readers_a_few_of_many():
    assert "the tables show a dash: age “0-14” with job “paid, or self”." in told()
    labels = Labels(variables={"age": VariableLabels("Age", levels={"0-14": "children"})})
    assert "Age “children” with job “paid, or self”." in told(labels=labels)
    assert "by definition" not in told(domain=Domain({"sex": "FM", "age": "xy", "job": "pq"}))
    zeros = [{"a": i, "b": [j for j in range(8) if j != i]} for i in range(6)]
    many = told(domain=Domain({"a": range(8), "b": range(8)}, structural_zeros=zeros), work="[a b]")
    assert "a “0” with b “1”, “2”, “3” or 4 others" in many
    assert "; and 3 more, which manifest.json lists." in many


def test_every_rule_is_a_sentence():
    made = a_release(PEOPLE)
    assert all(words.endswith(".") and words[0].isupper() for words in who_is_counted(made))
