"""Named things of one kind that can be added to: mechanisms, laws of noise, formats, studies.

The product registers its own. A program registers more with `Registry.register`. An installed package offers more as
entry points of the registry's group, which are loaded when a name is first looked up or all names are listed.
"""

from collections.abc import Iterator
from typing import Generic, TypeVar

from tabulary.errors import ExtensionError, listed

Thing = TypeVar("Thing")


class Registry(Generic[Thing]):
    """Things of one kind by their names, in the order in which they were registered.

    `kind` is the noun for messages. `group` names the entry points of other packages: `tabulary.mechanisms`,
    `tabulary.noise`, `tabulary.formats`, `tabulary.studies`.

    >>> colours = Registry[int]("colour", "tabulary.colours")
    >>> colours.register("red", 1)
    >>> colours["red"], "blue" in colours, list(colours)
    (1, False, ['red'])
    """

    def __init__(self, kind: str, group: str) -> None:
        self.kind = kind
        self.group = group
        self._things: dict[str, Thing] = {}
        self._discovered = False

    def register(self, name: str, thing: Thing) -> None:
        """Add a thing. A name is given once: two meanings of one name would make old releases unreadable."""
        if name in self._things and self._things[name] is not thing:
            raise ExtensionError(
                f"the {self.kind} {name!r} is registered already. Give the new one another name."
            )
        self._things[name] = thing

    def __contains__(self, name: object) -> bool:
        return name in self._things or (self._discover() and name in self._things)

    def __getitem__(self, name: str) -> Thing:
        if name not in self:
            raise ExtensionError(
                f"there is no {self.kind} {name!r}: {listed(self)} are known. If another package adds it, "
                "install that package."
            )
        return self._things[name]

    def __iter__(self) -> Iterator[str]:
        self._discover()
        return iter(tuple(self._things))

    def values(self) -> tuple[Thing, ...]:
        """Return the things, in the order of their names in `list`."""
        self._discover()
        return tuple(self._things.values())

    def __len__(self) -> int:
        self._discover()
        return len(self._things)

    def _discover(self) -> bool:
        """Load what installed packages offer, once."""
        if self._discovered:
            return False
        # Imported here, because most programs look up names of the product alone, and this import takes a moment.
        from importlib.metadata import entry_points

        # By name, so that the order depends on nothing else.
        for offered in sorted(entry_points(group=self.group), key=lambda each: each.name):
            try:
                thing = offered.load()
            except Exception as error:
                package = offered.value.split(":")[0]
                raise ExtensionError(
                    f"the {self.kind} {offered.name!r} of the installed package {package!r} cannot be loaded: "
                    f"{type(error).__name__}. Repair or remove that package."
                ) from error
            self.register(offered.name, thing)
        # Only now: a package that cannot be loaded is named at every look-up, not at the first alone.
        self._discovered = True
        return True
