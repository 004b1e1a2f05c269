"""Published results: released tables, the release, its folder, its report."""

from typing import TYPE_CHECKING

from tabulary.lazy import load_on_use

if TYPE_CHECKING:
    from tabulary.release.figure import whisker_svg
    from tabulary.release.folder import StagedFolder, staged_folder
    from tabulary.release.formats import expected_bytes
    from tabulary.release.heat_map import heat_map_svg
    from tabulary.release.mosaic import mosaic_svg
    from tabulary.release.publication import Publication
    from tabulary.release.release import Release
    from tabulary.release.signing import PublicKey, SigningKey
    from tabulary.release.table import ReleasedTable
    from tabulary.release.writers import FORMATS, Format

__all__ = [
    "FORMATS",
    "Format",
    "PublicKey",
    "Publication",
    "Release",
    "ReleasedTable",
    "SigningKey",
    "StagedFolder",
    "expected_bytes",
    "heat_map_svg",
    "mosaic_svg",
    "staged_folder",
    "whisker_svg",
]

load_on_use(__name__)
