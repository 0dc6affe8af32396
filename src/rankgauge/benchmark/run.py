"""Run of one retriever: rankings, failures, latency, and cost."""

from __future__ import annotations

import json
import math
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

from rankgauge.benchmark.journal import Journal, Response, query_keys
from rankgauge.benchmark.latency import Latency
from rankgauge.comparison.comparison import COMPARED
from rankgauge.core.arguments import known_name
from rankgauge.core.files import write_atomically
from rankgauge.core.findings import INPUT_KINDS, Finding
from rankgauge.core.text import inflect, keep, many
from rankgauge.corpus.collection import Query
from rankgauge.data.qrels import Qrels, fingerprint
from rankgauge.data.run import Run, write_run
from rankgauge.errors import InputError
from rankgauge.evaluation.evaluation import evaluate
from rankgauge.evaluation.result import Evaluation
from rankgauge.measures.measure import Measure
from rankgauge.rendering.result import Result
from rankgauge.rendering.tables import Table

Errors: TypeAlias = Literal["raise", "empty"]
_BLOCK = 10_000
_LISTED = 1000
# Above this share of responses, a fault determines the mean.
MOST_UNKNOWN = 0.5


@dataclass(frozen=True)
class Failure:
    """A query without a valid response.

    Attributes:
        query: The query id.
        kind: ``error`` (the retriever raised an exception), ``timeout``, or ``response`` (the
            result is not a ranking).
        error: The error message.
        attempts: Number of attempts.
    """

    query: str
    kind: str
    error: str
    attempts: int


@dataclass(frozen=True)
class Tally:
    """Counts of the responses of a retriever.

    Attributes:
        queries: Number of queries.
        reused: Responses reused from the journal.
        failed: Queries without a valid response.
        missing: Queries not sent because of too many consecutive failures.
        empty: Queries with no results.
        repeated: Duplicate documents removed from rankings.
        beyond: Hits removed below rank k.
        unknown: Hits that are not in the collection; they keep their ranks and count as not
            relevant.
        ascending: Queries whose scores ascend in the original order.
        hits: Hits in the final rankings.
        id_advice: How to return ids of the collection, if most hits are not in it; empty if unknown.
    """

    queries: int = 0
    reused: int = 0
    failed: int = 0
    missing: int = 0
    empty: int = 0
    repeated: int = 0
    beyond: int = 0
    unknown: int = 0
    ascending: int = 0
    hits: int = 0
    id_advice: str = ""

    def findings(self, known: Iterable[Finding] = ()) -> tuple[Finding, ...]:
        """Return findings about the responses, and those of an evaluation whose fix is `id_advice`.

        Args:
            known: The findings of an evaluation of the run; they are not repeated.
        """
        answered = self.queries - self.failed - self.missing - self.empty
        same = [finding for finding in known if finding.code in {"P102", "P103"}]
        codes = {finding.code for finding in known} | ({"T104"} if same and self.id_advice else set())
        found = keep(
            self.unknown > MOST_UNKNOWN * self.hits
            and Finding(
                "T104",
                "error",
                f"{self.unknown} of {many(self.hits, 'hit')} are documents that are not in the collection",
                INPUT_KINDS["T104"].effect,
                self.id_advice or "return the ids of the documents passed to index()",
            ),
            self.ascending > MOST_UNKNOWN * answered
            and Finding(
                "R104",
                "error",
                "the scores look like distances (lower is better): they increase with rank for "
                f"{self.ascending} of {many(answered, 'query')}",
                INPUT_KINDS["R104"].effect,
                "negate them",
            ),
        )
        advised = [replace(finding, fix=self.id_advice) for finding in same if self.id_advice]
        return (*advised, *(finding for finding in found if finding.code not in codes))

    def notes(self) -> tuple[str, ...]:
        """Return notes on interpretation."""
        return keep(
            self.empty and f"no results for {many(self.empty, 'query')}",
            self.repeated and f"WARNING: {many(self.repeated, 'hit')} removed: a higher-ranked document repeated",
            self.beyond and f"{many(self.beyond, 'hit')} removed: ranked below k",
            self.unknown
            and f"WARNING: {many(self.unknown, 'hit')} not in the collection; they count as not relevant"
            + (f"; {self.id_advice}" if self.id_advice else ""),
            self.ascending
            and f"WARNING: the scores of {many(self.ascending, 'query')} increase with rank; "
            "if they are distances, the rankings are reversed: negate them",
        )


