"""A cache with a limit in bytes: the value used longest ago is forgotten first."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

V = TypeVar("V")


MIB = 2**20
ARRAY, TABLE = 200, 500
"""Bytes that Python takes for an array beside its numbers, and for a small dict.

For tiles of a few cells, most of the kept bytes are these.
"""


class BoundedCache(Generic[V]):
    """Keep recent values up to a number of bytes; the newest value is kept whatever its size.

    limit: most bytes to keep.
    """

    def __init__(self, limit: int, size_of: Callable[[V], int]) -> None:
        self._limit = limit
        self._size_of = size_of
        self._values: OrderedDict[Hashable, V] = OrderedDict()
        self.bytes = 0

    def __contains__(self, key: Hashable) -> bool:
        return key in self._values

    def clear(self) -> None:
        """Forget everything."""
        self._values.clear()
        self.bytes = 0

    def get(self, key: Hashable, make: Callable[[], V]) -> V:
        """Return the value of `key`, made now if it is not kept."""
        if key in self._values:
            self._values.move_to_end(key)
            return self._values[key]
        value = self._values[key] = make()
        self.bytes += self._size_of(value)
        while self.bytes > self._limit and len(self._values) > 1:
            _, oldest = self._values.popitem(last=False)
            self.bytes -= self._size_of(oldest)
        return value
