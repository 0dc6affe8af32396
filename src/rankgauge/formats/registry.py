"""Declarations of file formats and compression methods.

A declaration states what a format contains, how its files are recognized, and which functions read
and write them. Reading, detection, conversion, command-line options, messages, and the table in
``docs/reference/formats.md`` are derived from it.

Line readers have the signature ``(lines, rows) -> PairTable``: `lines` yields pairs of line number
and bytes, `rows` is an empty :class:`~rankgauge.formats.rows.Rows`. Piece readers yield tables of
consecutive rows. Writers have the signature ``(tables, layout, tag) -> Iterator[bytes | str]``. All
are named by ``"module:function"`` within this package and imported when needed.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

Content: TypeAlias = Literal["qrels", "run", "queries", "documents", "collection"]
CONTENTS: tuple[str, ...] = get_args(Content)
_PAIRS: tuple[Content, ...] = ("qrels", "run")
_TEXTS: tuple[Content, ...] = ("queries", "documents")
_ALL = (*_PAIRS, *_TEXTS)
# Elasticsearch stores ratings as signed 32-bit integers.
_INT_32 = 2**31 - 1
_NO_QUERY_TEXT = "{} needs the text of each query, but judgments have only its id: fill in the text"


@dataclass(frozen=True)
class Format:
    """A file format."""

    name: str  # name in `format=`, and before a path on the command line (``csv:runs.txt``)
    example: str  # example of a file, in Markdown
    known_by: str  # how files are recognized, in Markdown
    reads: tuple[Content, ...] = ()  # kinds of content that can be read
    writes: tuple[Content, ...] = ()  # kinds of content that can be written
    suffixes: tuple[str, ...] = ()  # file name extensions
    # Line reader; empty if `pieces` or a general reader (TREC, columnar) reads the format.
    reader: str = ""
    pieces: str = ""  # piece reader, if the format can be read in pieces
    writer: str = ""  # writer of judgments or runs; empty if the general columnar writer is used
    begins: str = ""  # detects the format by the first line, if the file name does not determine it
    named: bool = True  # whether it can be passed to a reader as `format=`
    read_as: str = ""  # format whose reader reads it, if it cannot be named itself
    columns: bool = False  # whether values are identified by column names or keys
    unique: bool = False  # whether each pair of query and document can occur only once
    empty_queries: bool = False  # whether queries without documents can be stored
    largest_grade: int = 0  # largest grade, if grades must be integers; otherwise 0
    ratings: bool = False  # whether tools that read the format treat every number as a rating
    dropped: str = ""  # what is lost when converting from it
    missing: str = ""  # what users must fill in after converting to it


FORMATS = (
    Format(
        "trec",
        example="judgments `query iteration document grade`; runs `query Q0 document rank score "
        "tag`; topics and documents with tags",
        known_by="no other format matches; `<top>`, `<DOC>`",
        reads=_ALL,
        writes=_ALL,
        writer="trec:trec_lines",
    ),
    Format(
        "csv",
        example="a header and cells between commas (also `;` and `\\|`)",
        known_by="`.csv`, or the header",
        reads=_ALL,
        writes=_ALL,
        suffixes=(".csv",),
        pieces="delimited:csv_pieces",
        writer="delimited:csv_lines",
        columns=True,
    ),
    Format(
        "tsv",
        example="a header and cells between tabs; without a header, the fields of TREC",
        known_by="`.tsv`, or the header",
        reads=_ALL,
        writes=_ALL,
        suffixes=(".tsv",),
        pieces="delimited:tsv_pieces",
        writer="delimited:tsv_lines",
        columns=True,
    ),
    Format(
        "json",
        example='`{"q1": {"d1": 2}}`, columns, rows, or the JSON of a search tool',
        known_by="`.json`, or the first character",
        reads=_ALL,
        writes=_PAIRS,
        suffixes=(".json",),
        reader="json_files:read_json",
        writer="json_files:json_by_query",
        unique=True,
        empty_queries=True,
    ),
    Format(
        "jsonl",
        example='`{"query_id": "q1", "doc_id": "d1", "score": 12.5}`, one object per line',
        known_by="`.jsonl`, `.ndjson`, or the first line",
        reads=_ALL,
        writes=_ALL,
        suffixes=(".jsonl", ".ndjson"),
        pieces="json_files:json_line_pieces",
        writer="json_files:json_lines",
        columns=True,
    ),
    Format(
        "smart",
        example="`1 28 0 0.000000` (CISI, CACM, MED); texts with `.I`, `.T`, `.W`",
        known_by="the last two fields of the first line are 0 and a zero with a point; `.I`",
        reads=("qrels", *_TEXTS),
        reader="classic_formats:read_smart",
        begins="classic_formats:begins_smart",
    ),
    Format(
        "npl",
        example="a query, lines of documents, `/` (`rlv-ass`)",
        known_by="the first line is one number",
        reads=("qrels",),
        reader="classic_formats:read_npl",
        begins="classic_formats:begins_npl",
    ),
    Format(
        "letor",
        example="`2 qid:1 1:0.5 # d1` (LETOR, SVMlight)",
        known_by="`qid:` in the first line",
        reads=("qrels",),
        reader="classic_formats:read_letor",
        begins="classic_formats:begins_letor",
    ),
    Format(
        "parquet",
        example="a table of three columns",
        known_by="the first bytes",
        named=False,
        reads=_PAIRS,
        writes=_PAIRS,
        suffixes=(".parquet", ".pq", ".parq"),
        columns=True,
    ),
    Format(
        "arrow",
        example="a table of three columns, as Arrow IPC (Feather)",
        known_by="the first bytes",
        named=False,
        reads=_PAIRS,
        writes=_PAIRS,
        suffixes=(".arrow", ".feather", ".ipc"),
        columns=True,
    ),
    Format(
        "msmarco",
        example="`query document rank`",
        known_by="three fields, the third counts from 1 to n in every query",
        reads=("run",),
        writes=("run",),
        writer="trec:msmarco_lines",
    ),
    Format("trec3", example="`query document score`", known_by="only by its name", reads=("run",)),
    Format(
        "beir",
        example="`query-id corpus-id score` and integer grades, between tabs",
        known_by="the header",
        named=False,
        read_as="tsv",
        reads=("qrels",),
        writes=("qrels",),
        writer="delimited:beir_lines",
        unique=True,
        largest_grade=2**53,
    ),
    Format(
        "rank-eval",
        example="a request of `_rank_eval` of Elasticsearch",
        known_by="`requests`",
        named=False,
        read_as="json",
        reads=("qrels",),
        writes=("qrels",),
        writer="search_tools:rank_eval_request",
        unique=True,
        empty_queries=True,
        largest_grade=_INT_32,
        ratings=True,
        dropped="the request, metric, and index for Elasticsearch",
        missing="every request is match_all on the index 'documents': fill in your query and index",
    ),
    Format(
        "opensearch",
        example="an OpenSearch judgment list; as `.csv` the same as `quepid`",
        known_by="`judgmentRatings`",
        named=False,
        read_as="json",
        reads=("qrels",),
        writes=("qrels",),
        writer="search_tools:opensearch_judgments",
        unique=True,
        empty_queries=True,
        ratings=True,
        dropped="the name and description of the list",
        missing=_NO_QUERY_TEXT.format("opensearch"),
    ),
    Format(
        "quepid",
        example="`query,docid,rating`",
        known_by="the header",
        named=False,
        read_as="csv",
        reads=("qrels",),
        writes=("qrels",),
        writer="delimited:quepid_lines",
        unique=True,
        ratings=True,
        missing=_NO_QUERY_TEXT.format("quepid"),
    ),
)
_BY_NAME = {form.name: form for form in FORMATS}
_BY_SUFFIX = {suffix: form for form in FORMATS for suffix in form.suffixes}
SUFFIXES = tuple(_BY_SUFFIX)


def _names(content: Content) -> tuple[str, ...]:
    return tuple(form.name for form in FORMATS if form.named and content in form.reads)


QRELS_FORMATS = _names("qrels")
RUN_FORMATS = _names("run")
TEXT_FORMATS = _names("documents")
TARGET_FORMATS = tuple(form.name for form in FORMATS if form.writes)


def format_named(name: str) -> Format:
    """Return the declaration of a format."""
    return _BY_NAME[name]


def load(function: str) -> Callable[..., Any]:
    """Import a reader or writer by its ``"module:function"``."""
    module, _, name = function.partition(":")
    loaded: Callable[..., Any] = getattr(import_module(f"rankgauge.formats.{module}"), name)
    return loaded


# First bytes of a bzip2 block, and of the end-of-stream marker in an empty file.
_BLOCKS = (b"1AY&SY", b"\x17rE8P\x90")


class Packing(NamedTuple):
    """A compression method; ``formats/compression.py`` implements it."""

    name: str  # name of the method
    suffix: str  # file name extension
    starts: tuple[bytes, ...]  # possible first bytes of files
    program: str  # command that decompresses (``-d``) and checks (``-t``) files


PACKINGS = (
    Packing("gzip", ".gz", (b"\x1f\x8b",), "gzip"),
    Packing("bzip2", ".bz2", tuple(b"BZh%d" % n + block for n in range(1, 10) for block in _BLOCKS), "bzip2"),
    Packing("xz", ".xz", (b"\xfd7zXZ\0",), "xz"),
    Packing("zstd", ".zst", (b"\x28\xb5\x2f\xfd",), "zstd"),
    Packing("lz4", ".lz4", (b'\x04"M\x18',), "lz4"),
)


@dataclass(eq=False)
class BrokenPackError(Exception):
    """Compressed data is corrupt or truncated."""

    what: str  # kind of compressed data
    check: str  # command that checks a file


def packing_of(name: str) -> Packing | None:
    """Return the compression method indicated by a file name, if any."""
    lower = name.lower()
    return next((packing for packing in PACKINGS if lower.endswith(packing.suffix)), None)


def unpacked(name: str) -> str:
    """Return the file name without a compression extension."""
    packing = packing_of(name)
    return name if packing is None else name[: -len(packing.suffix)]


def description_of(name: str) -> str:
    """Return the file NAME.about.json that describes judgments; empty if there is none.

    A compressed file has the description of the file without the compression extension.
    """
    for described in (name, unpacked(name)):
        path = f"{described}.about.json"
        if name and "\0" not in path and os.path.isfile(path):  # noqa: PTH113 - slow to load
            return path
    return ""


def ending(name: str) -> str:
    """Return the lower-case extension of a file name, ignoring a compression extension."""
    return os.path.splitext(unpacked(name))[1].lower()  # noqa: PTH122 - pathlib is slow to load


def target_format(name: str) -> str | None:
    """Return the format for writing a file with this name; None if unknown."""
    form = _BY_SUFFIX.get(ending(name))
    return None if form is None else form.name


def format_of(name: str) -> str | None:
    """Return the format for reading a file with this name; None if unknown."""
    form = target_format(name)
    return form if form is not None and _BY_NAME[form].named else None


@dataclass(frozen=True)
class InFormat(os.PathLike[str]):
    """A file with an explicit format, accepted wherever a path is.

    Args:
        path: The file; ``-`` is standard input.
        format: A value of the `format` parameter of ``read_qrels`` and ``read_run``.

    Example:
        >>> from rankgauge import Run, sample_path
        >>> len(Run.of(InFormat(sample_path("runs/bm25.run"), "trec"))) > 0
        True
    """

    path: str | os.PathLike[str]
    format: str

    def __fspath__(self) -> str:
        return os.fspath(self.path)
