"""What must not leave the place where it is."""

from typing import NoReturn, SupportsIndex


class Uncopyable:
    """Something confidential, or with a secret key: formatting shows its `repr` only, and nothing copies or pickles it.

    >>> import pickle
    >>> pickle.dumps(Uncopyable())
    Traceback (most recent call last):
    ...
    TypeError: Uncopyable is confidential: it cannot be pickled or copied.
    """

    __slots__ = ()

    def __format__(self, specification: str) -> str:
        return repr(self)

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        raise TypeError(f"{type(self).__name__} is confidential: it cannot be pickled or copied.")
