"""How hard a retriever may be driven: concurrency, rate, time limit, retries, batches."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from rankgauge.errors import InputError

__all__ = ["Limits"]

_LONGEST_WAIT = 120.0


@dataclass(frozen=True)
class Limits:
    """How a retriever is asked. Immutable.

    Attributes:
        concurrency: How many calls may be under way at once.
        rate: At most so many calls begin in a second; None for no limit.
        timeout: Seconds a call may take; None for no limit. A synchronous callable that does not
            come back is left behind in its thread and counted: a thread cannot be killed. So is
            an event loop that an async callable holds up.
        index_timeout: Seconds ``index`` may take; None for no limit. With one it runs in a thread,
            which is left behind if it takes longer, and the retriever is not asked.
        retries: How often a call that failed is made again. Not again: what returned something that
            is no ranking, what raised an error with ``retryable = False``, and faults of the
            program itself (TypeError, KeyError, ZeroDivisionError and the like).
        backoff: Seconds before the first retry, doubled for each further one (at most two
            minutes); an error with ``retry_after`` says it itself.
        batch: Queries given to one call of ``search`` (32 if left out; 1 with a timeout), or to a
            callable that takes a list of texts and returns a list of rankings.
        stop_after: After so many failures in a row the rest is not asked; None to go on always.

    Example:
        >>> Limits(concurrency=8, timeout=2.5).retries
        2
    """

    concurrency: int = 1
    rate: float | None = None
    timeout: float | None = None
    index_timeout: float | None = None
    retries: int = 2
    backoff: float = 0.5
    batch: int | None = None
    stop_after: int | None = 20

    def __post_init__(self) -> None:
        for name, least in (("concurrency", 1), ("retries", 0), ("batch", 1), ("stop_after", 1)):
            value = getattr(self, name)
            if value is None and name in {"batch", "stop_after"}:
                continue
            if not isinstance(value, int) or isinstance(value, bool) or value < least:
                raise _refused(name, value, f"a whole number, {least} or more")
        for name in ("rate", "timeout", "index_timeout", "backoff"):
            value = getattr(self, name)
            if value is None and name != "backoff":
                continue
            number = isinstance(value, int | float) and not isinstance(value, bool)
            if (
                not number
                or not math.isfinite(value)
                or value < 0
                or (name != "backoff" and not value)
            ):
                raise _refused(name, value, "a number above 0")

    def wait(self, attempts: int, error: BaseException | None) -> float:
        """Seconds to wait before the next attempt, after so many."""
        said = getattr(error, "retry_after", None)
        if isinstance(said, int | float) and math.isfinite(said) and said >= 0:
            return min(float(said), _LONGEST_WAIT)
        return float(min(self.backoff * 2.0 ** (attempts - 1), _LONGEST_WAIT))

    def record(self) -> Mapping[str, Any]:
        """The limits as plain values, those that are set."""
        return {name: value for name, value in asdict(self).items() if value is not None}


def _refused(name: str, value: Any, wanted: str) -> InputError:
    return InputError(
        f"got {value!r:.40} for {name}, wanted {wanted}", where=name,
        fix=f"leave {name} out for its default, or give {wanted}",
    )  # fmt: skip
