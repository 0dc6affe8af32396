"""Benchmark plans: the collection, the retrievers, and the limits of a project file."""

from __future__ import annotations

import importlib
import inspect
import os
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from operator import attrgetter
from pathlib import Path
from typing import Any

from rankgauge import retrievers
from rankgauge.benchmark.benchmark import Benchmark, check_prices
from rankgauge.benchmark.calls import Limits
from rankgauge.core.arguments import integer, known_name
from rankgauge.core.project_file import ProjectFile, data_folder
from rankgauge.core.project_names import PROJECT_FILE, find_project_file
from rankgauge.corpus.collection import Collection
from rankgauge.data.qrels import Qrels
from rankgauge.errors import InputError, RankgaugeError
from rankgauge.measures.measure import parse_all
from rankgauge.retrievers.encoders import installed_encoder
from rankgauge.retrievers.protocol import attempt, describe_error

_COLLECTION = ("source", "documents", "queries", "qrels", "split")
# Keys in the table of a retriever that are not options of its class.
_PLAN_KEYS = ("type", "limits", "part", "prices", "settings")
# Options whose values are other retrievers, by name or as tables.
_PARTS = ("of", "retriever")
# Options that are paths, relative to the file.
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
    """The benchmark that a project file describes: collection, retrievers, and limits.

    .. code-block:: toml

        collection = "handbook"        # a folder, a zip, "ir_datasets:...", or a table
        measures = ["nDCG@10", "R@10"]

        [retrievers.bm25]
        type = "bm25"
        stemmer = "english"

        [retrievers.hashing]
        type = "dense"
        encoder = { type = "hashing" }

        [retrievers.hybrid]
        type = "hybrid"
        of = ["bm25", "hashing"]

    Attributes:
        file: The project file; empty for a folder of documents.
        collection: The arguments of :meth:`Collection.load`.
        retrievers: The retrievers, including parts of others, in the order of the file.
        k: The number of documents requested per query.
        store: The folder for responses.
        measures: The measures to show, of which the first is tested.
        baseline: The name of the baseline run; empty for the first.
        timed: The number of queries to time.
        limits: Limits of calls.
        trust: Whether to run the code of a file that belongs to another user.
    """

    file: ProjectFile
    collection: Mapping[str, Any]
    retrievers: tuple[PlannedRetriever, ...]
    k: int = 100
    store: Path = Path("bench")
    measures: tuple[str, ...] = ()
    baseline: str = ""
    timed: int = 200
    limits: Limits = field(default_factory=Limits)
    trust: bool = False

    @classmethod
    def read(cls, path: str | os.PathLike[str] | None = None, *, trust: bool = False) -> BenchmarkPlan:
        """Read the plan of a project, or create one for a folder: BM25 and the best encoder on this machine.

        No code of the project is imported, and no model is downloaded.

        Args:
            path: A project file, its folder, or a folder that :meth:`Collection.load` reads;
                default: the project of the current folder or of one above it.
            trust: Whether to run the code of a file that belongs to another user.

        Raises:
            FormatError: If the file is not valid, a key is missing, or a value has the wrong type.
            InputError: If there is no project.
            UnknownName: For an unknown key or type; the message suggests similar names.
        """
        named = find_project_file() if path is None else path
        if named is None:
            raise InputError(
                f"there is no {PROJECT_FILE} in this folder or above it",
                fix="create one: rankgauge init, or pass a folder of documents and questions",
            )
        place = Path(named)
        if place.is_dir() and not (place / PROJECT_FILE).exists():
            name, encoder = installed_encoder()
            return cls(
                file=ProjectFile(place, {}, ""),
                collection={"source": str(place)},
                retrievers=(
                    PlannedRetriever("bm25", "bm25", {}),
                    PlannedRetriever(name, "dense", {"encoder": encoder}),
                ),
                measures=("nDCG@10", "R@5", "P@5", "RR"),
                store=place.resolve().with_name(f"{place.resolve().name}.runs"),
            )
        file = ProjectFile.read(place)
        with file.at():
            return replace(_PlanReader(file).plan(), trust=trust)

    def load(
        self,
        collection: Collection | None = None,
        qrels: Qrels | None = None,
        *,
        store: str | os.PathLike[str] | None = None,
        progress: bool | None = None,
    ) -> Benchmark:
        """Return the benchmark, with its collection loaded.

        Args:
            collection: The collection, if it is loaded already.
            qrels: The judgments; default: those of the collection.
            store: The folder for responses; default: that of the plan.
            progress: Whether to show a progress bar.

        Raises:
            InputError: If the collection cannot be read.
        """
        if self.file.data and store is None:
            data_folder(self.file.folder)
        if collection is None:
            with self.file.at("collection"):
                collection = Collection.load(**self.collection)
        return Benchmark(collection, qrels, k=self.k, store=store or self.store, limits=self.limits, progress=progress)

    def with_measures(self, measures: Iterable[str]) -> BenchmarkPlan:
        """Return the plan with other measures.

        Raises:
            UnknownName: For an unknown measure.
        """
        return replace(self, measures=tuple(str(measure) for name in measures for measure in parse_all(name)))

    def selected(self, only: Iterable[str] = ()) -> tuple[PlannedRetriever, ...]:
        """Return the retrievers to run: all that are not only parts, or those in `only`.

        Raises:
            UnknownName: For a name that is not in the plan.
        """
        wanted = [self.retriever(name) for name in only]
        if wanted:
            return tuple(retriever for retriever in self.retrievers if retriever in wanted)
        return tuple(retriever for retriever in self.retrievers if not retriever.part)

    def retriever(self, name: str) -> PlannedRetriever:
        """Return the retriever of this name.

        Raises:
            UnknownName: For a name that is not in the plan.
        """
        planned = {retriever.name: retriever for retriever in self.retrievers}
        known_name("retriever of the project", name, planned)
        return planned[name]

    def options(self, name: str, above: tuple[str, ...] = ()) -> dict[str, Any]:
        """Return the type and options of a retriever as one table, including its parts.

        Args:
            name: The name of the retriever.
            above: The names of the retrievers that contain it, from the outermost.

        Raises:
            UnknownName: For a name that is not in the plan.
            FormatError: If retrievers contain each other.
        """
        with self.file.at("retrievers", *above[-1:]):
            planned = self.retriever(name)
        if name in above:
            raise self.file.error(
                f"retrievers contain each other: {' > '.join([*above, name])}",
                "retrievers",
                name,
                fix="remove one of them",
            )

        def inside(key: str, value: Any) -> Any:
            if key in _PARTS and isinstance(value, str):
                return self.options(value, (*above, name))
            if key in _PARTS and isinstance(value, list):
                return [inside(key, part) for part in value]
            if isinstance(value, Mapping):
                return {inner: inside(inner, option) for inner, option in value.items()}
            return value

        return {"type": planned.type, **{key: inside(key, value) for key, value in planned.options.items()}}

    def check(self) -> None:
        """Check the owner of the file, and the types and options of all retrievers, before any is created.

        Raises:
            InputError: If the file belongs to another user and is not trusted.
            UnknownName: For an unknown type, option, or part; the message gives its location and
                similar names.
            FormatError: If retrievers contain each other.
        """
        if self.file.data and not self.trust:
            self.file.check_owner()
        for retriever in self.retrievers:
            self.options(retriever.name)
            _check_options(self.file, retriever.type, retriever.options, ("retrievers", retriever.name))


