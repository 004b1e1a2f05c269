"""From a reader's batches to encoded records."""

import warnings
from collections.abc import Sequence

from tabulary.confidential.coding import Recoding
from tabulary.confidential.reading import Reader
from tabulary.confidential.store import MEMORY_BYTES, Store
from tabulary.confidential.validation import Validation, clipping_warning
from tabulary.confidential.weights import Weights
from tabulary.core.domain import Domain
from tabulary.errors import WeightsClipped

# The number of frames from `encode` to the caller of a constructor of `Records`, where the warning points.
_TO_THE_CALLER = 5


def encode(
    reader: Reader,
    domain: Domain,
    recodings: Sequence[Recoding],
    weights: Weights | None = None,
    *,
    memory_bytes: int = MEMORY_BYTES,
) -> Store:
    """Return the records of a reader, encoded; or refuse all of them (`validation`).

    Gives a `WeightsClipped` warning if the weight of a counted record was clipped.
    """
    validation = Validation(domain, recodings, weights)
    store = Store(
        domain.shape, largest_weight=weights.sensitivity if weights else None, memory_bytes=memory_bytes
    )
    try:
        for batch in reader.batches(recodings, weights.column if weights else None):
            admitted = validation.admit(batch)
            if admitted is not None:
                store.append(admitted)
        validation.found.check(domain, recodings, weights)
        store.finish()
        if weights is not None and validation.found.clipped:
            warnings.warn(clipping_warning(weights), WeightsClipped, stacklevel=_TO_THE_CALLER)
    except BaseException:
        store.close()
        raise
    return store
