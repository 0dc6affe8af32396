"""Run of one retriever over the queries of a benchmark: reuse, requests, timing, and records."""

from __future__ import annotations

import hashlib
import inspect
import json
import os
import platform
import re
import sys
import time
import types
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from hashlib import blake2b
from itertools import chain, islice
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

from rankgauge.benchmark.calls import Limits, TimeLimit, call_within, send_queries
from rankgauge.benchmark.journal import Journal, Response, query_keys
from rankgauge.benchmark.latency import Latency, measure_latency, measure_resources
from rankgauge.benchmark.progress import show_activity, show_progress
from rankgauge.benchmark.run import MOST_UNKNOWN, BenchmarkRun, IndexCost, tally_responses
from rankgauge.core.arguments import is_number
from rankgauge.core.provenance import versions
from rankgauge.core.text import many
from rankgauge.corpus.collection import Collection, Document, Query
from rankgauge.data.id_spelling import id_change
from rankgauge.data.qrels import Qrels
from rankgauge.data.subsets import drawn
from rankgauge.errors import InputError, RankgaugeError
from rankgauge.retrievers.protocol import (
    attempt,
    describe_error,
    has_index,
    has_parameter,
    holds,
    index_documents,
    indexing_seconds,
    settings_of,
)

_MOST_IDS = 5_000_000
# Number of retrieved ids, and of ids of a collection, above which no change of ids is searched for.
_ADVISED, _MOST_ADVISED = 5_000, 200_000
_RECORD_EVERY = 1.0  # seconds


@dataclass(eq=False)
class Corpus:
    """Documents of a benchmark, and the retriever that indexed them last."""

    collection: Collection
    progress: bool | None
    _indexed: tuple[Any, IndexCost] | None = None

    def __post_init__(self) -> None:
        self._source = _Documents(self.collection.documents)

    @cached_property
    def fingerprints(self) -> tuple[str, str]:
        """Fingerprints of the documents and of their order, which may determine ties."""
        collection = self.collection
        return (collection.documents_fingerprint, collection.order_fingerprint) if collection.documents else ("", "")

    @cached_property
    def ids(self) -> frozenset[str] | None:
        """Ids of the documents; None without documents or for too many to keep in memory."""
        documents = self.collection.documents
        return frozenset(documents) if 0 < len(documents) <= _MOST_IDS else None

    def index(self, retriever: Any, most: float | None) -> IndexCost | None:
        """Index the documents with a retriever, once, in at most ``most`` seconds."""
        if not has_index(retriever):
            return None
        # Another benchmark or a composite retriever may have indexed other documents with it.
        if self._indexed and self._indexed[0] is retriever and (holds(retriever, self._source) is not False):
            return self._indexed[1]
        where = f"{type(retriever).__name__}.index"
        if not self._source:
            raise InputError(
                "the retriever indexes documents, but the benchmark has none",
                where=where,
                fix="give the benchmark a collection with documents",
            )
        what = f"indexing {many(len(self._source), 'document')}"
        try:
            with show_activity(what, wanted=self.progress), measure_resources() as took:
                call_within(most, lambda: index_documents(retriever, self._source))
        except (RankgaugeError, KeyboardInterrupt):
            raise
        except TimeLimit:
            raise RankgaugeError(
                f"indexing took longer than {most:g} s and was abandoned",
                where=where,
                fix="raise the limit: Limits(index_timeout=...)",
            ) from None
        except BaseException as error:
            # Even SystemExit must not end the other runs.
            raise RankgaugeError(
                f"indexing failed: {describe_error(error)}",
                where=where,
                fix="fix the retriever; in Python, the traceback begins with its own error",
            ) from error
        size, recall = attribute_of(retriever, "size"), attribute_of(retriever, "recall")
        # The time includes parts that were indexed for another retriever; their memory is unknown,
        # because it was measured together with that retriever.
        seconds = indexing_seconds(retriever) or 0.0
        cost = IndexCost(
            seconds=max(took.seconds, seconds),
            size=size if isinstance(size, int) else None,
            peak=None if seconds > took.seconds else took.peak,
            recall=recall if isinstance(recall, float) else None,
        )
        self._indexed = (retriever, cost)
        return cost


