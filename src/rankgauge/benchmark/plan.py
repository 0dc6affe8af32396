"""Benchmark plans: collection, retrievers, and limits in a TOML file."""

from __future__ import annotations

import contextlib
import importlib
import inspect
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from operator import attrgetter
from pathlib import Path
from typing import Any

from rankgauge import retrievers
from rankgauge.benchmark.benchmark import Benchmark, check_prices
from rankgauge.benchmark.calls import Limits
from rankgauge.core.arguments import integer, known_name
from rankgauge.core.files import read_toml
from rankgauge.corpus.collection import Collection
from rankgauge.errors import FormatError, RankgaugeError
from rankgauge.measures.measure import parse_all
from rankgauge.retrievers.protocol import attempt, describe_error

_TOP = ("baseline", "collection", "explore", "k", "limits", "measures", "retrievers", "store", "timed")
_COLLECTION = ("source", "documents", "queries", "qrels", "split")
# Keys in the table of a retriever that are not options of its class.
_PLAN_KEYS = ("type", "limits", "part", "prices", "settings")
# Options whose values are other retrievers, by name or as tables.
_PARTS = ("of", "retriever")
# Options that are paths, relative to the plan.
_PATHS = ("path", "run")
# Options whose values are other objects, as tables.
_TABLES = ("chunker", "encoder", "reranker")
_PYTHON = "python"


@dataclass(frozen=True)
class PlannedRetriever:
    """A retriever of a plan.

    Attributes:
        name: The name of the run.
        type: A key of ``rankgauge.retrievers.TYPES``, or ``python``.
        options: The options of the type.
        limits: The limits for this retriever; None for those of the plan.
        prices: Prices per unit of usage.
        settings: Settings that identify the retriever; for ``python`` only.
        part: Whether the retriever is only part of others and not run itself.
    """

    name: str
    type: str
    options: Mapping[str, Any]
    limits: Limits | None = None
    prices: Mapping[str, float] = field(default_factory=dict)
    settings: Mapping[str, Any] | None = None
    part: bool = False