@dataclass(frozen=True)
class IndexCost:
    """Cost of indexing.

    Attributes:
        seconds: Wall-clock time, including that of parts indexed earlier.
        size: Bytes of the index, if reported by the retriever.
        peak: Peak memory of indexing in bytes, beyond that of the process before; None if unknown
            or if parts were indexed earlier.
        recall: Recall of approximate search compared with exact search, if reported by the
            retriever.
    """

    seconds: float = 0.0
    size: int | None = None
    peak: int | None = None
    recall: float | None = None


@dataclass(frozen=True)
class BenchmarkRun(Result):
    """Responses of a retriever to the queries of a benchmark. Returned by :meth:`Benchmark.run`.

    Rankings are kept in the journal and read when needed, so that a million queries fit in memory.

    Attributes:
        name: The name of the run.
        settings: Settings of the retriever, k, limits, hashes, versions, timing.
        qrels: The judgments of the queries.
        tally: Counts of the responses.
        failures: Queries without a valid response, at most the first 1,000.
        latency: The latency of single queries; None if not measured.
        index: The cost of indexing; None if the retriever has no index.
        seconds: Wall-clock time of the queries, over all sessions.
        usage: Usage of the queries, such as tokens, if reported by the retriever.
        asked: Number of responses that `usage` covers; a killed process loses up to the last
            second.
        prices: Prices per unit of usage.
        remarks: Notes on responses that were reused, requested again, or damaged.
        journal: The journal of the responses.
        queries: The queries by id.
        stamp: The identifier of this state of the journal, to detect later runs.
    """

    _attributes = (
        "name settings queries=tally.queries failed=tally.failed not_asked=tally.missing failures index usage "
        "cost_per_1000_queries=cost"
    )

    name: str
    settings: Mapping[str, Any]
    qrels: Qrels
    tally: Tally
    failures: tuple[Failure, ...] = ()
    latency: Latency | None = None
    index: IndexCost | None = None
    seconds: float = 0.0
    usage: Mapping[str, float] = field(default_factory=dict)
    asked: int = 0
    prices: Mapping[str, float] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()
    journal: Journal | None = field(default=None, repr=False)
    queries: Mapping[str, Query] = field(default_factory=dict, repr=False)
    stamp: str = field(default="", repr=False)

    def table(self) -> Table:
        """Return the numbers of queries and failures, the time, and the cost."""
        rows = (
            ("queries", self.tally.queries),
            ("failed", self.tally.failed + self.tally.missing),
            ("seconds", self.seconds),
            ("cost of 1,000 queries", self.cost),
        )
        return Table(("what", "value"), rows, title=self.name, notes=self.notes)

    def summary(self) -> str:
        """Return the conclusion in one or two sentences."""
        failed = self.tally.failed + self.tally.missing
        done = f"{self.name}: {many(self.tally.queries, 'query')} in {self.seconds:.1f} s"
        return f"{self._failure_text()}. {done}" if failed else done

    def _data(self) -> dict[str, Any]:
        latency = self.latency
        return super()._data() | {
            "latency": latency
            and {
                **{name: getattr(latency, name) for name in ("p50", "p95", "p99")},
                "queries": len(latency.seconds),
                "throughput": latency.throughput,
            }
        }

    @property
    def cost(self) -> float | None:
        """Price of 1,000 queries; None without a price for any of the usage."""
        priced = [self.usage[unit] * price for unit, price in self.prices.items() if unit in self.usage]
        return math.fsum(priced) / self.asked * 1000 if priced and self.asked else None

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes on interpretation."""
        failed = self.tally.failed + self.tally.missing
        return keep(failed and f"WARNING: {self._failure_text()}", *self.remarks, *self.tally.notes())

    def _failure_text(self) -> str:
        text = f"{self.tally.failed} of {many(self.tally.queries, 'query')} failed"
        if self.tally.missing:
            missing = self.tally.missing
            text += f", {missing} {inflect(missing, 'was', 'were')} not sent after too many consecutive failures"
        first = {failure.error: failure.query for failure in reversed(self.failures)}
        return text + "".join(f"; {query}: {error}" for error, query in [*reversed(first.items())][:2])

    def check(self, errors: Errors) -> None:
        """Raise an error for failed queries, unless they count as empty rankings.

        A run without any response has no numbers in either case.

        Raises:
            InputError: If queries failed and `errors` is ``raise``, or all queries failed.
        """
        known_name("errors", errors, get_args(Errors))
        lost = self.tally.failed + self.tally.missing
        if lost and (errors == "raise" or lost == self.tally.queries):
            # An invalid response does not change when it is requested again, unless the retriever does.
            kinds = {failure.kind for failure in self.failures}
            own = self.failures[0].error.partition("; fix: ")[2] if kinds == {"response"} else ""
            others = ', or count them as empty rankings (errors="empty", --errors empty)'
            raise InputError(
                self._failure_text(),
                where=f"run {self.name!r}",
                fix=(own if own and not self.tally.reused else 'run them again (rerun="failed", --failed)')
                + (others if lost < self.tally.queries else ""),
            )

    @cached_property
    def run(self) -> Run:
        """All rankings as a run, with queries in the order of the benchmark.

        Raises:
            InputError: If queries failed; :meth:`ranked` can count them as empty.
        """
        return self.ranked()

    def ranked(self, errors: Errors = "raise") -> Run:
        """Return all rankings as a run.

        Args:
            errors: ``raise`` to raise an error for failed queries; ``empty`` to count their
                rankings as empty.

        Raises:
            InputError: If queries failed and `errors` is ``raise``.
        """
        self.check(errors)
        rankings = {response.query: response.hits.pairs() for response in self._responses() if response.hits}
        ordered = {query: rankings.get(query, []) for query in self.queries}
        return Run.of(ordered, name=self.name, settings=self.settings)

    def blocks(self, errors: Errors = "raise") -> Iterator[Run]:
        """Yield the rankings in blocks of queries to save memory, for :func:`evaluate`.

        Raises:
            InputError: As for :meth:`ranked`.
        """
        self.check(errors)
        responses = (response for response in self._responses() if response.hits is not None)
        some: dict[str, Any] = {}
        for number, response in enumerate(responses, start=1):
            some[response.query] = response.hits.pairs() if response.hits else []
            if number % _BLOCK == 0:
                yield Run.of(some, name=self.name, settings=self.settings)
                some = {}
        if some or not self.tally.queries - self.tally.failed - self.tally.missing:
            yield Run.of(some, name=self.name, settings=self.settings)

    def evaluate(
        self, measures: str | Measure | Iterable[str | Measure] | None = None, *, errors: Errors = "raise"
    ) -> Evaluation:
        """Evaluate the rankings in blocks.

        Args:
            measures: Names or measures; default: those of :func:`compare`.
            errors: As for :meth:`ranked`.

        Raises:
            InputError: As for :meth:`ranked`.
        """
        evaluation = evaluate(self.qrels, self.blocks(errors), COMPARED if measures is None else measures)
        found = self.tally.findings(evaluation.input_findings) if self.tally.id_advice else ()
        return evaluation.with_findings(found) if found else evaluation

    def _responses(self) -> Iterator[Response]:
        if self.journal is None:
            return
        if self.journal.stamp() != self.stamp:
            raise InputError(
                "its journal was deleted, or replaced by a later run",
                where=f"run {self.name!r}",
                fix="use the latest run, or run it again",
            )
        count = 0
        for response in self.journal.responses(query_keys(self.queries)):
            count += 1
            yield response
        if count < self.tally.queries - self.tally.missing:
            lost = self.tally.queries - self.tally.missing - count
            raise InputError(
                f"{many(lost, 'response')} cannot be read: the journal is damaged",
                where=f"run {self.name!r}, {self.journal.folder}",
                fix="run it again: only the damaged responses are requested",
            )


def tally_responses(
    responses: Iterable[Response], documents: frozenset[str] | None, *, queries: int, reused: int
) -> tuple[Tally, tuple[Failure, ...]]:
    """Return the counts of the responses to this number of queries, and the first failures."""
    counts: Counter[str] = Counter(missing=queries)
    failures: list[Failure] = []
    for response in responses:
        counts["missing"] -= 1
        hits = response.hits
        if hits is None:
            counts["failed"] += 1
            if len(failures) < _LISTED:
                failures.append(Failure(response.query, response.kind, response.error, response.attempts))
            continue
        counts["empty"] += not hits.ids
        counts["repeated"] += hits.repeated
        counts["beyond"] += hits.beyond
        counts["ascending"] += hits.ascending
        counts["hits"] += len(hits)
        if documents is not None and not documents.issuperset(hits.ids):
            counts["unknown"] += sum(name not in documents for name in hits.ids)
    return Tally(queries=queries, reused=reused, id_advice="", **counts), tuple(failures)


# ---- a run as a file


def write_benchmark_run(
    run: BenchmarkRun, path: str | os.PathLike[str], *, errors: Errors = "raise", head: bool = True
) -> None:
    """Write the rankings as a TREC run, with metadata in a header (ir_metadata).

    The header is YAML in lines that begin with ``#``. :func:`rankgauge.read_run` skips these lines;
    trec_eval and other tools reject a file with a header.

    Args:
        run: A result of :meth:`Benchmark.run`.
        path: The file; with the extension ``.gz``, it is compressed and without a header.
        errors: ``raise`` to raise an error for failed queries; ``empty`` to count their
            rankings as empty.
        head: Whether to write the header.

    Raises:
        InputError: If the file cannot be written, or queries failed and `errors` is ``raise``.

    Source:
        T. Breuer, J. Keller, P. Schaer, ir_metadata: An Extensible Metadata Schema for IR
        Experiments, SIGIR 2022.
    """
    rankings = run.ranked(errors)
    write_run(rankings, path)
    target = Path(path)
    if not head or target.suffix == ".gz":
        return
    body = target.read_bytes()
    with write_atomically(target) as stream:
        stream.write(_metadata(run, rankings).encode() + body)


def _metadata(run: BenchmarkRun, rankings: Run) -> str:
    settings = run.settings
    machine, retriever = settings.get("machine", {}), settings.get("retriever", {})
    libraries = {**settings.get("versions", {}), **retriever.get("versions", {})}
    head = {
        "schema version": "0.1",
        "tag": run.name,
        "platform": {
            "hardware": {"cpu": machine.get("processor", ""), "cores": machine.get("cores")},
            "operating system": {"kernel": machine.get("system", "")},
            "software": {"libraries": [f"{name} {n}" for name, n in sorted(libraries.items())]},
        },
        "method": {
            "automatic": True,
            "retrieval": [{"name": run.name, "method": retriever.get("type", "callable"), "parameters": retriever}],
            "depth": settings.get("k"),
        },
        "data": {"test_collection": settings.get("collection", {})},
        "research goal": {"evaluation": {"timing": settings.get("timing", {})}},
        "run": {"sha256": fingerprint(rankings), "started": settings.get("started", "")},
    }
    # JSON is valid YAML.
    rows = (f"{key}: {json.dumps(value, default=str)}" for key, value in head.items())
    return "".join(f"# {row}\n" for row in ("ir_metadata.start", *rows, "ir_metadata.end"))
