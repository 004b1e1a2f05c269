"""Those who wait for slow work, without a connection behind them."""

import asyncio

from tabulary.builder.working import WaitingCaller


class NamedCaller(WaitingCaller):
    """Someone of this name, who stays until told to go."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._leaving = asyncio.Event()

    @property
    def name(self) -> str:  # type: ignore[override]
        """The name."""
        return self._name

    def leave(self) -> None:
        """Go away."""
        self._leaving.set()

    async def gone(self) -> None:
        """Return once told to go."""
        await self._leaving.wait()