@dataclass(frozen=True)
class BenchmarkPlan:
    """A benchmark described in a TOML file: collection, retrievers, and limits.

    .. code-block:: toml

        collection = "handbook"        # a folder, a zip, "ir_datasets:...", or a table
        measures = ["nDCG@10", "R@10"]

        [retrievers.bm25]
        type = "bm25"
        stemmer = "english"

        [retrievers.dense]
        type = "dense"
        encoder = { type = "hashing" }

        [retrievers.hybrid]
        type = "hybrid"
        of = ["bm25", "dense"]

    Attributes:
        path: The file; paths in the file are relative to its folder.
        collection: The arguments of :meth:`Collection.load`.
        retrievers: The retrievers, including parts of others, in the order of the file.
        k: The number of documents requested per query.
        store: The folder for responses.
        measures: The measures to show, of which the first is tested.
        baseline: The name of the baseline run; empty for the first.
        timed: The number of queries to time.
        limits: Limits of calls.
        explore: The configurations to try; see :func:`explore_plan`.
    """

    path: Path
    collection: Mapping[str, Any]
    retrievers: tuple[PlannedRetriever, ...]
    k: int = 100
    store: Path = Path("bench")
    measures: tuple[str, ...] = ()
    baseline: str = ""
    timed: int = 200
    limits: Limits = field(default_factory=Limits)
    explore: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> BenchmarkPlan:
        """Read a plan, or create one for a folder: BM25 and hashed dense vectors.

        Args:
            path: A TOML file, or a folder that :meth:`Collection.load` reads.

        Raises:
            FormatError: If the file is not valid TOML, a key is missing, or a value has the wrong
                type.
            UnknownName: For an unknown key or type; the message suggests similar names.
        """
        place = Path(path)
        if place.is_dir():
            return cls(
                path=place,
                collection={"source": str(path)},
                retrievers=(
                    PlannedRetriever("bm25", "bm25", {}),
                    PlannedRetriever("dense", "dense", {"encoder": {"type": "hashing"}}),
                ),
                measures=("nDCG@10", "R@5", "P@5", "RR"),
                store=place.resolve().with_name(f"{place.resolve().name}.runs"),
            )
        if place.suffix.lower() not in {".toml", ""} and place.is_file():
            raise FormatError(
                "this is not a plan: expected a TOML file or a folder",
                path=str(path),
                fix=f"pass the folder with the documents and questions: {place.parent}",
            )
        data = read_toml(path, missing="check the path", fix="fix this line")
        with _in_file(place):
            return _PlanReader(place).plan(data)

    def load(self, *, store: str | os.PathLike[str] | None = None, progress: bool | None = None) -> Benchmark:
        """Return the benchmark, with its collection loaded.

        Args:
            store: The folder for responses; default: that of the plan.
            progress: Whether to show a progress bar.
        """
        options = dict(self.collection)
        collection = Collection.load(options.pop("source"), **options)
        return Benchmark(collection, k=self.k, store=store or self.store, limits=self.limits, progress=progress)

    def with_measures(self, measures: Iterable[str]) -> BenchmarkPlan:
        """Return the plan with other measures.

        Raises:
            UnknownName: For an unknown measure.
        """
        names = tuple(measures)
        for name in names:
            parse_all(name)
        return replace(self, measures=names)

    def selected(self, only: Iterable[str] = ()) -> tuple[PlannedRetriever, ...]:
        """Return the retrievers to run: all that are not only parts, or those in `only`.

        Raises:
            UnknownName: For a name that is not in the plan.
        """
        wanted = [self.retriever(name) for name in only]
        if wanted:
            return tuple(retriever for retriever in self.retrievers if retriever in wanted)
        return tuple(retriever for retriever in self.retrievers if not retriever.part)

    def retriever(self, name: str, *, where: str = "") -> PlannedRetriever:
        """Return the retriever of this name.

        Args:
            name: The name.
            where: The location of the name, for the error.

        Raises:
            UnknownName: For a name that is not in the plan.
        """
        planned = {retriever.name: retriever for retriever in self.retrievers}
        known_name("retriever of the plan", name, planned, where=where)
        return planned[name]

    def options(self, name: str) -> dict[str, Any]:
        """Return the type and options of a retriever as one table, including its parts.

        Raises:
            UnknownName: For a name that is not in the plan.
            FormatError: If retrievers contain each other.
        """
        return _nested_settings(self, name, ())

    def check(self) -> None:
        """Check the types and options of all retrievers before any is created.

        Raises:
            UnknownName: For an unknown type, option, or part; the message gives its location and
                similar names.
            FormatError: If retrievers contain each other.
        """
        for retriever in self.retrievers:
            _nested_settings(self, retriever.name, ())
            _check_options(self.path, retriever.type, retriever.options, f"retrievers.{retriever.name}")


@contextlib.contextmanager
def _in_file(path: Path, where: str = "") -> Iterator[None]:
    """Add the file and the location in the file to errors that lack them."""
    try:
        yield
    except RankgaugeError as error:
        if str(path) not in error.where:
            error.where = ", ".join(filter(None, (str(path), where))) + (f": {error.where}" if error.where else "")
        raise


