"""Puts the tables and figures of finished studies into the page on what they say.

    python -m docs.findings study-sparse-tables study-rap …

The page names what it wants between two comments, `<!-- study sparse-tables: tables/01-table-7.csv -->` and
`<!-- end -->`, and a folder is that of the study its `study.json` names. Columns of a table may be chosen,
`…csv [table, n]`, and a figure is told in words, `…svg "What it shows"`. Numbers in tables are never typed.
"""

import csv
import json
import re
import shutil
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

PAGE = Path(__file__).parent / "explanation" / "what-we-found.md"
IMAGES = Path(__file__).parent / "images"
WANTED = re.compile(
    r"""<!-- study ([\w-]+): (\S+?)(?: \[(.+?)\])?(?: "(.+?)")? -->\n.*?<!-- end -->""", re.DOTALL
)


def filled(text: str, folders: Mapping[str, Path], place: Callable[[str, Path], str]) -> str:
    """Return the page with what the folders hold; what none of them holds stays as it is.

    `place` is given the name of a figure and its file, and returns the link to it.
    """

    def fill(found: re.Match[str]) -> str:
        study, name, columns, words = found.groups()
        if study not in folders:
            return found[0]
        head = found[0].split("\n")[0]
        file = folders[study] / name
        if file.suffix == ".svg":
            shown = f"![{words or file.stem}]({place(f'{study}-{file.stem}', file)})"
        else:
            shown = markdown_table(file.read_text(encoding="utf-8"), columns)
        return f"{head}\n{shown}\n<!-- end -->"

    return WANTED.sub(fill, text)


def markdown_table(text: str, columns: str | None = None) -> str:
    r"""Return a table in CSV as Markdown; `columns` names those to show, with commas between them.

    >>> print(markdown_table("table,n\nfungus,70\n"))
    | table | n |
    | --- | ---: |
    | fungus | 70 |
    """
    heads, *rows = csv.reader(text.splitlines())
    wanted = [heads.index(head.strip()) for head in columns.split(",")] if columns else range(len(heads))
    lines = [[row[place].replace("|", r"\|") for place in wanted] for row in (heads, *rows)]
    lines.insert(1, ["---"] + ["---:"] * (len(lines[0]) - 1))
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _copied(name: str, file: Path) -> str:
    shutil.copyfile(file, IMAGES / f"{name}.svg")
    return f"../images/{name}.svg"


def main() -> None:
    """Fill the page from the folders that the command line names."""
    folders = {json.loads((Path(f) / "study.json").read_text())["study"]: Path(f) for f in sys.argv[1:]}
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8"), folders, _copied), encoding="utf-8")


if __name__ == "__main__":
    main()
