"""The generated reference is what the code says today, and every mechanism of the code has its page."""

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

import tabulary as tb
from docs import build
from docs.command_pages import every_command
from tabulary.planning.face import RECONSTRUCTORS, ROUNDINGS
from tabulary.planning.mechanism import MECHANISMS
from tests.pages import ROOT, pages, read

REMEDY = "run `make docs` and commit what it writes"
EXPLANATION = ROOT / "docs" / "explanation"
CATALOGUE = "docs/explanation/mechanisms.md"
# The rows that say of a mechanism what somebody who must choose has to know.
ANSWERS = ["promises", "does not promise", "sensitivity", "use it for", "costs", "watch", "in the code"]


@pytest.fixture(scope="module")
def generated():
    return build.generated_pages()


def test_no_generated_page_tells_where_it_was_made(generated):
    assert not [name for name, text in generated.items() if str(build.REFERENCE.parents[1]) in text]


def test_every_generated_page_is_up_to_date(generated):
    stale = [
        name
        for name, text in generated.items()
        if not (build.REFERENCE / name).exists()
        or (build.REFERENCE / name).read_text(encoding="utf-8") != text
    ]
    assert not stale, REMEDY


def test_no_page_is_left_of_what_is_no_longer_there(generated):
    kept = {
        f"{folder}/{page.name}"
        for folder in build.GENERATED_FOLDERS
        for page in (build.REFERENCE / folder).glob("*.md")
    }
    assert kept <= set(generated), REMEDY


def test_every_command_has_a_page_with_its_options_and_is_on_the_list(generated):
    listed = generated["commands.md"]
    for typed, command in every_command():
        name, *inner = typed.split()[1:]
        assert f"(commands/{name}.md)" in listed
        page = generated[f"commands/{name}.md"]
        assert f"{'##' if inner else '#'} `{typed}`" in page
        for option in command.params:
            assert option.opts[0] in page or option.param_type_name == "argument", (typed, option.opts)


def test_every_public_name_is_on_the_list_and_described(generated):
    everything = "\n".join(generated.values())
    for name in tb.__all__:
        assert f"[`tb.{name}`](python/" in generated["python.md"]
        for inner in getattr(getattr(tb, name), "__all__", []):
            assert f"## `tb.{name}.{inner}`" in everything


def test_no_two_names_lead_to_the_same_place(generated):
    places = re.findall(r"^\| \[`[^`]+`\]\(([^)]+)\)", generated["python.md"], re.MULTILINE)
    assert len(set(places)) == len(places) >= len(tb.__all__)


def test_what_public_names_make_is_told_with_all_it_can_do(generated):
    ledger, client = generated["python/ledger.md"], generated["python/client.md"]
    assert "## `Account`" in ledger
    assert "## `TableBuilder`" in client
    for call in ("debit(", "spent()", "remaining()"):
        assert f"| `{call}" in ledger
    for call in ("datasets()", "table(name, by,", "expected_error(name, by,"):
        assert f"| `{call}" in client


def test_a_method_is_told_with_what_it_takes_and_a_property_by_its_name(generated):
    told = " ".join(generated["python/records.md"].replace("` `", " ").split())
    assert "| `from_file(path, domain, codings=None, *, weights=None, engine='compiled')` |" in told
    assert "| `domain` |" in told


def test_what_an_option_takes_is_said_in_words(generated):
    assert "| `--rows` | a whole number | The number of rows" in generated["commands/synth.md"]
    assert "| `--method` | `release`, `mwem`, `rap` or `graphical` |" in generated["commands/synth.md"]
    assert "| `--by` | text; again for each |" in generated["commands/suppress.md"]
    assert "| `--quick` | |" in " ".join(generated["commands/study.md"].split())
    assert "[default: 2; 1 or more]" in generated["commands/study.md"]
    assert "| `margin` | several words |" in generated["commands/show.md"]


def test_every_error_is_told(generated):
    told = generated["python/errors.md"]
    assert all(f"| `{name}` |" in told for name in ("TabularyError", "BudgetExceeded", "UnknownLevel"))


def test_the_signatures_of_the_reference_are_fit_to_be_read(generated):
    for name, text in generated.items():
        for unreadable in ("numpy._", "tabulary.core", "collections.abc", "<class", "str(object="):
            assert unreadable not in re.sub(r"```python\n>>>.*?```", "", text, flags=re.DOTALL), (
                name,
                unreadable,
            )


