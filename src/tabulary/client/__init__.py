"""The client of a table builder. Its tables work like tables from a release on disk."""

from typing import TYPE_CHECKING

from tabulary.lazy import load_on_use

if TYPE_CHECKING:
    from tabulary.client.dataset import RemoteDataset
    from tabulary.client.perturbed import RemoteCellKeyTable
    from tabulary.client.table_builder import TableBuilder, connect

__all__ = ["RemoteCellKeyTable", "RemoteDataset", "TableBuilder", "connect"]

load_on_use(__name__)