@dataclass(frozen=True, eq=False)
class _Documents(Iterable[Document]):
    """Documents that can be iterated repeatedly: a single object, so that it is indexed once."""

    documents: Mapping[str, Document]

    def __iter__(self) -> Iterator[Document]:
        return iter(self.documents.values())

    def __len__(self) -> int:
        return len(self.documents)


@dataclass(eq=False)
class Session:
    """The run of one retriever.

    Attributes:
        corpus: The documents of the benchmark.
        k: The number of documents per query.
        qrels: The judgments.
        queries: The queries.
        store: The folder of all responses.
        keeper: The object that removes a temporary folder when it is garbage collected.
        name: The name of the run.
        retriever: The retriever.
        limits: Limits for its calls.
        settings: Settings given by the caller.
        identity: The identity of the retriever.
        folder: The folder of its responses.
    """

    corpus: Corpus
    k: int
    qrels: Qrels
    queries: Mapping[str, Query]
    store: Path
    keeper: object
    name: str
    retriever: Any
    limits: Limits
    settings: Mapping[str, Any] | None

    def __post_init__(self) -> None:
        self.identity = identify(self.retriever, self.settings, self.name)
        documents, order = self.corpus.fingerprints
        declared = {
            "documents": documents,
            "order": order,
            "k": self.k,
            "retriever": self.identity.settings,
            "declared": self.identity.declared,
        }
        text = json.dumps(declared, sort_keys=True, ensure_ascii=False)
        key = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:20]
        self.folder = self.store / f"{self.identity.word}-{key}"
        self._journal = Journal(self.folder, keeper=self.keeper)
        self._remarks: list[str] = []
        self._code = ""  # the hash of the files of a retriever without settings; empty if unknown
        self._reason = "same settings (declared)"  # why responses are reused

    def run(self, rerun: Rerun, timed: int, prices: Mapping[str, float]) -> BenchmarkRun:
        """Send the queries without a response, measure latency, and return the complete run."""
        queries = self.queries
        with self._journal as journal:
            journal.open(fresh=rerun == "all")
            self._decide_reuse(journal, rerun)
            reused = self._send(failed=rerun in {"failed", "resume"})
            if reused:
                here, where = Path.cwd(), journal.folder
                where = where.relative_to(here) if where.is_relative_to(here) else where
                self._remarks.append(
                    f"{reused} of {many(len(queries), 'response')} reused from {where}: {self._reason}"
                )
            self._time(timed)
            # Earlier responses count, too, and a failed query that was sent again counts once.
            responses = journal.responses(query_keys(queries))
            tally, failures = tally_responses(responses, self.corpus.ids, queries=len(queries), reused=reused)
            if tally.unknown > MOST_UNKNOWN * tally.hits and len(self.corpus.ids or ()) <= _MOST_ADVISED:
                tally = replace(tally, id_advice=self._id_advice())
            # A run with failures is incomplete: its responses are reused.
            finished = not (tally.failed or tally.missing)
            journal.note(finished=finished)
            if finished:
                journal.forget_earlier()
        head = journal.head
        index, kept = head.get("index"), head.get("latency")
        latency = None if kept is None else Latency(**kept)
        return BenchmarkRun(
            name=self.name,
            settings=self._settings(latency),
            qrels=self.qrels,
            tally=tally,
            failures=failures,
            latency=latency if timed else None,
            index=None if index is None else IndexCost(**index),
            seconds=head.get("seconds", 0.0),
            usage=head.get("usage", {}),
            asked=head.get("asked", 0),
            prices=prices,
            remarks=(*journal.notes, *self._remarks),
            journal=journal,
            queries=queries,
            stamp=head["stamp"],
        )

    def _id_advice(self) -> str:
        """Return how the retriever can return ids of the collection; empty if unknown."""
        responses = self._journal.responses(query_keys(self.queries))
        hits = (response.hits.ids for response in responses if response.hits is not None)
        ids, known = dict.fromkeys(islice(chain.from_iterable(hits), _ADVISED)), self.corpus.ids or ()
        advise = attribute_of(self.retriever, "id_advice")
        if callable(advise):
            return str(advise(ids, known))
        code, matched = id_change(ids, known)
        option = id_change(ids, known, "hit")[0] if has_parameter(type(self.retriever), "base") else "lambda"
        change = f"return {code}" if "lambda" in option else f"set {option}"
        return f"{change}: it would match {matched} of {many(len(ids), 'document')}" if code else ""

    def _decide_reuse(self, journal: Journal, rerun: Rerun) -> None:
        """Decide whether the responses in an open journal can be reused, and set the others aside.

        The journal of a retriever with settings contains only responses of the same settings, which
        are all reused. Without settings, responses are reused if the run was not finished, and they
        come from the same object in this process, or from another process in which the file that
        defines the retriever and the main script had the same contents. ``rerun="resume"`` reuses
        them in any case.
        """
        if self.identity.declared:
            return
        source, references = source_of(self.retriever), undescribed(self.retriever)
        self._code = source.digest if source else ""
        author, head = _AUTHORS.get(journal.head["stamp"]), journal.head
        why = ""
        if rerun == "resume":
            self._reason = 'requested (rerun="resume")'
            journal.take_back()
        elif head.get("finished") and rerun == "missing":
            why = "it declares no settings, and the run was finished"
        elif author is not None:
            self._reason = "unfinished run of the same object"
            why = "" if are_same(author, references) else "they are those of another object"
        elif source is None:
            why = "the file that defines it is unknown, has just changed, or belongs to a library"
        elif head.get("code") == source.digest:
            self._reason = (
                f"unfinished run; {source.name} and the main script are unchanged (nothing else was compared)"
            )
        else:
            why = f"{source.name}, which defines it, or the main script has changed"
        if why and journal.resumed:
            journal.set_aside()
            self._remarks.append(
                f"every query was run again: {why}; give it settings, or use "
                'rerun="resume" (--resume) if the earlier responses are still valid'
            )
        _AUTHORS[journal.head["stamp"]] = references
        journal.note(code=self._code)

    def _send(self, *, failed: bool) -> int:
        """Send the queries without a stored response; return how many have one."""
        journal, queries = self._journal, self.queries
        known = {query for query, _ in journal.known(failed=not failed) & query_keys(queries)}
        done = len(known)
        if done == len(queries):
            return done
        self._prepare()
        left = (query for query in queries.values() if query.id not in known)
        journal.note(
            finished=False,
            name=self.name,
            retriever=self.identity.settings,
            k=self.k,
            started=journal.head.get("started") or datetime.now(UTC).isoformat(timespec="seconds"),
            limits=self.limits.to_dict(),
        )
        costs = _UsageRecorder(self.retriever, journal)
        with show_progress(self.name, len(queries), done=done, wanted=self.corpus.progress) as bar:

            def record(response: Response) -> None:
                journal.append(response)
                costs.step()
                bar.step(failed=response.hits is None)

            try:
                send_queries(self.retriever, left, self.k, limits=self.limits, record=record)
            finally:
                costs.note()
        if costs.failure:
            self._remarks.append(f"WARNING: the cost of the queries is unknown: {costs.failure}")
        return done

    def _time(self, timed: int) -> None:
        """Send some queries one at a time, unless the journal contains their latency."""
        queries = self.queries
        kept = self._journal.head.get("latency") or {"seconds": {}, "failures": 0}
        # An earlier run with the same store may have timed other queries.
        same_queries = kept["seconds"].keys() <= queries.keys()
        timed_before = len(kept["seconds"]) + kept["failures"] if same_queries else 0
        # A saved run is not timed: it reads rankings from memory.
        if timed < 1 or self.identity.word == "saved-run" or timed_before >= min(timed, len(queries)):
            return
        self._prepare()
        # A fixed random sample: the first queries of a file are often similar.
        lot = drawn((query.encode() for query in queries), 0)[:timed]
        chosen = [queries[query.decode()] for query in lot]
        wanted = self.corpus.progress
        with show_progress(f"{self.name}: latency", len(chosen), wanted=wanted) as bar:
            latency = measure_latency(self.retriever, chosen, self.k, limits=self.limits, bar=bar)
        self._journal.note(latency=asdict(latency))

    def _prepare(self) -> None:
        """Index the documents, unless this process has already done so."""
        cost = self.corpus.index(self.retriever, self.limits.index_timeout)
        if cost is not None:
            self._journal.note(index=asdict(cost))

    def _settings(self, latency: Latency | None) -> Mapping[str, Any]:
        """Return the settings that produced the run."""
        head, collection = self._journal.head, self.corpus.collection
        timing = {"seconds": head.get("seconds", 0.0)}
        if latency is not None:
            timing["latency"] = latency.to_dict()
        if head.get("index"):
            timing["index"] = dict(head["index"])
        return {
            "retriever": {**self.identity.settings, **({"code": self._code} if self._code else {})},
            "k": self.k,
            "collection": {
                "name": collection.name,
                "documents": len(collection.documents),
                "queries": len(collection.queries),
                "fingerprint": self.corpus.fingerprints[0],
            },
            "limits": dict(head.get("limits", {})),
            "started": head.get("started", ""),
            "timing": timing,
            "versions": versions(),
            "machine": {"system": platform.system(), "processor": platform.machine(), "cores": os.cpu_count()},
        }


