"""Retrievers asked the same queries over the same documents, held against the same judgments."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import platform
import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, TypeAlias, get_args

from rankgauge.benchmark.arguments import (
    check_k,
    check_limits,
    check_mapping,
    check_name,
    check_prices,
    check_timed,
)
from rankgauge.benchmark.code_hash import CodeFingerprint, code_fingerprint
from rankgauge.benchmark.comparison import BenchmarkComparison, compare_runs
from rankgauge.benchmark.costs import Spending
from rankgauge.benchmark.execution import TimeLimit, ask, call_within
from rankgauge.benchmark.identity import identity_of
from rankgauge.benchmark.journal import Answer, Journal, query_key
from rankgauge.benchmark.latency import Latency, measure_latency, used
from rankgauge.benchmark.limits import Limits
from rankgauge.benchmark.progress import busy, shown
from rankgauge.benchmark.run import (
    BenchmarkRun,
    Counting,
    Errors,
    Failure,
    IndexCost,
    Tally,
    answers_to,
)
from rankgauge.comparison.differences import Design
from rankgauge.core.grammar import unknown
from rankgauge.core.ids import id_bytes
from rankgauge.core.provenance import versions
from rankgauge.core.text import many, some
from rankgauge.corpus.collection import Collection, Document, Query
from rankgauge.data.model import Qrels, Run
from rankgauge.data.subsets import drawn
from rankgauge.errors import InputError, RankgaugeError
from rankgauge.measures.measure import Measure
from rankgauge.retrievers.protocol import (
    answers_of,
    describe_error,
    has_index,
    holds,
    index_documents,
    indexing_seconds,
)

__all__ = ["Again", "Benchmark"]

Again: TypeAlias = Literal["missing", "failed", "resume", "all"]
_TIMED = 200
_RESUMED = 'asked for (again="resume")'
_SAVED = "saved-run"  # reading it from memory is no latency
_MOST_IDS = 5_000_000


class Benchmark:
    """A collection and its judgments, over which retrievers are run and compared.

    Args:
        collection: Documents and queries: a :class:`Collection`, or what :meth:`Collection.load`
            reads. Nothing if queries are added one by one and retrievers have their documents.
        qrels: The judgments: anything that :meth:`Qrels.of` takes; those of the collection if left
            out.
        k: How many documents are asked for.
        store: The folder where answers are kept: a run that was interrupted goes on from there, and
            one that was made before is not made again. A temporary one if left out.
        limits: How retrievers may be driven, unless :meth:`run` is told otherwise.
        progress: Whether to show a bar; where standard error is a terminal if left out.

    Example:
        >>> bench = Benchmark(k=3)
        >>> bench.add_query("q1", "late fees", {"fees", "loans"})
        >>> bench.run("lookup", lambda text: ["fees", "hours"], timed=0).evaluate("R@3").mean()
        {'R@3': 0.5}
    """

    def __init__(
        self,
        collection: Any = None,
        qrels: Any = None,
        *,
        k: int = 100,
        store: str | os.PathLike[str] | None = None,
        limits: Limits | None = None,
        progress: bool | None = None,
    ) -> None:
        check_k(k)
        check_limits(limits)
        self.collection = Collection() if collection is None else _collection(collection)
        self.k = k
        self.limits = Limits() if limits is None else limits
        self.progress = progress
        given = self.collection.qrels if qrels is None else qrels
        self._given = None if given is None else Qrels.of(given)
        self._added: dict[str, Query] = {}
        self._grades: dict[str, dict[str, float]] = {}
        self._runs: dict[str, BenchmarkRun] = {}
        self._indexed: tuple[Any, IndexCost] | None = None
        self._keeper: _Temporary | None = None
        if store is None:
            self._keeper = _Temporary()
            store = self._keeper.folder
        if not isinstance(store, str | os.PathLike):
            raise InputError(
                f"got {store!r:.60} for the store", where="store", fix="give the path of a folder"
            )
        self.store = Path(store)

    def __repr__(self) -> str:
        return (
            f"<Benchmark: {many(len(self.queries), 'query')}, "
            f"{many(len(self.collection.documents), 'document')}, {many(len(self._runs), 'run')}>"
        )

    # ---- what is asked, and what should be found

    def add_query(self, query_id: Any, text: str, relevant: Any) -> None:
        """Add a query.

        Args:
            query_id: Its id; one that is there already is refused.
            text: What is asked.
            relevant: The ids of the relevant documents, or a mapping of document id to grade.

        Raises:
            InputError: If the id is there already, or anything is of the wrong kind.
        """
        if not isinstance(text, str):
            raise InputError(
                f"got {text!r:.60} for the text of a query", where=f"query {query_id!r}",
                fix="give it as text",
            )  # fmt: skip
        if isinstance(relevant, str | bytes) or not isinstance(relevant, Iterable):
            raise InputError(
                f"got {relevant!r:.60} for the relevant documents", where=f"query {query_id!r}",
                fix='give a list of ids, ["d1", "d2"], or grades, {"d1": 2, "d2": 1}',
            )  # fmt: skip
        graded = relevant if isinstance(relevant, Mapping) else dict.fromkeys(relevant, 1)
        id_bytes(query_id, "query id")
        truth = Qrels.of({query_id: graded})
        name = truth.query_ids[0]
        if name in self._added or name in self.collection.queries or name in (self._given or ()):
            raise InputError(
                f"query {name!r} is there already", where="add_query",
                fix="give every query an id of its own",
            )  # fmt: skip
        self._added[name] = Query(name, text)
        self._grades[name] = dict(truth[name])
        self.__dict__.pop("_truth", None)

    @cached_property
    def _truth(self) -> tuple[Qrels, Mapping[str, Query]]:
        """The judgments, and the queries that have some and a text."""
        given = self._given
        if not self._added:
            qrels = Qrels.of({}) if given is None else given
        elif given is None:
            qrels = Qrels.of(self._grades)
        else:
            qrels = Qrels.of({**{query: given[query] for query in given}, **self._grades})
        texts = self.collection.queries
        asked = {
            query: self._added.get(query) or texts[query]
            for query in qrels
            if query in self._added or query in texts
        }
        if len(asked) < len(qrels):
            qrels = Qrels.of({query: qrels[query] for query in asked})
        return qrels, MappingProxyType(asked)

    @property
    def qrels(self) -> Qrels:
        """The judgments of the queries that are asked."""
        return self._truth[0]

    @property
    def queries(self) -> Mapping[str, Query]:
        """The queries that are asked, which are those that have judgments and a text."""
        return self._truth[1]

    @property
    def runs(self) -> Mapping[str, BenchmarkRun]:
        """The runs made so far, by name."""
        return MappingProxyType(self._runs)

    @property
    def notes(self) -> tuple[str, ...]:
        """What was left out of what was given."""
        found = []
        if self._given is not None:
            bare = [query for query in self._given if query not in self.queries]
            if bare:
                found.append(
                    f"WARNING: {many(len(bare), 'query')} with judgments have no text and were not "
                    f"asked: {some(bare)}"
                )
        others = sum(query not in self.queries for query in self.collection.queries)
        if others:
            found.append(f"not asked, because they have no judgments: {many(others, 'query')}")
        return tuple(found)

    # ---- asking

    def run(
        self,
        name: str,
        retriever: Any,
        *,
        settings: Mapping[str, Any] | None = None,
        limits: Limits | None = None,
        again: Again = "missing",
        timed: int = _TIMED,
        prices: Mapping[str, float] | None = None,
    ) -> BenchmarkRun:
        """Ask a retriever every query, and keep what it answers.

        Whatever goes wrong with a query is recorded, see ``failures`` of the result. Interrupted
        at any moment, it goes on where it stopped when it is called again with the same store.

        Args:
            name: What the run is called in tables; one that is there already is replaced.
            retriever: An object with ``index`` and ``search`` (:class:`Retriever`), or a callable
                of a text that returns ids, pairs of id and score, or documents with an id, best
                first; either may be async. Or a saved run: a :class:`Run`, or the path of its file.
            settings: What tells this retriever from others, where it does not say so itself. With
                settings, answers that are in the store are used again; without, only those of a run
                that was not finished, and only if its code and the values it uses are the same;
                code that may read anything else, such as a file, is the same only as one object
                in one process.
            limits: How it may be driven.
            again: Which queries are asked: those ``missing`` in the store, those and the ``failed``
                ones, or ``all``. ``resume`` is ``failed`` for a retriever without settings of which
                you know that its answers in the store are still right: all of them are used.
            timed: So many queries are asked once more after that, one at a time, for the latency; 0
                for none.
            prices: The price of a unit of what the retriever says it uses up (``usage()``), such as
                ``{"tokens": 2e-8}``.

        Raises:
            InputError: If there is nothing to ask, the retriever is none, the store cannot be
                written, or another process is writing it.
        """
        if again not in get_args(Again):
            raise unknown("again", again, get_args(Again))
        check_name(name)
        check_limits(limits)
        check_timed(timed)
        check_mapping(settings, "settings", '{"model": "e5"}')
        check_prices(prices)
        if not self.queries:
            raise InputError(
                "the benchmark has no query with judgments "
                f"({len(self.collection.queries)} without)", where=f"run {name!r}",
                fix="give a collection with queries and judgments (in a folder: questions.csv with "
                "the columns question and relevant), or call add_query()",
            )  # fmt: skip
        asked = _Asked(self, name, _retriever(retriever), limits or self.limits, settings)
        made = asked.run(again, timed, dict(prices or {}))
        self._runs[name] = made
        return made

    def runner(self, *, timed: int = 50) -> Callable[[str, Any], tuple[Run, float | None]]:
        """A function that runs a retriever and returns its rankings and its median latency.

        It is what :func:`explore` wants. Answers are kept in the store; :attr:`runs` is left alone.

        Args:
            timed: So many queries are timed; 0 for none.

        Example:
            >>> bench = Benchmark(k=3)
            >>> bench.add_query("q1", "late fees", {"fees"})
            >>> run, seconds = bench.runner(timed=0)("mine", lambda text: ["fees"])
            >>> run["q1"], seconds
            ({'fees': 1.0}, None)
        """

        def run(name: str, retriever: Any) -> tuple[Run, float | None]:
            asked = _Asked(self, name, retriever, self.limits, None)
            # Its name is a number, and tells nothing of the configuration.
            made = asked.run("missing" if asked.identity.declared else "all", timed, {})
            close = _attribute(retriever, "close")
            if callable(close):
                with contextlib.suppress(Exception):  # what it answered is there, whatever it does
                    close()
            median = None if made.latency is None else made.latency.p50
            return made.ranked(), None if median is None else median.value

        return run

    def compare(
        self,
        measures: str | Measure | Iterable[str | Measure] | None = None,
        *,
        baseline: str | None = None,
        design: Design | None = None,
        errors: Errors = "refuse",
    ) -> BenchmarkComparison:
        """Compare the runs made so far: quality, latency and cost side by side.

        Args:
            measures: What is shown; the first one is tested. As for :func:`compare` if left out.
            baseline: The name of the run the others are held against; the first if left out.
            design: How differences are tested, where that is not the first measure by the default
                test; it names the baseline itself.
            errors: ``refuse`` runs in which queries failed, or take their rankings as ``empty``.

        Raises:
            InputError: With fewer than two runs, runs over other queries, or failures that are
                refused.
        """
        if baseline is not None and baseline not in self._runs:
            raise unknown("run", baseline, self._runs)
        runs = tuple(self._runs.values())
        return compare_runs(runs, measures, baseline=baseline, design=design, errors=errors)

    @property
    def _documents(self) -> str:
        """The fingerprint of the documents; empty where there are none."""
        return self.collection.documents_fingerprint if self.collection.documents else ""

    @property
    def _order(self) -> str:
        """The fingerprint of their order: an index may break ties by it."""
        return self.collection.order_fingerprint if self.collection.documents else ""

    @cached_property
    def _source(self) -> _Documents:
        """What retrievers index: one object, so that a part of several is indexed once."""
        return _Documents(self.collection.documents)

    @cached_property
    def _ids(self) -> frozenset[str] | None:
        """The ids of the documents, where there are some, and not too many to hold."""
        documents = self.collection.documents
        return frozenset(documents) if 0 < len(documents) <= _MOST_IDS else None

    def _index(self, retriever: Any, most: float | None) -> IndexCost | None:
        """Have a retriever take in the documents, once, in so many seconds at most."""
        if not has_index(retriever):
            return None
        known = self._indexed is not None and self._indexed[0] is retriever
        # Another benchmark, or a retriever it is part of, may have given it other documents.
        if known and self._indexed is not None and holds(retriever, self._source) is not False:
            return self._indexed[1]
        if not self.collection.documents:
            raise InputError(
                "the retriever wants to index documents, and the benchmark has none",
                where=f"{type(retriever).__name__}.index",
                fix="give the benchmark a collection with documents",
            )
        what = f"indexing {many(len(self.collection.documents), 'document')}"
        try:
            with busy(what, wanted=self.progress), used() as took:
                call_within(most, lambda: index_documents(retriever, self._source))
        except (RankgaugeError, KeyboardInterrupt):
            raise
        except TimeLimit:
            raise RankgaugeError(
                f"indexing took longer than {most:g} s and was left behind",
                where=f"{type(retriever).__name__}.index",
                fix="give it more time: Limits(index_timeout=...)",
            ) from None
        except BaseException as error:
            # Also SystemExit: it is the retriever that ends, and not what runs several.
            raise RankgaugeError(
                f"indexing failed: {describe_error(error)}",
                where=f"{type(retriever).__name__}.index",
                fix="see the error above this one in the traceback, raised by the retriever",
            ) from error
        size = _attribute(retriever, "size")
        # Parts that were indexed for another retriever are paid for here as well, in time; what
        # memory they took then was measured together with other things.
        seconds = indexing_seconds(retriever) or 0.0
        recall = _attribute(retriever, "recall")
        cost = IndexCost(
            seconds=max(took.seconds, seconds),
            size=size if isinstance(size, int) else None,
            peak=None if seconds > took.seconds else took.peak,
            recall=recall if isinstance(recall, float) else None,
        )
        self._indexed = (retriever, cost)
        return cost


class _Temporary:
    """A folder that is removed when nobody needs it any more: the benchmark, or a run of it."""

    def __init__(self) -> None:
        self.folder = tempfile.mkdtemp(prefix="rankgauge-")
        weakref.finalize(self, shutil.rmtree, self.folder, ignore_errors=True)


class _Documents(Iterable[Document]):
    """Documents that can be iterated again and again, whatever mapping holds them."""

    def __init__(self, documents: Mapping[str, Document]) -> None:
        self._documents = documents

    def __iter__(self) -> Iterator[Document]:
        return iter(self._documents.values())

    def __len__(self) -> int:
        return len(self._documents)


class _Asked:
    """One retriever and one benchmark, for the time of a run."""

    def __init__(  # noqa: PLR0917 - what a run needs, all of it
        self,
        bench: Benchmark,
        name: str,
        retriever: Any,
        limits: Limits,
        settings: Mapping[str, Any] | None,
    ) -> None:
        self.bench = bench
        self.name = name
        self.retriever = retriever
        self.limits = limits
        self.identity = identity_of(retriever, settings, name)
        said = {
            "documents": bench._documents,  # noqa: SLF001 - one thing in two classes
            "order": bench._order,  # noqa: SLF001 - the same
            "k": bench.k,
            "retriever": self.identity.settings,
            "declared": self.identity.declared,
        }
        text = json.dumps(said, sort_keys=True, ensure_ascii=False)
        key = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:20]
        folder = bench.store / f"{self.identity.word}-{key}"
        self.journal = Journal(folder, k=bench.k, keeper=bench._keeper)  # noqa: SLF001 - the same
        self.counting = Counting(bench._ids)  # noqa: SLF001 - the same
        self.index: IndexCost | None = None
        self.remarks: list[str] = []
        # Of a retriever that declares no settings: what it is now, and was when the run was begun.
        self.code: CodeFingerprint | None = None
        self.origin = ""
        self.prepared = False

    def run(self, again: Again, timed: int, prices: Mapping[str, float]) -> BenchmarkRun:
        """Ask what is to be asked, time it, and say what came of it."""
        queries = self.bench.queries
        with self.journal as journal:
            journal.open()
            if again == "all":
                journal.close()
                journal.open(fresh=True)
            if not self.identity.declared:
                self._compare_code(again)
            why = "same settings (declared)"
            if not self.identity.declared:
                why = _RESUMED if again == "resume" else "unfinished run of the same code"
            try:
                reused = self._ask(queries, failed=again in {"failed", "resume"})
                if reused:
                    self.remarks.append(
                        f"{reused} of {many(len(queries), 'answer')} reused from {journal.folder}: "
                        f"{why}"
                    )
                self._time(queries, timed)
            finally:
                self._note_code()
            tally, failures = self._counted(reused)
            # With failures there is something left to do: what was answered is used again.
            finished = not (tally.failed or tally.missing)
            journal.note(finished=finished)
            if finished:
                journal.forget_earlier()
        head = journal.head
        index = head.get("index")
        return BenchmarkRun(
            name=self.name,
            settings=self._settings(head),
            qrels=self.bench.qrels,
            tally=tally,
            failures=failures,
            latency=_latency(head, journal.folder) if timed else None,
            index=None if index is None else IndexCost(**index),
            seconds=head.get("seconds", 0.0),
            usage=head.get("usage", {}),
            asked=head.get("asked", 0),
            prices=prices,
            remarks=(*journal.notes, *self.remarks),
            journal=journal,
            queries=queries,
            stamp=head["stamp"],
        )

    def _compare_code(self, again: Again) -> None:
        """Set aside answers of a retriever that may have been another then."""
        journal = self.journal
        self.code = code_fingerprint(self.retriever)
        known = journal.head.get("code")
        if again == "resume":
            journal.take_back()
        elif journal.resumed:
            if not isinstance(known, list) or self.code.digest not in known:
                why = "its code, or a value that it uses, is not the same as before"
                if self.code.opaque:
                    why = f"it uses {self.code.opaque}, which cannot be compared between processes"
            elif journal.head.get("finished") and again == "missing":
                why = "it declares no settings, and the run was finished"
            else:
                self.origin = known[0]
                return
            journal.set_aside()
            self.remarks.append(
                f"every query was asked anew: {why}; give it settings, or use "
                'again="resume" (--resume) where the earlier answers are right'
            )
        self.origin = self.code.digest

    def _note_code(self) -> None:
        """Note what the code was at first and is now: asking may have changed what it holds."""
        if self.code is not None and self.prepared:
            now = code_fingerprint(self.retriever)
            self.journal.note(code=[self.origin, now.digest])

    def _ask(self, queries: Mapping[str, Query], *, failed: bool) -> int:
        """Ask those queries that have no answer yet; how many had one."""
        journal = self.journal
        known = journal.known(failed=not failed)
        missing = len(queries)
        if known:
            missing = sum((one.id, query_key(one)) not in known for one in queries.values())
        if not missing:
            return len(queries)
        self._prepare()
        left = (
            one for one in queries.values() if not known or (one.id, query_key(one)) not in known
        )
        journal.note(
            finished=False, name=self.name, retriever=self.identity.settings, k=self.bench.k,
            started=journal.head.get("started") or _now(), limits=self.limits.record(),
        )  # fmt: skip
        spending = Spending(self.retriever, journal)
        done = len(queries) - missing
        with shown(self.name, len(queries), done=done, wanted=self.bench.progress) as bar:

            def record(answer: Answer) -> None:
                journal.append(answer)
                self.counting.add(answer)
                spending.step()
                bar.step(failed=answer.hits is None)

            try:
                ask(self.retriever, left, self.bench.k, limits=self.limits, record=record)
            finally:
                spending.note()
        if spending.failure:
            self.remarks.append(
                f"WARNING: what the queries used up is not known: {spending.failure}"
            )
        return done

    def _counted(self, reused: int) -> tuple[Tally, tuple[Failure, ...]]:
        queries = self.bench.queries
        counting = self.counting
        if reused:
            # Also what stood there before; and a failure that was asked again counts once.
            counting = Counting(self.bench._ids)  # noqa: SLF001 - as above
            for answer in self.journal.answers(answers_to(queries)):
                counting.add(answer)
        return counting.result(len(queries), reused)

    def _time(self, queries: Mapping[str, Query], timed: int) -> None:
        """Ask some queries one at a time, unless their latency is in the journal already."""
        kept = self.journal.head.get("latency")
        if kept and not kept["seconds"].keys() <= queries.keys():
            kept = None  # they are of other queries, asked with the same store
        if timed < 1 or self.identity.word == _SAVED or (
            kept and len(kept["seconds"]) + kept["failures"] >= min(timed, len(queries))
        ):  # fmt: skip
            return
        self._prepare()
        # By lot, the same each time: the first ones of a file are often of one kind.
        lot = drawn((query.encode() for query in queries), 0)[:timed]
        chosen = [queries[query.decode()] for query in lot]
        with shown(
            f"{self.name}: latency", len(chosen), wanted=self.bench.progress, between=True
        ) as bar:
            found = measure_latency(
                self.retriever, chosen, self.bench.k, limits=self.limits, bar=bar
            )
        self.journal.note(
            latency={
                "seconds": dict(found.seconds), "failures": found.failures, "warmup": found.warmup
            }
        )  # fmt: skip

    def _prepare(self) -> None:
        """Index, if that has not been done in this process."""
        if self.code is not None and not self.prepared:
            self.journal.note(code=[self.origin, self.code.digest])
        self.prepared = True
        cost = self.bench._index(self.retriever, self.limits.index_timeout)  # noqa: SLF001 - as above
        if cost is not None and cost is not self.index:
            self.index = cost
            self.journal.note(index=asdict(cost))

    def _settings(self, head: Mapping[str, Any]) -> Mapping[str, Any]:
        """What made the run, for the record."""
        documents = self.bench.collection.documents
        timing = {"seconds": head.get("seconds", 0.0)}
        latency = _latency(head, self.journal.folder)
        if latency is not None:
            timing["latency"] = latency.record()
        if head.get("index"):
            timing["index"] = dict(head["index"])
        return {
            "retriever": {
                **self.identity.settings, **({"code": self.code.digest} if self.code else {})
            },
            "k": self.bench.k,
            "collection": {
                "name": self.bench.collection.name,
                "documents": len(documents),
                "fingerprint": self.bench._documents,  # noqa: SLF001 - as above
            },
            "limits": dict(head.get("limits", {})),
            "started": head.get("started", ""),
            "timing": timing,
            "versions": versions(),
            "machine": {
                "system": platform.system(), "processor": platform.machine(),
                "cores": os.cpu_count(),
            },
        }  # fmt: skip


def _collection(given: Any) -> Collection:
    return given if isinstance(given, Collection) else Collection.load(given)


def _retriever(given: Any) -> Any:
    if isinstance(given, Run | str | os.PathLike):
        from rankgauge.retrievers.saved import SavedRun

        return SavedRun(given, missing="empty")
    answers_of(given)  # refuses what is no retriever before anything is made
    return given


def _attribute(retriever: Any, name: str) -> Any:
    """What a retriever may say beyond its rankings; None if it does not, or fails to."""
    try:
        return getattr(retriever, name, None)
    except KeyboardInterrupt:
        raise
    except BaseException:  # noqa: BLE001 - a property of a retriever may do anything
        return None


def _latency(head: Mapping[str, Any], folder: Path) -> Latency | None:
    kept = head.get("latency")
    return None if kept is None else Latency.of(kept, str(folder))


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
