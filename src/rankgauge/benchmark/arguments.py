"""What is given to a benchmark, looked at before anything is done with it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from rankgauge.benchmark.limits import Limits
from rankgauge.errors import InputError

__all__ = ["check_k", "check_limits", "check_mapping", "check_name", "check_prices", "check_timed"]


def check_k(k: Any) -> None:
    """Refuse a depth that is none."""
    if not isinstance(k, int) or isinstance(k, bool) or k < 1:
        raise InputError(f"got {k!r:.40} for k", where="k", fix="give 1 or more")


def check_limits(limits: Any) -> None:
    """Refuse what is no :class:`Limits`."""
    if limits is not None and not isinstance(limits, Limits):
        raise InputError(
            f"got {limits!r:.60} for limits", where="limits",
            fix="give Limits(concurrency=8, timeout=10)",
        )  # fmt: skip


def check_timed(timed: Any) -> None:
    """Refuse a number of timed queries that is none."""
    if not isinstance(timed, int) or isinstance(timed, bool) or timed < 0:
        raise InputError(
            f"got {timed!r:.40} for timed", where="timed",
            fix="give how many queries are timed, 0 for none",
        )  # fmt: skip


def check_mapping(given: Any, name: str, such: str) -> None:
    """Refuse what is no mapping."""
    if given is not None and not isinstance(given, Mapping):
        raise InputError(
            f"got {given!r:.60} for {name}", where=name, fix=f"give a mapping, such as {such}"
        )


def check_prices(prices: Any) -> None:
    """Refuse prices that are no mapping of units to numbers."""
    check_mapping(prices, "prices", '{"tokens": 2e-8}')
    for unit, price in (prices or {}).items():
        number = isinstance(price, int | float) and not isinstance(price, bool)
        if not number or not 0 <= price < math.inf:
            raise InputError(
                f"got {price!r:.40} for the price of {unit!r:.40}", where="prices",
                fix="give the price of one unit, a number from 0 on",
            )  # fmt: skip


def check_name(name: Any) -> None:
    """Refuse what cannot be the name of a run."""
    if not isinstance(name, str) or not name:
        raise InputError(f"got {name!r:.60} for the name of a run", fix="give it as text")