@dataclass(eq=False)
class _UsageRecorder:
    """Records time and usage of the queries in a journal, so that a killed process loses little.

    Attributes:
        failure: Why the usage is unknown; empty if it is known or not reported.
    """

    _retriever: Any
    _journal: Journal
    _asked: int = 0
    failure: str = ""

    def __post_init__(self) -> None:
        self._began = self._noted = time.monotonic()
        self._earlier = dict(self._journal.head)
        self._before = self._used()

    def step(self) -> None:
        """Count one response."""
        self._asked += 1
        if time.monotonic() - self._noted > _RECORD_EVERY:
            self.note()

    def note(self) -> None:
        """Record time, usage, and the number of responses that they cover."""
        self._noted = time.monotonic()
        earlier = self._earlier.get("usage", {})
        used = self._used()
        facts: dict[str, Any] = {"seconds": self._earlier.get("seconds", 0.0) + self._noted - self._began}
        if not self.failure:
            facts["usage"] = {
                unit: earlier.get(unit, 0) + amount - self._before.get(unit, 0) for unit, amount in used.items()
            }
            facts["asked"] = self._earlier.get("asked", 0) + self._asked
        self._journal.note(**facts)

    def _used(self) -> Mapping[str, float]:
        """Return the usage so far; empty if the retriever does not report it."""
        amounts, error = attempt(self._reported)
        if error is not None:
            self.failure = f"usage() failed: {describe_error(error)}"
            return {}
        for unit, amount in amounts.items():
            if type(unit) is not str or not is_number(amount):
                self.failure = f"usage() failed: got {amount!r:.40} for {unit!r:.40}, expected a number"
                return {}
        return amounts

    def _reported(self) -> Mapping[Any, Any]:
        usage = getattr(self._retriever, "usage", None)
        amounts = usage() if callable(usage) else {}
        return dict(amounts) if isinstance(amounts, Mapping) else {}