@dataclass(frozen=True)
class _PlanReader:
    """Reader of a plan that reports the location of errors."""

    path: Path

    def plan(self, data: Mapping[str, Any]) -> BenchmarkPlan:
        folder = self.path.resolve().parent
        self._check_keys(data, _TOP, "the plan")
        collection = data.get("collection")
        if isinstance(collection, str):
            collection = {"source": collection}
        if not isinstance(collection, Mapping) or not isinstance(collection.get("source"), str):
            raise self._error(
                "the plan has no collection", 'write collection = "folder", or pass the folder in place of the plan'
            )
        self._check_keys(collection, _COLLECTION, "collection")
        tables = data.get("retrievers")
        if not isinstance(tables, Mapping) or not tables:
            raise self._error("the plan has no retrievers", 'write [retrievers.bm25] with type = "bm25"')
        planned = tuple(self._retriever(name, table) for name, table in tables.items())
        if all(retriever.part for retriever in planned):
            raise self._error("all retrievers are parts of others", "remove part = true from a retriever to run")
        baseline = self._typed(data, "baseline", str, "")
        if baseline:
            known_name("retriever", baseline, tables)
        measures = self._typed(data, "measures", list, [])
        k, timed = self._typed(data, "k", int, 100), self._typed(data, "timed", int, 200)
        integer("k", k)
        integer("timed", timed, least=0)
        collection = dict(collection)
        for key, value in collection.items():
            if isinstance(value, str) and (folder / value).exists():
                collection[key] = str(folder / value)
        plan = BenchmarkPlan(
            path=self.path,
            collection=collection,
            retrievers=planned,
            k=k,
            store=folder / self._typed(data, "store", str, f"{self.path.stem}.runs"),
            baseline=baseline,
            timed=timed,
            limits=self._limits(self._typed(data, "limits", dict, {}), "limits"),
            explore=self._typed(data, "explore", dict, {}),
        )
        # Rejects unknown measures before the retrievers run.
        return plan.with_measures(str(measure) for measure in measures)

    def _retriever(self, name: str, table: Any) -> PlannedRetriever:
        where = f"retrievers.{name}"
        if not isinstance(table, Mapping) or not isinstance(table.get("type"), str):
            raise self._error("type is missing", f'write [{where}], with type = "bm25"', where)
        kind = table["type"]
        known_name("type of retriever", kind, [*retrievers.TYPES, _PYTHON])
        limits = table.get("limits")
        prices = self._typed(table, "prices", dict, {}, where)
        with _in_file(self.path, where):
            check_prices(prices)
        return PlannedRetriever(
            name=name,
            type=kind,
            options={key: value for key, value in table.items() if key not in _PLAN_KEYS},
            limits=None if limits is None else self._limits(limits, f"{where}.limits"),
            prices=prices,
            settings=self._typed(table, "settings", dict, None, where),
            part=self._typed(table, "part", bool, False, where),  # noqa: FBT003 - the default
        )

    def _limits(self, table: Any, where: str) -> Limits:
        if not isinstance(table, Mapping):
            raise self._error(f"got {table!r:.60}", "write a table: [limits]", where)
        self._check_keys(table, [limit.name for limit in fields(Limits)], where)
        with _in_file(self.path, where):
            return Limits(**table)

    def _typed(self, data: Mapping[str, Any], key: str, kind: type, *rest: Any) -> Any:
        default, *where = rest
        value = data.get(key, default)
        if value is default or (isinstance(value, kind) and (kind is bool) == isinstance(value, bool)):
            return value
        words = {str: "text in quotes", int: "a whole number", list: "a list", dict: "a table", bool: "true or false"}
        raise self._error(f"got {value!r:.60} for {key}", f"use {words[kind]}", where[0] if where else "")

    def _check_keys(self, table: Mapping[str, Any], known: Any, where: str) -> None:
        for key in table:
            known_name(f"key of {where}", key, known, where=str(self.path))

    def _error(self, what: str, fix: str, where: str = "") -> FormatError:
        return FormatError(f"{where}: {what}" if where else what, path=str(self.path), fix=fix)


def _nested_settings(plan: BenchmarkPlan, name: str, above: tuple[str, ...]) -> dict[str, Any]:
    where = ", ".join([str(plan.path), *(f"retrievers.{whole}" for whole in above[-1:])])
    planned = plan.retriever(name, where=where)
    if name in above:
        raise FormatError(
            f"retrievers contain each other: {' > '.join([*above, name])}",
            path=str(plan.path),
            fix="remove one of them",
        )

    def inside(key: str, value: Any) -> Any:
        if key in _PARTS and isinstance(value, str):
            return _nested_settings(plan, value, (*above, name))
        if key in _PARTS and isinstance(value, list):
            return [inside(key, part) for part in value]
        if isinstance(value, Mapping):
            return {inner: inside(inner, option) for inner, option in value.items()}
        return value

    return {"type": planned.type, **{key: inside(key, value) for key, value in planned.options.items()}}


def _check_options(path: Path, kind: str, options: Mapping[str, Any], where: str) -> None:
    """Raise an error for unknown types and options, including those of nested parts.

    No object is created: a plan with a typo in its last line must not load models first.
    """
    known: Iterable[str] = ("call", "arguments")
    known_name("type", kind, [*retrievers.TYPES, _PYTHON], where=f"{path}, {where}")
    if kind != _PYTHON:
        known = inspect.signature(getattr(retrievers, retrievers.TYPES[kind])).parameters
    for key, value in options.items():
        known_name(f"option of {kind}", key, known, where=f"{path}, {where}")
        for inner in value if isinstance(value, list) else [value]:
            if isinstance(inner, Mapping) and isinstance(inner.get("type"), str):
                rest = {name: option for name, option in inner.items() if name != "type"}
                _check_options(path, inner["type"], rest, f"{where}.{key}")