def load_collection(file: ProjectFile) -> Collection:
    """Load the collection of a project, which needs no retrievers.

    Raises:
        InputError: If it is missing or cannot be read.
    """
    with file.at("collection"):
        return Collection.load(**_PlanReader(file).collection())


@dataclass(frozen=True)
class _PlanReader:
    """Reader of a plan that reports the location of errors."""

    file: ProjectFile

    def plan(self) -> BenchmarkPlan:
        file, collection = self.file, self.collection()
        tables = file.value({}, "retrievers")
        if not tables:
            raise file.error("the project has no retrievers", fix='write [retrievers.bm25] with type = "bm25"')
        planned = tuple(self._retriever(name) for name in tables)
        if all(retriever.part for retriever in planned):
            raise file.error(
                "all retrievers are parts of others", "retrievers", fix="remove part = true from a retriever to run"
            )
        baseline = file.value("", "baseline")
        # A saved evaluation is not a retriever.
        if baseline and not {"#", "@"}.intersection(baseline):
            with file.at("baseline"):
                known_name("retriever", baseline, tables)
        k, timed = file.value(100, "k"), file.value(200, "timed")
        with file.at("k"):
            integer("k", k)
        with file.at("timed"):
            integer("timed", timed, least=0)
        plan = BenchmarkPlan(
            file=file,
            collection=collection,
            retrievers=planned,
            k=k,
            store=file.folder / ".rankgauge" / "runs",
            baseline=baseline,
            timed=timed,
            limits=self._limits("limits"),
        )
        # Rejects unknown measures before the retrievers run.
        with file.at("measures"):
            return plan.with_measures(str(measure) for measure in file.value([], "measures"))

    def collection(self) -> dict[str, Any]:
        """Return the arguments of `Collection.load`, with absolute paths."""
        file = self.file
        collection = file.value({}, "collection", kinds=(str, dict))
        if isinstance(collection, str):
            collection = {"source": collection}
        else:
            file.inside("collection").checked("collection", dict.fromkeys(_COLLECTION, (str,)))
        if not collection:
            raise file.error("the project has no collection", fix='write collection = "FOLDER"')
        arguments = dict(collection)
        for key, value in collection.items():
            if os.path.exists(path := file.folder / value):  # noqa: PTH110 - also for text that is too long for a path
                arguments[key] = str(path)
        return arguments

    def _retriever(self, name: str) -> PlannedRetriever:
        entry = self.file.inside("retrievers", name)
        table, kind, prices = entry.value({}), entry.value("", "type"), entry.value({}, "prices")
        if not kind:
            raise entry.error("type is missing", fix='write type = "bm25"')
        with entry.at("type"):
            known_name("type of retriever", kind, [*retrievers.TYPES, _PYTHON])
        with entry.at("prices"):
            check_prices(prices)
        return PlannedRetriever(
            name=name,
            type=kind,
            options={key: value for key, value in table.items() if key not in _PLAN_KEYS},
            limits=self._limits("retrievers", name, "limits") if "limits" in table else None,
            prices=prices,
            settings=entry.value(None, "settings", kinds=(dict,)),
            part=entry.value(False, "part"),  # noqa: FBT003 - the default
        )

    def _limits(self, *keys: str) -> Limits:
        limits = self.file.inside(*keys)
        with limits.at():
            return Limits(**limits.checked("limits", dict.fromkeys((limit.name for limit in fields(Limits)), ())))