def attribute_of(retriever: Any, name: str) -> Any:
    """Return an optional attribute of a retriever; None if it is missing or fails."""
    return attempt(lambda: getattr(retriever, name, None))[0]


Rerun: TypeAlias = Literal["missing", "failed", "resume", "all"]
_STARTED = time.time()
_OWN = __name__.partition(".")[0]


class PartialSettings(dict[str, Any]):
    """Settings that do not identify a retriever completely, such as arguments of its factory.

    A change of these settings is noticed, but the retriever still counts as one without settings.
    """


@dataclass(frozen=True)
class Identity:
    """Identity of a retriever."""

    # Settings as plain values; without settings, the name of the callable and of the run.
    settings: Mapping[str, Any]
    declared: bool  # whether the retriever or the caller declared settings
    word: str  # a readable name for the folder


def identify(retriever: Any, settings: Mapping[str, Any] | None, run: str) -> Identity:
    """Return the identity of a retriever from its settings and those of the caller.

    Example:
        >>> identify(len, {"model": "e5"}, "dense").settings
        {'model': 'e5'}
        >>> identify(lambda text: [], None, "mine").declared
        False
    """
    named = retriever if hasattr(retriever, "__qualname__") else type(retriever)
    name = f"{named.__module__}.{named.__qualname__}"
    own = settings_of(retriever)
    partial = isinstance(settings, PartialSettings)
    if own is None and (settings is None or partial):
        return Identity({"callable": name, "run": run, **(settings or {})}, declared=False, word=_word(name))
    try:
        text = json.dumps({**(own or {}), **({} if partial else settings or {})}, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"the settings of the retriever are not plain values: {error}",
            where=name,
            fix="use text, finite numbers, lists, and mappings",
        ) from None
    plain = json.loads(text)
    return Identity(plain, declared=True, word=_word(str(plain.get("type", name))))


