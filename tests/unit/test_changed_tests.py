import subprocess

import pytest

from tools import changed_tests
from tools.changed_tests import changed_files, choose


@pytest.fixture
def project(tmp_path):
    """A small project with a package that passes a name on, and tests that use it in several ways."""
    files = {
        "README.md": "",
        "docs/how-to/bake.md": "",
        "docs/reference/python/bread.md": "",
        "bench/speed.py": "",
        "papers/src/bakery_papers/rye.py": "",
        "src/bakery/__init__.py": "",
        "src/bakery/bread/__init__.py": "from bakery.bread.dough import knead\n",
        "src/bakery/bread/dough.py": "def knead(): ...\n",
        "src/bakery/oven.py": "",
        "tests/flour.py": "",
        "tests/unit/bread/test_dough.py": "from bakery.bread import dough\n",
        "tests/unit/bench/test_speed.py": "import json\n",
        "tests/unit/papers/test_rye.py": "",
        "tests/unit/test_oven.py": "import bakery.oven\nfrom tests.flour import wheat\n",
        "tests/functional/test_shop.py": "from bakery.bread import knead\n",
        "tests/functional/test_window.py": "from bakery.bread import slice\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.mark.parametrize(
    ("changed", "chosen"),
    [
        (
            "src/bakery/bread/dough.py",
            ["src/bakery/bread/dough.py", "tests/unit/bread/test_dough.py", "tests/functional/test_shop.py"],
        ),
        ("src/bakery/oven.py", ["src/bakery/oven.py", "tests/unit/test_oven.py"]),
        (
            "papers/src/bakery_papers/rye.py",
            ["papers/src/bakery_papers/rye.py", "tests/unit/papers/test_rye.py"],
        ),
        ("bench/speed.py", ["tests/unit/bench/test_speed.py"]),
        ("tests/flour.py", ["tests/unit/test_oven.py"]),
        ("tests/functional/test_window.py", ["tests/functional/test_window.py"]),
        ("README.md", ["README.md"]),
        ("docs/how-to/bake.md", ["docs/how-to/bake.md"]),
        ("docs/reference/python/bread.md", []),
        ("Makefile", []),
    ],
)
def test_the_tests_of_a_change_are_its_own_its_mirror_and_those_that_import_it(project, changed, chosen):
    assert choose([changed], project) == (chosen, [])


def test_what_many_tests_use_leaves_most_of_them_to_a_full_run(project, monkeypatch):
    monkeypatch.setattr(changed_tests, "MOST", 1)
    chosen, left_out = choose(["src/bakery/bread/dough.py", "tests/flour.py"], project)
    assert "tests/unit/bread/test_dough.py" in chosen
    assert left_out == ["tests/unit/test_oven.py"]


def test_what_changed_is_what_differs_from_main_and_what_git_does_not_know(project):
    def git(*arguments):
        who = ["-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "commit.gpgsign=false"]
        subprocess.run(["git", *who, *arguments], cwd=project, check=True, capture_output=True)

    git("init", "--initial-branch=main")
    git("add", ".")
    git("commit", "-m", "first")
    assert changed_files(project) == []
    (project / "README.md").write_text("uncommitted")
    assert changed_files(project) == ["README.md"]
    git("switch", "-c", "branch")
    git("commit", "-am", "second")
    (project / "new.py").write_text("")
    (project / "tests" / "flour.py").unlink()
    assert changed_files(project) == ["README.md", "new.py"]
