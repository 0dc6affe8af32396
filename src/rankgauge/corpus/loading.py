"""Loading of collections from folders, archives, and other libraries."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import Any

from rankgauge.core.libraries import library
from rankgauge.core.project_names import find_project_file
from rankgauge.core.recommendations import next_step
from rankgauge.core.text import many
from rankgauge.data.qrels import Qrels
from rankgauge.errors import InputError
from rankgauge.formats.archives import Archive
from rankgauge.formats.columns import JUDGMENTS
from rankgauge.formats.datasets import (
    COLLECTION,
    FETCHED,
    JUDGED,
    TEST,
    got_from,
    hub_judgments,
    ir_dataset,
    judged_rows,
    no_split,
    one_split,
    splits_in,
)
from rankgauge.formats.folders import (
    QUERIES,
    TEXTS,
    FileSet,
    conversions,
    documents_in,
    files_in_archive,
    files_in_folder,
    judgments_named,
    pages_of,
    splits_of,
)
from rankgauge.formats.mappings import from_rows
from rankgauge.formats.questions import read_questions
from rankgauge.formats.readers import read_source
from rankgauge.formats.texts import Faults, RowReader, TextReader, TextRow, TextSource, kept, row_of


@dataclass(frozen=True)
class Loaded:
    """Contents of a loaded collection."""

    documents: Mapping[str, TextRow] = field(default_factory=dict)  # document id to text
    queries: Mapping[str, TextRow] = field(default_factory=dict)  # query id to text
    qrels: Qrels | None = None  # judgments; None without any
    name: str = "collection"  # name of the collection
    notes: tuple[str, ...] = ()  # notes of the reader
    # Whether the judgments come from the file of queries and apply only to these queries.
    beside: bool = False


def _text(row: Mapping[str, Any]) -> TextRow:
    return row_of({key: value for key, value in row.items() if value is not None or key == "text"})


def file_set(path: Path) -> FileSet | None:
    """Return the folder or archive at a path; None for a plain file."""
    if path.is_dir():
        return files_in_folder(path)
    if not path.is_file():
        raise InputError("there is no such file or folder", where=os.fspath(path), fix="check the path")
    name = os.fspath(path)
    return files_in_archive(Archive(name, name)) if path.suffix.lower() == ".zip" else None


def other_splits(source: Any, split: str | None) -> dict[str, Qrels]:
    """Return the judgments of the splits of a folder or archive that were not chosen, by name."""
    is_path = isinstance(source, str | os.PathLike) and Path(source).exists()
    files = file_set(Path(source)) if is_path else None
    if files is None:
        return {}
    chosen = judgments_named(files, split)
    return {name: Qrels(read_source(files.source(file))) for name, file in splits_of(files).items() if file != chosen}


def unjudged_error(collection: Any, folder: str | os.PathLike[str]) -> InputError:
    """Return the error for a collection without questions, or without judgments, that says what was looked for.

    Args:
        collection: The collection.
        folder: The folder that was loaded; another source is only named.
    """
    documents, name, queries = [*islice(collection.documents, 2)] or ["d1"], os.fspath(folder), collection.queries
    is_folder = name != "" and Path(name).is_dir()
    new = is_folder and find_project_file(name) is None
    if queries:
        columns = ", ".join(dict.fromkeys(repr(key) for row in islice(queries.values(), 50) for key in row.fields))
        return InputError(
            f"{many(len(queries), 'question')}, none with judgments"
            + (f"; its columns {columns} are not read as ids of documents" if columns else ""),
            where=name,
            fix=f"add a column relevant with ids of documents, such as {documents[0]!r}, or judge some documents: "
            f"rankgauge {f'init {shlex.quote(name)}' if new else 'judge create'}",
        )
    files = pages_of(Path(name))[1] if is_folder else []
    tables = sorted(file for file in files if file.lower().endswith((".csv", ".tsv", ".xlsx")))
    fix = f"name the questions: rankgauge init {shlex.quote(name)}" if new else next_step("project: no questions")
    if tables and tables[0].endswith(".xlsx"):
        fix = f"convert it: {conversions(Path(name), tables)}"
    elif is_folder and (not tables or tables == ["questions.csv"]):
        # A comparison needs two questions.
        examples = shlex.join([documents[0], documents[-1]])
        write = f'printf \'question,relevant\\nQUESTION 1,"%s"\\nQUESTION 2,"%s"\\n\' {examples}'
        fix = f"write them: {write} > {shlex.quote(f'{name}/questions.csv')}"
    return InputError(
        "there are no questions: looked for questions.csv, .tsv, or .jsonl, queries.*, and topics.*"
        + (f"; found {', '.join(tables[:5])}" if tables else ""),
        where=name,
        fix=fix,
    )


# Above this number, documents are not kept in memory.
_MANY = 20_000
_EACH = 2_000
_TITLES = ("title", "headline", "name")


def _ir_row(item: Any) -> dict[str, Any]:
    """Convert a document or query to id, title, text, and further fields."""
    row = item._asdict()
    key = row.pop("doc_id" if "doc_id" in row else "query_id")
    title = next((row.pop(name) for name in _TITLES if isinstance(row.get(name), str)), "")
    text = next((row.pop(n) for n in ("text", "body") if isinstance(row.get(n), str)), None)
    if text is None:
        text, title = (title, "") if title else (item.default_text(), "")
    plain = {k: v for k, v in row.items() if isinstance(v, str | int | float) and v != ""}
    return {"id": key, "title": title, "text": text, **plain}


def rows_reader(data: Any, name: str) -> RowReader:
    """Return a reader of a Hugging Face dataset or another sequence of mappings.

    Raises:
        InputError: If the data is neither.
    """
    if isinstance(data, str | bytes | Mapping) or not hasattr(data, "__iter__"):
        raise InputError(
            f"got {type(data).__name__} for texts",
            where=name,
            fix="pass a path, or a dataset whose rows have an id and a text",
        )
    if iter(data) is data:
        raise InputError(
            f"got {type(data).__name__}, which can be iterated only once", where=name, fix="pass a list, or a dataset"
        )
    known = hasattr(data, "__len__")
    at = data.__getitem__ if known and hasattr(data, "__getitem__") else None
    return RowReader(lambda: data, name, _text, at, _EACH * (len(data) if known else _MANY + 1))


def _judged_of(
    queries: Mapping[str, TextRow], qrels: Qrels, chosen: str
) -> tuple[Mapping[str, TextRow], tuple[str, ...]]:
    """Return the queries judged in the chosen split, and a note if there are others."""
    if len(qrels) >= len(queries):
        return queries, ()
    mine = {key: row for key, row in queries.items() if key in qrels}
    return mine, (f"{len(mine)} of {len(queries)} queries: those judged in {chosen}",)


@dataclass(frozen=True)
class _Loader:
    """Loader of collections from each kind of source."""

    split: str | None  # split of the judgments; None: `test`, or the only split
    faults: Faults | None  # invalid rows are skipped and counted in it; None raises errors
    judged: bool  # whether to read judgments in separate files

    def folder(self, files: FileSet) -> Loaded:
        """Load a collection from a folder or archive."""
        documents, notes = documents_in(files, self.faults)
        asked = files.first(QUERIES)
        if asked is None and not documents:
            if any(PurePosixPath(name).suffix.lower() in TEXTS for name in files.names):
                raise InputError(
                    "text files are not read from archives",
                    where=files.name,
                    fix="unpack the archive, and load the folder",
                )
            convert = conversions(files.folder, pages_of(files.folder)[1]) if files.folder else ""
            raise InputError(
                "there are neither documents nor queries",
                where=files.name,
                fix="use corpus.jsonl and queries.jsonl (.gz, .tsv, .csv), TREC documents and topics, "
                "or text files (.md, .txt, .html, .rst, .ipynb)" + (f"; convert others: {convert}" if convert else ""),
            )
        queries: Mapping[str, TextRow] = {}
        qrels = None
        if asked is not None and files.source(asked).size != 0:
            queries, grades = read_questions(files.source(asked), documents, self.faults)
            qrels = None if grades is None else Qrels.of(grades)
        chosen = judgments_named(files, self.split) if self.judged else None
        beside = chosen is None and qrels is not None
        if chosen is not None:
            qrels = Qrels(read_source(files.source(chosen)))
            if len(splits_of(files)) > 1:
                queries, more = _judged_of(queries, qrels, chosen)
                notes += more
        return Loaded(documents, queries, qrels, files.title, notes, beside)

    def path(self, source: Any) -> Loaded:
        """Load a folder, an archive, or a file of documents."""
        path = Path(source)
        files = None if source == "-" else file_set(path)
        if files is not None:
            return self.folder(files)
        texts = kept(TextReader(TextSource.of(source)), self.faults)
        return Loaded(texts, name="collection" if source == "-" else path.name.split(".")[0])

    def ir_datasets(self, source: Any) -> Loaded:
        """Load a collection of ir_datasets, given by id or as an object."""
        name = source if isinstance(source, str) else ""
        no_split(name, self.split)
        data = ir_dataset(name, self.split) if name else source
        shown = f"ir_datasets:{name or getattr(data, 'dataset_id', lambda: 'dataset')()}"
        # ir_datasets downloads data only now.
        return got_from(lambda: self._ir_parts(data, shown), shown, FETCHED)

    def _ir_parts(self, data: Any, shown: str) -> Loaded:
        documents: Mapping[str, TextRow] = {}
        queries: Mapping[str, TextRow] = {}
        if hasattr(data, "docs_iter"):
            count = data.docs_count()
            size = _EACH * (_MANY + 1 if count is None else count)
            sliced = hasattr(data.docs_iter(), "__getitem__")
            at = (lambda place: _ir_row(next(iter(data.docs_iter()[place : place + 1])))) if sliced else None
            rows = RowReader(lambda: map(_ir_row, data.docs_iter()), shown, _text, at, size)
            documents = kept(rows, self.faults)
        if hasattr(data, "queries_iter"):
            queries = kept(RowReader(lambda: map(_ir_row, data.queries_iter()), shown, _text), self.faults)
        qrels = Qrels(from_rows(data.qrels_iter(), JUDGMENTS)) if hasattr(data, "qrels_iter") else None
        return Loaded(documents, queries, qrels, shown.partition(":")[2])

    def hub(self, source: Any) -> Loaded:
        """Load ``corpus``, ``queries``, and judgments of Hugging Face, by name or as objects.

        The source is the name of a repository with these configurations (judgments in ``qrels`` or
        ``default``, or in a repository whose name ends with ``-qrels``); a mapping of these names
        to datasets; or a dataset of documents.
        """
        if isinstance(source, str):
            return self._parts(_hub_parts(source), f"hf:{source}")
        if isinstance(source, Mapping) and "corpus" in source:
            return self._parts(source, "collection")
        data = one_split(source, self.split, "documents", ["corpus", "train"])
        return Loaded(kept(rows_reader(data, "documents"), self.faults))

    def mteb(self, source: Any) -> Loaded:
        """Load a retrieval task of MTEB, given by name (and ``/subset``) or as an object."""
        task, subset = source, ""
        if isinstance(source, str):
            name, _, subset = source.partition("/")
            mteb = library("mteb", extra="mteb", of=COLLECTION)
            where, fix = f"mteb:{name}", "choose the name of a retrieval task: mteb.get_tasks()"
            task = got_from(lambda: mteb.get_task(name), where, fix)
            got_from(task.load_data, where, fix)
        elif not getattr(task, "data_loaded", True):
            got_from(task.load_data, "mteb", "check that the task can be downloaded")
        where = f"mteb:{task.metadata.name}"
        part = _mteb_part(task, subset, self.split, where)
        return self._parts(part, where if subset in {"", "default"} else f"{where}/{subset}")

    def _parts(self, parts: Mapping[str, Any], name: str) -> Loaded:
        """Load a mapping of the names of parts to datasets."""
        texts = {
            part: kept(
                rows_reader(one_split(parts[part], None, f"{name}, {part}", [part, self.split]), f"{name}, {part}"),
                self.faults,
            )
            for part in ("corpus", "queries")
            if part in parts
        }
        queries = texts.get("queries", {})
        judged = next((parts[part] for part in JUDGED if parts.get(part) is not None), None)
        notes: tuple[str, ...] = ()
        qrels = None
        if judged is not None:
            data = one_split(judged, self.split, f"{name}, judgments", [TEST])
            is_table = hasattr(data, "column_names") and not isinstance(data, Mapping)
            qrels = Qrels(judged_rows(data)) if is_table else Qrels.of(data)
            if len(splits_in(judged)) > 1:
                queries, notes = _judged_of(queries, qrels, self.split or TEST)
        return Loaded(texts["corpus"], queries, qrels, name.partition(":")[2] or name, notes)

    def load(self, source: Any) -> Loaded:
        """Load a collection from any supported source."""
        if source is None:
            return Loaded()
        libraries = {"ir_datasets": self.ir_datasets, "hf": self.hub, "mteb": self.mteb}
        if isinstance(source, str) and source.partition(":")[0] in libraries and ":" in source:
            prefix, _, name = source.partition(":")
            return libraries[prefix](name)
        if isinstance(source, str | os.PathLike):
            return self.path(source)
        if hasattr(source, "docs_iter") or hasattr(source, "queries_iter"):
            return self.ir_datasets(source)
        is_hub = type(source).__module__.partition(".")[0] == "datasets"
        if is_hub or (isinstance(source, Mapping) and "corpus" in source):
            return self.hub(source)
        if hasattr(source, "metadata") and hasattr(source, "load_data"):
            return self.mteb(source)
        raise InputError(f"got {type(source).__name__}, which is not a collection", where="collection", fix=_FIX)


def _hub_parts(name: str) -> dict[str, Any]:
    hub = library("datasets", extra="huggingface", of=COLLECTION)
    where, fix = f"hf:{name}", "check the name, and that it has the parts corpus and queries"
    configs = got_from(lambda: hub.get_dataset_config_names(name), where, fix)
    wanted = [part for part in ("corpus", "queries") if part in configs]
    if "corpus" not in wanted:
        raise InputError(
            f"there is no part named corpus; parts: {', '.join(configs[:8])}",
            where=where,
            fix="load its parts with datasets.load_dataset, and pass them: Collection.load("
            '{"corpus": ..., "queries": ..., "qrels": ...})',
        )
    parts = {part: got_from(partial(hub.load_dataset, name, part), where, fix) for part in wanted}
    return parts | {"qrels": hub_judgments(name, configs)}


def _mteb_part(task: Any, subset: str, split: str | None, where: str) -> Mapping[str, Any]:
    """Return documents, queries, and judgments of the chosen subset and split."""
    data = getattr(task, "dataset", None) or {}
    parts = {(str(subset), str(split)): part for subset, splits in data.items() for split, part in splits.items()}
    if not parts or not all(isinstance(part, Mapping) and "relevant_docs" in part for part in parts.values()):
        raise InputError(
            "the task lacks documents, queries, or judgments", where=where, fix="choose a task of the type Retrieval"
        )
    fitting = [key for key in parts if subset in {"", key[0]} and (split is None or split == key[1])]
    if len(fitting) > 1 and split is None:
        fitting = [key for key in fitting if key[1] == TEST] or fitting
    if len(fitting) != 1:
        raise InputError(
            "there is no such subset or split" if not fitting else "there are several subsets or splits",
            where=where,
            fix="choose one, as mteb:NAME/SUBSET and split=...: "
            + ", ".join(f"{subset} {split}" for subset, split in parts),
        )
    return parts[fitting[0]]


_FIX = (
    "pass a folder, a .zip, a file of documents, ir_datasets:NAME, hf:NAME, mteb:NAME, or an object of these libraries"
)


def load(
    source: Any = None,
    *,
    documents: Any = None,
    queries: Any = None,
    qrels: Any = None,
    split: str | None = None,
    faults: Faults | None = None,
    judged: bool = True,
) -> Loaded:
    """Load a collection from any supported source; named parts replace those of the source."""
    loaded = _Loader(split, faults, judged).load(source)
    if documents is not None:
        loaded = replace(loaded, documents=kept(_reader(documents, "documents"), faults))
    if queries is not None:
        # Judgments of the replaced queries may not apply.
        own = None if loaded.beside else loaded.qrels
        if isinstance(queries, str | os.PathLike):
            asked, grades = read_questions(TextSource.of(queries), loaded.documents, faults)
            own = own if grades is None else Qrels.of(grades)
        else:
            asked = kept(_reader(queries, "queries"), faults)
        loaded = replace(loaded, queries=asked, qrels=own)
    if qrels is not None:
        loaded = replace(loaded, qrels=Qrels.of(qrels))
    return loaded


def _reader(source: Any, what: str) -> Any:
    if isinstance(source, str | os.PathLike):
        return TextReader(TextSource.of(source))
    return rows_reader(source, what)