def _check_options(file: ProjectFile, kind: str, options: Mapping[str, Any], keys: tuple[str, ...]) -> None:
    """Raise an error for unknown types and options, including those of nested parts.

    No object is created: a plan with a typo in its last line must not load models first.
    """
    known: Iterable[str] = ("call", "arguments")
    with file.at(*keys):
        known_name("type", kind, [*retrievers.TYPES, _PYTHON])
    if kind != _PYTHON:
        known = inspect.signature(getattr(retrievers, retrievers.TYPES[kind])).parameters
    for key, value in options.items():
        with file.at(*keys, key):
            known_name(f"option of {kind}", key, known)
        for inner in value if isinstance(value, list) else [value]:
            if isinstance(inner, Mapping) and isinstance(inner.get("type"), str):
                rest = {name: option for name, option in inner.items() if name != "type"}
                _check_options(file, inner["type"], rest, (*keys, key))


@dataclass
class PlanBuilder:
    """Creates the retrievers of a plan; a part shared by several is created once.

    The parts of a chunked retriever are not shared, because they index chunks. FormatError is
    raised for invalid options. The plan was checked: its retrievers do not contain each other.
    """

    plan: BenchmarkPlan
    bench: Benchmark
    built: dict[str, Any] = field(default_factory=dict)  # retrievers by name

    def named(self, name: str, by: tuple[str, ...] = ("retrievers",)) -> Any:
        """Return the retriever with this name."""
        if name not in self.built:
            with self.plan.file.at(*by):
                planned = self.plan.retriever(name)
            self.built[name] = self._create(planned.type, planned.options, ("retrievers", name))
        return self.built[name]

    def _create(self, kind: str, options: Mapping[str, Any], keys: tuple[str, ...]) -> Any:
        file = self.plan.file
        _check_options(file, kind, options, keys)
        # A retriever that indexes chunks cannot also index the documents: its parts are not shared.
        maker = PlanBuilder(self.plan, self.bench) if kind == "chunked" else self
        arguments = {key: maker.value(key, value, (*keys, key)) for key, value in options.items()}
        if kind == _PYTHON:
            return self._import_call(arguments, keys)
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
            with file.at(*keys):
                return call(**arguments)
        except TypeError as error:
            raise file.error(str(error), *keys, fix=f"the options of {kind} are: {', '.join(parameters)}") from None

    def value(self, key: str, value: Any, keys: tuple[str, ...]) -> Any:
        """Convert an option to an argument of its class."""
        if isinstance(value, Mapping) and isinstance(value.get("type"), str):
            options = {name: inner for name, inner in value.items() if name != "type"}
            return self._create(value["type"], options, keys)
        if key in _PARTS:
            if isinstance(value, str):
                return self.named(value, keys)
            if isinstance(value, list):
                return [self.value(key, part, keys) for part in value]
        if key in _TABLES and isinstance(value, str) and value in retrievers.TYPES:
            raise self.plan.file.error("got text, expected a table", *keys, fix=f'write {key} = {{ type = "{value}" }}')
        if key in _PATHS and isinstance(value, str):
            return str(self.plan.file.folder / value)
        return value

    def _import_call(self, options: Mapping[str, Any], keys: tuple[str, ...]) -> Callable[..., Any]:
        """Import the object of ``call = "module:name"``; with ``arguments``, call it."""
        named = str(options.get("call", ""))
        module, _, name = named.partition(":")
        folder = str(self.plan.file.folder)
        if folder not in sys.path:
            sys.path.insert(0, folder)
        imported, error = attempt(lambda: attrgetter(name)(importlib.import_module(module)))
        if error is not None:
            fix = f"fix the module {module}: python -c 'import {module}' shows the error"
            if isinstance(error, ImportError | AttributeError | ValueError):
                fix = 'write call = "module:function", for a module next to the plan or installed'
            raise self.plan.file.error(
                f"{named!r} cannot be imported: {describe_error(error)}", *keys, "call", fix=fix
            ) from error
        arguments = options.get("arguments", {} if isinstance(imported, type) else None)
        return imported if arguments is None else self._call(imported, arguments, keys)

    def _call(self, factory: Any, arguments: Any, keys: tuple[str, ...]) -> Any:
        """Call a user's function or class with its arguments."""
        if not isinstance(arguments, Mapping):
            raise self.plan.file.error(
                f"got {arguments!r:.60}", *keys, "arguments", fix="use a table: arguments = { name = 1 }"
            )
        try:
            return factory(**arguments)
        except (RankgaugeError, KeyboardInterrupt):
            raise
        except BaseException as error:
            name = getattr(factory, "__name__", repr(factory))
            raise self.plan.file.error(
                f"calling {name} failed: {describe_error(error)}",
                *keys,
                fix=f"add the arguments of {name}: arguments = {{ name = 1 }}",
            ) from error