@dataclass
class PlanBuilder:
    """Creates the retrievers of a plan; a part shared by several is created once.

    The parts of a chunked retriever are not shared, because they index chunks. FormatError is
    raised for invalid options. The plan was checked: its retrievers do not contain each other.
    """

    plan: BenchmarkPlan
    bench: Benchmark
    built: dict[str, Any] = field(default_factory=dict)  # retrievers by name

    def named(self, name: str, by: str = "retrievers") -> Any:
        """Return the retriever with this name."""
        if name not in self.built:
            planned = self.plan.retriever(name, where=f"{self.plan.path}, {by}")
            self.built[name] = self._create(planned.type, planned.options, f"retrievers.{name}")
        return self.built[name]

    def _create(self, kind: str, options: Mapping[str, Any], where: str) -> Any:
        _check_options(self.plan.path, kind, options, where)
        # A retriever that indexes chunks cannot also index the documents: its parts are not shared.
        maker = PlanBuilder(self.plan, self.bench) if kind == "chunked" else self
        arguments = {key: maker.value(key, value, f"{where}.{key}") for key, value in options.items()}
        if kind == _PYTHON:
            return self._import_call(arguments, where)
        call = getattr(retrievers, retrievers.TYPES[kind])
        parameters = inspect.signature(call).parameters
        for key, value in arguments.items():
            # TOML has no null: false represents None.
            text = str(parameters[key].annotation)
            if value is False and "None" in text and "bool" not in text:
                arguments[key] = None
        if "qrels" in parameters and "qrels" not in arguments:
            arguments["qrels"] = self.bench.qrels
        try:
            with _in_file(self.plan.path, where):
                return call(**arguments)
        except TypeError as error:
            raise FormatError(
                f"{where}: {error}",
                path=str(self.plan.path),
                fix=f"the options of {kind} are: {', '.join(parameters)}",
            ) from None

    def value(self, key: str, value: Any, where: str) -> Any:
        """Convert an option to an argument of its class."""
        if isinstance(value, Mapping) and isinstance(value.get("type"), str):
            options = {name: inner for name, inner in value.items() if name != "type"}
            return self._create(value["type"], options, where)
        if key in _PARTS:
            if isinstance(value, str):
                return self.named(value, where)
            if isinstance(value, list):
                return [self.value(key, part, where) for part in value]
        if key in _TABLES and isinstance(value, str) and value in retrievers.TYPES:
            raise FormatError(
                f"{where}: got text, expected a table",
                path=str(self.plan.path),
                fix=f'write {key} = {{ type = "{value}" }}',
            )
        if key in _PATHS and isinstance(value, str):
            return str(self.plan.path.resolve().parent / value)
        return value

    def _import_call(self, options: Mapping[str, Any], where: str) -> Callable[..., Any]:
        """Import the object of ``call = "module:name"``; with ``arguments``, call it."""
        named = str(options.get("call", ""))
        module, _, name = named.partition(":")
        folder = str(self.plan.path.resolve().parent)
        if folder not in sys.path:
            sys.path.insert(0, folder)
        imported, error = attempt(lambda: attrgetter(name)(importlib.import_module(module)))
        if error is not None:
            fix = f"fix the module {module}: python -c 'import {module}' shows the error"
            if isinstance(error, ImportError | AttributeError | ValueError):
                fix = 'write call = "module:function", for a module next to the plan or installed'
            raise FormatError(
                f"{where}: {named!r} cannot be imported: {describe_error(error)}", path=str(self.plan.path), fix=fix
            ) from error
        arguments = options.get("arguments", {} if isinstance(imported, type) else None)
        return imported if arguments is None else self._call(imported, arguments, where)

    def _call(self, factory: Any, arguments: Any, where: str) -> Any:
        """Call a user's function or class with its arguments."""
        if not isinstance(arguments, Mapping):
            raise FormatError(
                f"{where}: got {arguments!r:.60} for arguments",
                path=str(self.plan.path),
                fix="use a table: arguments = { name = 1 }",
            )
        try:
            return factory(**arguments)
        except (RankgaugeError, KeyboardInterrupt):
            raise
        except BaseException as error:
            name = getattr(factory, "__name__", repr(factory))
            raise FormatError(
                f"{where}: calling {name} failed: {describe_error(error)}",
                path=str(self.plan.path),
                fix=f"add the arguments of {name}: arguments = {{ name = 1 }}",
            ) from error
