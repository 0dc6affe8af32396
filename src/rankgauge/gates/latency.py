"""Latency gate: two systems timed in the same job, query by query, never with stored numbers."""

from __future__ import annotations

import csv
import math
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

import numpy as np

from rankgauge import stats
from rankgauge.core.arguments import to_float
from rankgauge.core.files import read_text
from rankgauge.core.pair_table import FloatArray
from rankgauge.core.text import many, some
from rankgauge.errors import FormatError, InputError, MismatchError
from rankgauge.gates.result import GateCheck
from rankgauge.stats.arrays import blocks

_DRAWS = 10_000
_LEVEL, _SURE = 0.95, 0.99
_SHARES = {"p50": 0.5, "p95": 0.95}


def latency_checks(limits: Mapping[str, float], pair: tuple[Any, Any] | None) -> list[GateCheck]:
    """Check the ratio of new to baseline latency for each limited quantile.

    Queries are resampled with replacement, both systems together (paired bootstrap, 10,000 draws,
    seed derived from the data). PASS if the one-sided 95% upper bound of the ratio is below the
    limit; otherwise FAIL if its 99% lower bound is above 1; otherwise INCONCLUSIVE. A quantile q
    has an upper bound only if a query is likely to be above it: for n queries, if q^n is at most
    0.05 (5 queries for p50, 59 for p95).

    Args:
        limits: Largest accepted ratio by quantile (``p50``, ``p95``).
        pair: Latencies of baseline and new run, measured alternately in the same job: mappings of
            query to a time or to repeated times (their median is used), or paths of CSV files
            ``query,latency``. None if nothing was measured.

    Raises:
        InputError: If a latency is not a positive number, or latencies are given without a limit.
        MismatchError: If the two have different queries.
    """
    if pair is None:
        return [
            GateCheck(
                kind="latency",
                name=name,
                verdict="INCONCLUSIVE",
                sentence=f"latency {name} is limited by the rules, but was not measured",
                note="time both systems alternately in this job: --latency baseline.csv new.csv",
            )
            for name in limits
        ]
    if not limits:
        raise InputError(
            "latencies are given, but no rule limits them",
            where="rules",
            fix="write [latency], then p95 = 1.1 for at most 10% slower",
        )
    names = ("latency of the baseline", "latency of the new run")
    before, after = (_latencies(source, name) for source, name in zip(pair, names, strict=True))
    if before.keys() != after.keys():
        odd = sorted(before.keys() ^ after.keys())
        raise MismatchError(
            f"{many(len(odd), 'query')} were timed for only one of the two: {some(odd)}",
            where="latency",
            fix="time the same queries with both, alternately in the same job",
        )
    queries = sorted(before)
    times = np.array([[before[q] for q in queries], [after[q] for q in queries]])
    return [_check(name, limit, times) for name, limit in limits.items()]


def _check(name: str, limit: float, times: FloatArray) -> GateCheck:
    share, queries = _SHARES[name], times.shape[1]
    before, after = np.quantile(times, share, axis=1).tolist()
    text = f"latency {name}: {after:.4g} against {before:.4g}"
    fewest = math.ceil(math.log(1 - _LEVEL) / math.log(share))
    if queries < fewest:
        return GateCheck(
            "latency",
            name,
            "INCONCLUSIVE",
            f"{text}; {many(queries, 'query')} are too few for a bound, time {fewest} or more",
        )
    upper, lower = np.quantile(_drawn(times, share), [_LEVEL, 1 - _SURE]).tolist()
    verdict: Literal["PASS", "FAIL", "INCONCLUSIVE"] = "INCONCLUSIVE"
    message = f"a ratio above your limit of {limit:g} cannot be excluded; time more queries"
    if upper < limit:
        verdict, message = "PASS", f"a ratio above your limit of {limit:g} is excluded"
    elif lower > 1:
        verdict, message = "FAIL", f"it is slower, and a ratio above your limit of {limit:g} cannot be excluded"
    return GateCheck("latency", name, verdict, f"{text}: the ratio is between {lower:.3f} and {upper:.3f}; {message}")


def _drawn(times: FloatArray, share: float) -> FloatArray:
    """Return bootstrap ratios of the quantile, new to baseline."""
    queries = times.shape[1]
    rng = np.random.Generator(np.random.PCG64(stats.seed_of(times)))
    ratios = np.empty(_DRAWS)
    for start, count in blocks(_DRAWS, 2 * queries):
        rows = rng.integers(queries, size=(count, queries))
        before, after = (np.quantile(column[rows], share, axis=1) for column in times)
        ratios[start : start + count] = after / before
    return ratios


def _latencies(source: Any, name: str) -> dict[str, float]:
    if isinstance(source, str | os.PathLike):
        return _medians(_rows(Path(source)), str(source))
    if isinstance(source, Mapping):
        rows = (
            (str(query), time)
            for query, times in source.items()
            for time in (times if isinstance(times, Iterable) and not isinstance(times, str) else (times,))
        )
        return _medians(rows, name)
    raise InputError(
        f"got {type(source).__name__}", where=name, fix='pass a path, or a mapping of query to time: {"q1": 0.012}'
    )


def _rows(path: Path) -> Iterator[tuple[str, str]]:
    for number, row in enumerate(csv.reader(read_text(path).splitlines()), start=1):
        if not row or (number == 1 and math.isnan(to_float(row[-1]))):
            continue  # header
        if len(row) != 2:
            raise FormatError(
                f"{many(len(row), 'field')}, expected two",
                path=str(path),
                line=number,
                text=",".join(row)[:60],
                fix="write query,latency",
            )
        yield row[0], row[1]


def _medians(rows: Iterable[tuple[str, Any]], where: str) -> dict[str, float]:
    latencies: dict[str, list[float]] = {}
    for query, raw in rows:
        time = math.nan if isinstance(raw, bool) else to_float(raw)
        if not 0 < time < math.inf:
            raise InputError(
                f"query {query!r} took {raw!r}",
                where=where,
                fix="a latency is a number above 0, in the same unit throughout",
            )
        latencies.setdefault(query, []).append(time)
    if not latencies:
        raise InputError("there is no latency", where=where, fix="write query,latency lines")
    return {query: float(np.median(times)) for query, times in latencies.items()}