def test_the_picture_of_the_readme_can_be_drawn():
    assert ElementTree.fromstring(build.picture()).tag.endswith("svg")


def test_every_relative_link_of_the_documentation_leads_somewhere():
    sources = [ROOT / "CONTRIBUTING.md", ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    broken = [
        f"{page.relative_to(ROOT)}: {target}"
        for page in sources
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
        if not (page.parent / target).exists()
    ]
    assert not broken


def mechanisms():
    """Return every name by which a user asks for a way from records to readers."""
    laws = [name for name in tb.perturb.__all__ if _is_law(getattr(tb.perturb, name))]
    rows = [name for name in tb.synth.__all__ if name.islower() and name != "utility"]
    return [
        *MECHANISMS,
        *RECONSTRUCTORS,
        *(name for name in ROUNDINGS if name != "none"),
        *laws,
        *rows,
        *("simulatable", "classical"),
        *("laplace", "count", "total", "mean", "standard_deviation", "quantile"),
        *("exponential_mechanism", "report_noisy_max", "RandomizedResponse", "k_anonymity"),
    ]


def _is_law(thing):
    law = tb.perturb.Perturbation
    return isinstance(thing, type) and issubclass(thing, law) and thing is not law


@pytest.mark.parametrize("name", mechanisms())
def test_every_mechanism_is_in_the_catalogue(name):
    assert f"`{name}`" in read(CATALOGUE)


def catalogued():
    """Return the pages that the tables of the catalogue lead to."""
    rows = re.findall(r"^\| \[[^|]*?\]\(([\w-]+\.md)", read(CATALOGUE), re.MULTILINE)
    return sorted(set(rows))


@pytest.mark.parametrize("page", catalogued())
def test_the_page_of_a_mechanism_answers_what_must_be_known_to_choose_it(page):
    text = (EXPLANATION / page).read_text(encoding="utf-8")
    found = re.search(r"^## At a glance\n\| \| \|\n\| --- \| --- \|\n((?:\|.*\n)+)", text, re.MULTILINE)
    assert found, "it has no section 'At a glance'"
    assert re.findall(r"^\| ([^|]+) \|", found[1], re.MULTILINE) == ANSWERS


@pytest.mark.parametrize("page", catalogued())
def test_the_code_that_the_page_of_a_mechanism_names_is_there(page):
    text = (EXPLANATION / page).read_text(encoding="utf-8")
    (line,) = re.findall(r"^\| in the code \| (.*) \|$", text, re.MULTILINE)
    source, folder = ROOT / "src" / "tabulary", Path()
    for name in re.findall(r"`([\w/.]+)`", line):
        path = source / name
        # After a folder, names of files are those in it.
        if "/" not in name:
            path = source / folder / name
        folder = Path(name) if name.endswith("/") else folder
        assert path.exists(), f"{name} is not there"


def test_every_user_has_a_page_that_orders_the_guides():
    guides = {Path(page).name for page in pages() if page.startswith("docs/how-to/")}
    landings = {name for name in guides if name.startswith("for-the-")}
    assert landings == {f"for-the-{user}.md" for user in ("custodian", "analyst", "agency", "researcher")}
    linked = {
        name for page in landings for name in re.findall(r"\]\(([\w-]+\.md)", read(f"docs/how-to/{page}"))
    }
    assert guides - landings <= linked, "a guide that no user is led to"
    front = read("docs/index.md")
    assert all(f"how-to/{name}" in front for name in landings)


def test_every_file_that_the_page_on_the_architecture_names_is_there():
    text = (EXPLANATION / "architecture.md").read_text(encoding="utf-8")
    named = re.findall(r"`([\w/]+\.py)`", text)
    assert len(named) > 30
    assert [name for name in named if not (ROOT / "src" / "tabulary" / name).is_file()] == []


def test_the_page_on_the_architecture_names_every_room():
    text = (EXPLANATION / "architecture.md").read_text(encoding="utf-8")
    rooms = {path.parent.name for path in (ROOT / "src" / "tabulary").glob("*/__init__.py")}
    assert rooms <= set(re.findall(r"`(\w+)`", text))
