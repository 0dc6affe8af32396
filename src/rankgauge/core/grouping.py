"""Groups of values."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import TypeVar

_K = TypeVar("_K", bound=Hashable)
_V = TypeVar("_V")


def group_values(pairs: Iterable[tuple[_K, _V]]) -> dict[_K, list[_V]]:
    """Return the values of each key, in their order.

    Example:
        >>> group_values([("q1", "a"), ("q2", "b"), ("q1", "c")])
        {'q1': ['a', 'c'], 'q2': ['b']}
    """
    groups: dict[_K, list[_V]] = {}
    for key, value in pairs:
        groups.setdefault(key, []).append(value)
    return groups
