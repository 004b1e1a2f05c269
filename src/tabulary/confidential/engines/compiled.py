"""The engine that is always available: encoded records, in memory or in an unnamed file, counted in compiled code."""

from collections.abc import Mapping, Sequence

from tabulary.confidential.coding import Coding, resolve_all
from tabulary.confidential.dropping import dropping
from tabulary.confidential.encoding import encode
from tabulary.confidential.engines import Counts
from tabulary.confidential.fingerprint import fingerprint
from tabulary.confidential.reading import Reader
from tabulary.confidential.store import MEMORY_BYTES
from tabulary.confidential.weights import Weights, check_weights
from tabulary.core.domain import Domain, Margin
from tabulary.core.progress import Progress


class CompiledEngine:
    """The records of a reader, read once to the end and encoded; see `Engine`."""

    name = "compiled"

    def __init__(
        self,
        reader: Reader,
        domain: Domain,
        codings: Mapping[str, Coding] | None = None,
        *,
        weights: Weights | None = None,
        memory_bytes: int = MEMORY_BYTES,
    ) -> None:
        check_weights(weights)
        self.domain = domain
        self.weights = weights
        recodings = resolve_all(domain, codings)
        self.drops = dropping(codings)
        self.store = encode(reader, domain, recodings, weights, memory_bytes=memory_bytes)

    def count(self, margins: Sequence[Margin], *, progress: Progress | None = None) -> Counts:
        """Return the exact counts of each margin, or the exact sums of the weights; see `Engine.count`."""
        # Loading the compiler takes longer than starting Python, and planning never counts.
        from tabulary.confidential.counting import count

        return count(self.store, self.domain, margins, progress=progress)

    def fingerprint(self, key: bytes) -> str:
        """Return 32 digits that identify these records under a secret key (`confidential.fingerprint`)."""
        return fingerprint(self.store, self.domain, self.weights, key)

    def close(self) -> None:
        """Forget the records, in memory and on disk."""
        self.store.close()
