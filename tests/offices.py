"""LibreOffice without windows: it opens a workbook and prints it, and poppler reads the paper."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

# Its own startup says this where no Java is installed; a spreadsheet needs none.
_OF_JAVA = "failed to launch javaldx"
_SECONDS = 180


def program(name: str) -> str:
    """Return the path of a program, or skip the test loudly where it is missing."""
    found = shutil.which(name)
    if found is None:
        pytest.skip(
            f"there is no {name}, so NO workbook was opened in an office: "
            "sudo apt-get install --yes libreoffice-calc fonts-liberation poppler-utils"
        )
    return found


def printed(workbook: Path, folder: Path) -> Path:
    """Return the PDF that LibreOffice prints of a workbook; fail if it warns of anything."""
    # A profile of its own: two offices that share one wait for each other.
    profile = (folder / "profile").as_uri()
    command = [program("soffice"), f"-env:UserInstallation={profile}", "--headless", "--norestore"]
    command += ["--convert-to", "pdf", "--outdir", str(folder), str(workbook)]
    environment = os.environ | {"HOME": str(folder), "LC_ALL": "C.UTF-8"}
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=_SECONDS, env=environment
    )
    said = [line for line in done.stderr.splitlines() if line.strip() and _OF_JAVA not in line]
    assert done.returncode == 0, said
    assert not said, said
    assert not re.search("error|warning|repair", done.stdout, re.IGNORECASE), done.stdout
    return folder / f"{workbook.stem}.pdf"


def pages(pdf: Path) -> list[str]:
    """Return the text of each page as it stands on the paper."""
    command = [program("pdftotext"), "-layout", str(pdf), "-"]
    text = subprocess.run(command, capture_output=True, text=True, check=True, timeout=_SECONDS).stdout
    return text.split("\f")[:-1]


def page_sizes(pdf: Path) -> list[tuple[int, int]]:
    """Return the width and height of each page in millimetres."""
    command = [program("pdfinfo"), "-f", "1", "-l", "-1", str(pdf)]
    told = subprocess.run(command, capture_output=True, text=True, check=True, timeout=_SECONDS).stdout
    points = re.findall(r"^Page +\d+ size: +([\d.]+) x ([\d.]+) pts", told, re.MULTILINE)
    return [(round(float(width) * 25.4 / 72), round(float(height) * 25.4 / 72)) for width, height in points]
