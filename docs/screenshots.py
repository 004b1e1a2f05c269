"""Takes the pictures of the pages of a table builder: `python -m docs.screenshots`. Needs Chromium.

The builder is the demonstration, with a key that stands here, so that the pictures show the same numbers every time.
"""

import tempfile
from pathlib import Path

from tabulary.builder.configuration import read_service_file
from tabulary.builder.demonstration import write_demonstration
from tabulary.builder.opening import initialise, open_service
from tests.browsers import PHONE, chromium_browser, window
from tests.serving import served

IMAGES = Path(__file__).parent / "images"
NO_SECRET = bytes(range(32))
ASKED = "rows=employment&columns=sex&where=region:London"
# Few enough that noise dominates some of them.
FEW = "rows=employment&columns=birth_country&where=region:Wales"
COMPARED = "test=difference&first=employment:unemployed&first=sex:female&second=employment:unemployed&second=sex:male"
PICTURES = {
    "builder-choose.png": (f"/datasets/people?{ASKED}", "", {"viewport": {"width": 1200, "height": 820}}),
    "builder-table.png": (
        f"/datasets/people/table?{FEW}&chart=heat",
        "",
        {"viewport": {"width": 1150, "height": 880}},
    ),
    "builder-phone.png": (
        f"/datasets/people/table?{ASKED}&{COMPARED}",
        "section:has(#real)",
        {
            **PHONE,
            "viewport": {"width": 360, "height": 1000},
            "color_scheme": "dark",
            "device_scale_factor": 1.5,
        },
    ),
}


def main() -> None:
    """Write every picture."""
    with tempfile.TemporaryDirectory() as folder:
        file = write_demonstration(Path(folder))
        key = Path(folder) / "secret.key"
        key.write_text(NO_SECRET.hex(), "ascii")
        key.chmod(0o600)
        configured = read_service_file(file)
        initialise(configured)
        with served(open_service(configured)) as address, chromium_browser() as browser:
            for name, (path, part, look) in PICTURES.items():
                with window(browser, address, **look) as page:
                    page.goto(path)
                    (page.locator(part) if part else page).screenshot(path=IMAGES / name)
    print(f"Wrote {', '.join(PICTURES)} below {IMAGES}")


if __name__ == "__main__":
    main()
