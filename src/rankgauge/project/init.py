"""Creation of a project file that describes the files in a folder."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path, PurePosixPath
from typing import Any

from rankgauge.core.project_file import data_folder
from rankgauge.core.project_names import PROJECT_FILE
from rankgauge.core.recommendations import next_step
from rankgauge.corpus.collection import Collection
from rankgauge.corpus.description import CollectionInfo, describe_collection
from rankgauge.errors import InputError, RankgaugeError
from rankgauge.formats.contents import content_of, kinds_named
from rankgauge.formats.folders import QUERIES, files_in_folder, pages_of
from rankgauge.formats.registry import unpacked
from rankgauge.retrievers.encoders import installed_encoder

_DATA = {".csv", ".json", ".jsonl", ".ndjson", ".parquet", ".qrels", ".run", ".sgml", ".trec", ".tsv", ".xml"}
_QUESTIONS = "questions (questions.csv with the columns question and relevant)"


@dataclass(frozen=True)
class NewProject:
    """A project that was created.

    Attributes:
        path: The project file.
        info: Description of the collection.
        runs: The saved runs, relative to the folder.
        encoder: The name of the encoder in the project file; empty without documents.
        next_step: The recommended next step.
    """

    path: Path
    info: CollectionInfo
    runs: tuple[str, ...]
    encoder: str
    next_step: str


def create_project(folder: str | os.PathLike[str] = ".") -> NewProject:
    r"""Write a project file for the files in a folder; an existing one is never overwritten.

    Documents are text files or a file of documents; questions may be a table that names their
    documents; judgments and runs have any format that is recognized.

    Raises:
        InputError: If there is a project already, or nothing to evaluate.

    Example:
        >>> import pathlib, tempfile
        >>> folder = pathlib.Path(tempfile.mkdtemp())
        >>> _ = (folder / "refunds.md").write_text("# Refunds\n\nThey take a week.")
        >>> _ = (folder / "questions.csv").write_text("question,relevant\nrefund time,refunds.md")
        >>> create_project(folder).info.counts()["judgments"]
        1
    """
    from jinja2 import Template

    place = Path(folder)
    path = place / PROJECT_FILE
    project = "" if place == Path() else f" {shlex.quote(str(place))}"
    if os.path.lexists(path):
        raise InputError(
            "there is a project already", where=str(path), fix=f"edit it, and run: rankgauge bench{project}"
        )
    files = _files_by_kind(place)
    nested = [name for name in pages_of(place)[1] if PurePosixPath(unpacked(name)).name.lower() in QUERIES]
    files["queries"] = files["queries"] or (nested if len(nested) == 1 else [])
    arguments, collection = _collection(place, files)
    documents, queries, qrels, runs = collection.documents, collection.queries, collection.qrels, files["run"]
    state = "init: no judgments" if queries and documents else "init: incomplete"
    if qrels and not queries and runs:
        state = "init: judgments and runs"
    elif qrels and any(query in qrels for query in queries) and (documents or runs):
        state = "init: judged"
    info = describe_collection(collection)
    logs = [file.parent.name for file in place.glob("*/manifest.json") if b'"segments"' in file.read_bytes()]
    source = ", ".join(f"{key} = {_quoted(value)}" for key, value in arguments.items())
    name, encoder = installed_encoder()
    template = Path(__file__).with_name("rankgauge.toml.jinja").read_text("utf-8")
    data_folder(place)
    with path.open("x", encoding="utf-8") as stream:
        stream.write(
            Template(template, trim_blocks=True, keep_trailing_newline=True).render(
                collection=_quoted(".") if arguments == {"source": "."} else f"{{ {source} }}",
                documents=documents,
                bm25=find_spec("bm25s"),
                name=name,
                encoder=encoder,
                log=_quoted(min(logs)) if logs else "",
                runs=map(_quoted, runs),
            )
        )

    def shell(names: Sequence[str]) -> str:
        return " ".join(shlex.quote(str(place / name)) for name in names)

    step = next_step(
        state,
        project=project,
        cd=project and f"cd{project} && ",
        qrels=shell([arguments.get("qrels", "")]),
        runs=shell(runs),
        missing=_QUESTIONS if documents else "documents (.md, .txt, or corpus.jsonl)",
    )
    return NewProject(path, info, tuple(runs), name if documents else "", step)


def _quoted(text: str) -> str:
    """Return text as a string of TOML."""
    return json.dumps(text, ensure_ascii=False)


def _files_by_kind(place: Path) -> dict[str, list[str]]:
    """Return the data files of a folder by their content: documents, queries, qrels, and run."""
    names = files_in_folder(place).names | {f"runs/{path.name}" for path in place.glob("runs/*") if path.is_file()}
    files: dict[str, list[str]] = {"documents": [], "queries": [], "qrels": [], "run": []}
    for name in sorted(filter(str.isprintable, names)):
        path = PurePosixPath(unpacked(name))
        named = path.suffix in {".txt", ""} and (kinds_named(path.name) or kinds_named(path.parent.name))
        # A file may belong to another program.
        with suppress(RankgaugeError, OSError):
            if path.suffix in _DATA or named:
                # A table of questions and their documents counts as queries.
                files[content_of(place / name, target="queries").kind].append(name)
    return files


def _collection(place: Path, files: Mapping[str, Sequence[str]]) -> tuple[dict[str, str], Collection]:
    """Return the arguments of `Collection.load`, with relative paths, and the collection."""
    arguments: dict[str, str] = {}
    collection = Collection()
    advice = f"add documents (.md, .txt, or corpus.jsonl), and {_QUESTIONS}"
    try:
        collection = Collection.load(place, invalid="skip")
        arguments["source"] = "."
    except InputError as error:  # files may have other names, or judgments several splits
        advice += "".join(error.fix.partition("; convert")[1:])
    for part in ("documents", "queries", "qrels"):
        # Text files beside a file of documents, such as README.md, are not documents.
        texts = part == "documents" and not any(map(kinds_named, files[part]))
        if files[part] and (texts or not getattr(collection, part)):
            arguments[part] = files[part][0]
    if not arguments:
        raise InputError(
            "there are no documents, questions, or judgments",
            where=str(place),
            fix=advice,
        )
    paths: dict[str, Any] = {key: place / name for key, name in arguments.items()}
    return arguments, collection if arguments.keys() == {"source"} else Collection.load(**paths, invalid="skip")
