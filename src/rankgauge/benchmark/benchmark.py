"""Benchmark of retrievers on the same queries, documents, and judgments."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeAlias, get_args

from rankgauge.benchmark.calls import Limits
from rankgauge.benchmark.comparison import BenchmarkComparison, compare_runs
from rankgauge.benchmark.retriever_run import Corpus, Rerun, Session, are_same, attribute_of, undescribed
from rankgauge.benchmark.run import BenchmarkRun, Errors
from rankgauge.comparison.differences import Design
from rankgauge.core.arguments import integer, known_name, number, of_kind
from rankgauge.core.ids import id_bytes
from rankgauge.core.text import keep, many, some
from rankgauge.corpus.collection import Collection, Query
from rankgauge.data.qrels import Qrels
from rankgauge.data.run import Run
from rankgauge.errors import InputError
from rankgauge.measures.measure import Measure
from rankgauge.retrievers.protocol import responses_of

_LIMITS = "pass Limits(concurrency=8, timeout=10)"
# By folder of responses: the run that has used it first, and its parts.
_Owners: TypeAlias = dict[Path, tuple[str, list[Callable[[], Any]]]]


class Benchmark:
    """A collection with judgments for running and comparing retrievers.

    Args:
        collection: Documents and queries: a :class:`Collection`, or anything that
            :meth:`Collection.load` reads; None if queries are added with :meth:`add_query` and
            retrievers have their own documents.
        qrels: The judgments, in any form accepted by :meth:`Qrels.of`; default: those of the
            collection.
        k: Number of documents requested per query.
        store: The folder for responses: an interrupted run resumes, and stored responses are
            reused; default: a temporary folder.
        limits: Default limits of calls; :meth:`run` can override them.
        progress: Whether to show a progress bar; default: only if standard error is a terminal.

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
        self.k = integer("k", k)
        of_kind("limits", limits, Limits | None, _LIMITS)
        self.limits = limits or Limits()
        if not isinstance(collection, Collection):
            collection = Collection() if collection is None else Collection.load(collection)
        self.collection: Collection = collection
        self._corpus = Corpus(collection, progress=progress)
        judgments = self.collection.qrels if qrels is None else qrels
        self._given = Qrels.of({} if judgments is None else judgments)
        self._added: dict[str, Query] = {}
        self._grades: dict[str, dict[str, float]] = {}
        self._runs: dict[str, BenchmarkRun] = {}
        self._owners: _Owners = {}
        self._keeper: _Temporary | None = None
        if store is None:
            self._keeper = _Temporary()
            store = self._keeper.folder
        of_kind("the store", store, str | os.PathLike, "pass the path of a folder")
        self.store = Path(store)

    def __repr__(self) -> str:
        return (
            f"<Benchmark: {many(len(self.queries), 'query')}, "
            f"{many(len(self.collection.documents), 'document')}, {many(len(self._runs), 'run')}>"
        )

    # ---- queries and judgments

    def add_query(self, query_id: Any, text: str, relevant: Any) -> None:
        """Add a query.

        Args:
            query_id: The id, which must be new.
            text: The text of the query.
            relevant: The ids of the relevant documents, or a mapping of document id to grade.

        Raises:
            InputError: If the id exists already, or an argument has the wrong type.
        """
        of_kind("the text of a query", text, str, "pass it as text", where=f"query {query_id!r}")
        if isinstance(relevant, str | bytes) or not isinstance(relevant, Iterable):
            raise InputError(
                f"got {relevant!r:.60} for the relevant documents",
                where=f"query {query_id!r}",
                fix='pass a list of ids, ["d1", "d2"], or grades, {"d1": 2, "d2": 1}',
            )
        graded = relevant if isinstance(relevant, Mapping) else dict.fromkeys(relevant, 1)
        id_bytes(query_id, "query id")
        truth = Qrels.of({query_id: graded})
        name = truth.query_ids[0]
        if name in self._added or name in self.collection.queries or name in self._given:
            raise InputError(f"query {name!r} already exists", where="add_query", fix="give every query a unique id")
        self._added[name] = Query(name, text)
        self._grades[name] = dict(truth[name])
        self.__dict__.pop("_truth", None)

    @cached_property
    def _truth(self) -> tuple[Qrels, Mapping[str, Query]]:
        """Judgments, and the queries that have judgments and a text."""
        qrels = self._given
        if self._added:
            qrels = Qrels.of({**{query: qrels[query] for query in qrels}, **self._grades})
        texts = self.collection.queries
        asked = {
            query: self._added.get(query) or texts[query] for query in qrels if query in self._added or query in texts
        }
        if len(asked) < len(qrels):
            qrels = Qrels.of({query: qrels[query] for query in asked})
        return qrels, MappingProxyType(asked)

    @property
    def qrels(self) -> Qrels:
        """Judgments of the queries of the benchmark."""
        return self._truth[0]

    @property
    def queries(self) -> Mapping[str, Query]:
        """Queries with judgments and a text."""
        return self._truth[1]

    @property
    def runs(self) -> Mapping[str, BenchmarkRun]:
        """Runs so far, by name."""
        return MappingProxyType(self._runs)

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes on inputs that were excluded."""
        bare = [query for query in self._given if query not in self.queries]
        others = sum(query not in self.queries for query in self.collection.queries)
        return keep(
            bare and f"WARNING: {many(len(bare), 'query')} with judgments have no text and were not run: {some(bare)}",
            others and f"not run, because they have no judgments: {many(others, 'query')}",
        )

    # ---- runs

    def run(
        self,
        name: str,
        retriever: Any,
        *,
        settings: Mapping[str, Any] | None = None,
        limits: Limits | None = None,
        rerun: Rerun = "missing",
        timed: int = 200,
        prices: Mapping[str, float] | None = None,
    ) -> BenchmarkRun:
        """Send every query to a retriever, and store the responses.

        Failed queries are recorded in ``failures`` of the result. After an interruption, a call
        with the same store resumes the run.

        Args:
            name: The name of the run; an existing run of this name is replaced.
            retriever: An object with ``index`` and ``search`` (:class:`Retriever`); or a callable
                that takes a text and returns ids, pairs of id and score, or documents with an id,
                best first; or a saved run: a :class:`Run`, or the path of its file. Retrievers and
                callables may be async.
            settings: Settings that identify a retriever without its own settings. With settings,
                stored responses are reused. Without settings, only the responses of an unfinished
                run are reused: those of the same object in this process, or those of another
                process if the main script and the file that defines the function or class have not
                changed.
            limits: Limits of calls for this retriever.
            rerun: The queries to send: ``missing`` (those without a stored response), ``failed``
                (also failed queries), or ``all``. ``resume`` is like ``failed`` for a retriever
                without settings whose stored responses are all still valid.
            timed: The number of queries that are sent again, one at a time, to measure latency; 0
                for none.
            prices: Prices per unit of usage reported by the retriever (``usage()``), such as
                ``{"tokens": 2e-8}``.

        Raises:
            InputError: If there are no queries, the object is not a retriever, another run with
                equal settings has another retriever, the store cannot be written, or another
                process is writing it.
        """
        known_name("rerun", rerun, get_args(Rerun))
        if not (name and isinstance(name, str)):
            raise InputError(f"got {name!r:.60} for the name of a run", fix="pass it as text")
        of_kind("limits", limits, Limits | None, _LIMITS)
        integer("timed", timed, least=0)
        of_kind("settings", settings, Mapping | None, 'pass a mapping: {"model": "e5"}')
        check_prices(prices)
        if not self.queries:
            raise InputError(
                f"{many(len(self.collection.queries), 'query')}, none with judgments",
                where=f"run {name!r}",
                fix="pass a collection with queries and judgments (in a folder: questions.csv with "
                "the columns question and relevant), or call add_query()",
            )
        if isinstance(retriever, Run | str | os.PathLike):
            from rankgauge.retrievers.baselines import SavedRun

            retriever = SavedRun(retriever, missing="empty")
        responses_of(retriever)  # rejects inputs that are not retrievers before anything is created
        session = self._session(self._owners, name, retriever, limits or self.limits, settings)
        self._runs[name] = session.run(rerun, timed, dict(prices or {}))
        return self._runs[name]

    def drop_run(self, name: str) -> None:
        """Leave a run out of :attr:`runs` and comparisons; its responses stay in the store."""
        self._runs.pop(name, None)

    def _session(  # noqa: PLR0917 - the inputs of a run
        self, owners: _Owners, name: str, retriever: Any, limits: Limits, settings: Mapping[str, Any] | None = None
    ) -> Session:
        """Return the session of a run, unless it would use the responses of another retriever."""
        session = Session(
            corpus=self._corpus,
            k=self.k,
            qrels=self.qrels,
            queries=self.queries,
            store=self.store,
            keeper=self._keeper,
            name=name,
            retriever=retriever,
            limits=limits,
            settings=settings,
        )
        if session.identity.declared:
            parts = undescribed(retriever)
            owner, known = owners.setdefault(session.folder, (name, parts))
            if name != owner and not are_same(known, parts):
                raise InputError(
                    f"same settings as run {owner!r}, but another object: it would reuse the responses of that run",
                    where=f"run {name!r}",
                    fix='add the difference to its settings: settings={..., "variant": 2}',
                )
        return session

    def runner(self, *, timed: int = 50) -> Callable[[str, Any], tuple[Run, float | None]]:
        """Return a function that runs a retriever and returns its rankings and median latency.

        It is for :func:`explore`. Responses are stored; :attr:`runs` does not change.

        Args:
            timed: Number of queries to time; 0 for none.

        Example:
            >>> bench = Benchmark(k=3)
            >>> bench.add_query("q1", "late fees", {"fees"})
            >>> run, seconds = bench.runner(timed=0)("mine", lambda text: ["fees"])
            >>> run["q1"], seconds
            ({'fees': 1.0}, None)
        """
        owners: _Owners = {}  # an exploration may contain the configuration of a run

        def run(name: str, retriever: Any) -> tuple[Run, float | None]:
            session = self._session(owners, name, retriever, self.limits)
            # The name is a number that does not identify the configuration.
            result = session.run("missing" if session.identity.declared else "all", timed, {})
            close = attribute_of(retriever, "close")
            if callable(close):
                with contextlib.suppress(Exception):  # the responses are already stored
                    close()
            median = None if result.latency is None else result.latency.p50
            return result.ranked(), None if median is None else median.value

        return run

    def compare(
        self,
        measures: str | Measure | Iterable[str | Measure] | None = None,
        *,
        baseline: str | None = None,
        design: Design | None = None,
        errors: Errors = "raise",
    ) -> BenchmarkComparison:
        """Compare the quality, latency, and cost of the runs so far.

        Args:
            measures: The measures to show, of which the first is tested; default: those of
                :func:`compare`.
            baseline: The name of the baseline run; default: the first run.
            design: The design of the tests, including the baseline; default: the default test of
                the first measure.
            errors: ``raise`` to raise an error for failed queries; ``empty`` to count their
                rankings as empty.

        Raises:
            InputError: With fewer than two runs, runs over different queries, or refused runs.
        """
        if baseline is not None:
            known_name("run", baseline, self._runs)
        runs = tuple(self._runs.values())
        return compare_runs(runs, measures, baseline=baseline, design=design, errors=errors)


class _Temporary:
    """A folder that is removed when the benchmark and its runs are garbage collected."""

    def __init__(self) -> None:
        self.folder = tempfile.mkdtemp(prefix="rankgauge-")
        weakref.finalize(self, shutil.rmtree, self.folder, ignore_errors=True)


def check_prices(prices: Any) -> None:
    """Raise an error unless prices are a mapping of units to numbers."""
    of_kind("prices", prices, Mapping | None, 'pass a mapping: {"tokens": 2e-8}')
    for unit, price in (prices or {}).items():
        number(f"prices[{str(unit)[:40]!r}]", price)
