"""What MkDocs does to a page before it is shown."""

import re
from typing import Any


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Return the page with its Python sessions marked as such, so that answers are not coloured as code."""
    return re.sub(r"^( *)```python(?=\n *>>> )", r"\1```pycon", markdown, flags=re.MULTILINE)
