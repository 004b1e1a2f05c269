"""Rules of the house that no linter knows."""

import re
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src" / "tabulary"


def test_random_numbers_of_numpy_are_used_for_people_who_do_not_exist_and_for_public_coins_only():
    users = {
        str(file.relative_to(SOURCE))
        for file in SOURCE.rglob("*.py")
        if re.search(
            r"np\.random|numpy\.random|^import random|^from random", file.read_text("utf-8"), re.MULTILINE
        )
    }
    coins = str(Path("suppress", "laws", "coins.py"))
    assert {user for user in users if Path(user).parts[0] != "datasets"} <= {coins}


def test_every_package_says_what_it_is_for():
    silent = [str(f) for f in SOURCE.rglob("__init__.py") if not f.read_text("utf-8").startswith('"""')]
    assert not silent


def test_every_error_stands_in_the_tree():
    text = (SOURCE / "errors.py").read_text("utf-8")
    tree = text.split('"""')[1]
    for name in re.findall(r"^class (\w+)", text, re.MULTILINE):
        assert re.search(rf"\b{name}\b", tree), name