def _word(name: str) -> str:
    last = name.replace(".<lambda>", "lambda").rpartition(".")[2]
    return re.sub(r"[^A-Za-z0-9]+", "-", last).strip("-")[:40].lower() or "retriever"


class Source(NamedTuple):
    """The file that defines a retriever, and the main script, which may pass arguments to it."""

    name: str  # of the file
    digest: str  # hash of the contents of both


def source_of(retriever: Any) -> Source | None:
    """Return the file that defines a function, or the class of an object, and the main script.

    None without these files (in a notebook), if one has changed since this process started and may
    not be the code that runs, and for libraries, whose code is the same for different retrievers.

    Example:
        >>> source_of(max) is None
        True
    """
    try:
        unwrapped = inspect.unwrap(retriever)
        defined = unwrapped if inspect.isroutine(unwrapped) else type(unwrapped)
        path = Path(inspect.getsourcefile(defined) or "")
        main = Path(str(sys.modules["__main__"].__file__))
        files = [path, main] if main.is_file() else [path]  # not within rankgauge.exe
        top = defined.__module__.partition(".")[0]
        if (
            top == _OWN
            or top in sys.stdlib_module_names
            or {"site-packages", "dist-packages"}.intersection(path.parts)
            or any(file.stat().st_mtime > _STARTED for file in files)
        ):
            return None
        parts = [blake2b(file.read_bytes(), digest_size=16).digest() for file in files]
        return Source(path.name, blake2b(b"".join(parts), digest_size=16).hexdigest())
    except Exception:  # noqa: BLE001 - no file, or an object whose attributes raise anything
        return None


def undescribed(retriever: Any) -> list[Callable[[], Any]]:
    """Return weak references to the parts that settings may describe incompletely.

    The settings of our own classes are complete, except for their parts: other classes and callers
    may forget something. Two retrievers with equal settings and the same parts are the same.

    Example:
        >>> from rankgauge.retrievers import BM25, Hybrid
        >>> undescribed(Hybrid([BM25(), BM25(k1=1.2)]))
        []
    """
    if type(retriever).__module__.partition(".")[0] == _OWN and settings_of(retriever) is not None:
        return [reference for member in getattr(retriever, "members", ()) for reference in undescribed(member)]
    try:
        if isinstance(retriever, types.MethodType):  # lives only for the call
            return [weakref.WeakMethod(retriever)]
        return [weakref.ref(retriever)]
    except TypeError:  # cannot be referenced weakly
        return [lambda: retriever]


def are_same(ones: list[Callable[[], Any]], others: list[Callable[[], Any]]) -> bool:
    """Return whether two lists of references refer to the same objects, which still exist."""
    if len(ones) != len(others):
        return False
    pairs = ((reference(), other()) for reference, other in zip(ones, others, strict=True))
    return all(
        first is second or (type(first) is type(second) is types.MethodType and first == second)
        for first, second in pairs
    )


# Retrievers without settings whose responses this process stored or reused, by stamp of a journal.
_AUTHORS: dict[str, list[Callable[[], Any]]] = {}
