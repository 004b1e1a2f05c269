"""The templates of every page of HTML, and the one style sheet that they share."""

from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jinja2 import Template


@cache
def page_template(name: str, package: str = "tabulary.release") -> "Template":
    """Return a template of a package, which may include those of `tabulary.release`, such as `page.css.j2`.

    Values are escaped, and a name without a value is an error.
    """
    from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

    packages = dict.fromkeys([package, "tabulary.release"])
    environment = Environment(
        loader=ChoiceLoader([PackageLoader(each) for each in packages]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    return environment.get_template(name)
