"""The formats of files: one declaration for each; and how files are compressed.

A declaration says what a format holds, how a file of it is recognized, and which functions read and
write it. Reading, detection, conversion, the options of the command line, messages, and the table
in ``docs/reference/formats.md`` follow from it.

Readers of lines have the signature ``(lines, rows) -> PairTable``: `lines` are pairs of number and
bytes, `rows` is an empty :class:`~rankgauge.formats.rows.Rows`. Writers have the signature
``(table, layout, tag) -> Iterator[bytes | str]``. Readers of pieces yield tables of consecutive
rows. All are named as ``"module:function"`` in this package, and imported when they are needed.
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
# Elasticsearch keeps a rating in 32 bits, with a sign.
_INT_32 = 2**31 - 1
_NO_QUERY_TEXT = "{} needs the text of each query, but judgments have only its id: fill in the text"


@dataclass(frozen=True)
class Format:
    """One format of files."""

    name: str  # what `format=` and ``--format`` call it
    example: str  # an example of a file, in Markdown
    known_by: str  # how a file of it is recognized, in Markdown
    reads: tuple[Content, ...] = ()  # kinds of content read from it
    writes: tuple[Content, ...] = ()  # kinds of content written in it
    suffixes: tuple[str, ...] = ()  # the endings of its files
    # Reads its lines; empty where `pieces` does, or the general readers of TREC and columns.
    reader: str = ""
    pieces: str = ""  # reads its lines a part at a time, where that is possible
    writer: str = ""  # writes judgments or a run; empty where the general writer of columns does
    begins: str = ""  # whether a file with this first line is one, where the name does not say it
    named: bool = True  # whether it can be named to a reader, as `format=`
    read_as: str = ""  # the format whose reader reads it, where it is not named itself
    columns: bool = False  # whether its rows have names: of columns or keys
    unique: bool = False  # whether it holds each pair of query and document only once
    empty_queries: bool = False  # whether it holds a query without documents
    largest_grade: int = 0  # where grades must be whole, the largest
    ratings: bool = False  # whether the tool that reads it takes every number for a rating
    dropped: str = ""  # what a conversion from it does not keep
    missing: str = ""  # what the user must fill in after a conversion to it


FORMATS = (
    Format(
        "trec",
        example="judgments `query iteration document grade`; runs `query Q0 document rank score "
        "tag`; topics and documents with tags",
        known_by="no other format matches; `<top>`, `<DOC>`",
        reads=_ALL, writes=_ALL, writer="trec:trec_lines",
    ),
    Format(
        "csv", example="a header and cells between commas (also `;` and `\\|`)",
        known_by="`.csv`, or the header", reads=_ALL, writes=_ALL, suffixes=(".csv",),
        pieces="delimited:csv_pieces", writer="delimited:csv_lines",
        columns=True,
    ),
    Format(
        "tsv", example="a header and cells between tabs; without a header, the fields of TREC",
        known_by="`.tsv`, or the header", reads=_ALL, writes=_ALL, suffixes=(".tsv",),
        pieces="delimited:tsv_pieces", writer="delimited:tsv_lines",
        columns=True,
    ),
    Format(
        "json", example='`{"q1": {"d1": 2}}`, columns, rows, or the JSON of a search tool',
        known_by="`.json`, or the first character", reads=_ALL, writes=_PAIRS, suffixes=(".json",),
        reader="json_files:read_json", writer="json_files:json_by_query", unique=True,
        empty_queries=True,
    ),
    Format(
        "jsonl", example='`{"query_id": "q1", "doc_id": "d1", "score": 12.5}`, one object per line',
        known_by="`.jsonl`, `.ndjson`, or the first line", reads=_ALL, writes=_ALL,
        suffixes=(".jsonl", ".ndjson"), pieces="json_files:json_line_pieces",
        writer="json_files:json_lines", columns=True,
    ),
    Format(
        "smart", example="`1 28 0 0.000000` (CISI, CACM, MED); texts with `.I`, `.T`, `.W`",
        known_by="the last two fields of the first line are 0 and a zero with a point; `.I`",
        reads=("qrels", *_TEXTS), reader="smart:read_smart", begins="smart:begins_smart",
    ),
    Format(
        "npl", example="a query, lines of documents, `/` (`rlv-ass`)",
        known_by="the first line is one number", reads=("qrels",), reader="smart:read_npl",
        begins="smart:begins_npl",
    ),
    Format(
        "letor", example="`2 qid:1 1:0.5 # d1` (LETOR, SVMlight)",
        known_by="`qid:` in the first line", reads=("qrels",), reader="letor:read_letor",
        begins="letor:begins_letor",
    ),
    Format(
        "parquet", example="a table of three columns", known_by="the first bytes", named=False,
        reads=_PAIRS, writes=_PAIRS, suffixes=(".parquet", ".pq", ".parq"), columns=True,
    ),
    Format(
        "arrow", example="a table of three columns, as Arrow IPC (Feather)",
        known_by="the first bytes", named=False, reads=_PAIRS, writes=_PAIRS,
        suffixes=(".arrow", ".feather", ".ipc"), columns=True,
    ),
    Format(
        "msmarco", example="`query document rank`",
        known_by="three fields, the third counts 1 to n in every query", reads=("run",),
        writes=("run",), writer="trec:msmarco_lines",
    ),
    Format("trec3", example="`query document score`", known_by="only by its name", reads=("run",)),
    Format(
        "beir", example="`query-id corpus-id score` and whole grades, between tabs",
        known_by="the header", named=False, read_as="tsv", reads=("qrels",), writes=("qrels",),
        writer="delimited:beir_lines", unique=True, largest_grade=2**53,
    ),
    Format(
        "rank-eval", example="a request of `_rank_eval` of Elasticsearch", known_by="`requests`",
        named=False, read_as="json", reads=("qrels",), writes=("qrels",),
        writer="search_tools:rank_eval_request", unique=True, empty_queries=True,
        largest_grade=_INT_32, ratings=True,
        dropped="the request, metric, and index for Elasticsearch",
        missing="every request is match_all on the index 'documents': fill in your query and index",
    ),
    Format(
        "opensearch", example="an OpenSearch judgment list; as `.csv` the same as `quepid`",
        known_by="`judgmentRatings`", named=False, read_as="json", reads=("qrels",),
        writes=("qrels",), writer="search_tools:opensearch_judgments", unique=True,
        empty_queries=True, ratings=True,
        dropped="the name and description of the list",
        missing=_NO_QUERY_TEXT.format("opensearch"),
    ),
    Format(
        "quepid", example="`query,docid,rating`", known_by="the header", named=False,
        read_as="csv", reads=("qrels",), writes=("qrels",), writer="delimited:quepid_lines",
        unique=True, ratings=True, missing=_NO_QUERY_TEXT.format("quepid"),
    ),
)  # fmt: skip
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
    """The declaration of a format."""
    return _BY_NAME[name]


def load(function: str) -> Callable[..., Any]:
    """A reader or writer by its ``"module:function"``."""
    module, _, name = function.partition(":")
    found: Callable[..., Any] = getattr(import_module(f"rankgauge.formats.{module}"), name)
    return found


# What a block of bzip2 starts with, and the end of an empty file of it.
_BLOCKS = (b"1AY&SY", b"\x17rE8P\x90")


class Packing(NamedTuple):
    """A way to compress one file; ``formats/compression.py`` reads and writes it."""

    name: str  # its name
    suffix: str  # the ending of its files
    starts: tuple[bytes, ...]  # the first bytes of its files
    program: str  # the program that unpacks (``-d``) and checks (``-t``) them


PACKINGS = (
    Packing("gzip", ".gz", (b"\x1f\x8b",), "gzip"),
    Packing(
        "bzip2", ".bz2", tuple(b"BZh%d" % n + block for n in range(1, 10) for block in _BLOCKS),
        "bzip2",
    ),
    Packing("xz", ".xz", (b"\xfd7zXZ\0",), "xz"),
    Packing("zstd", ".zst", (b"\x28\xb5\x2f\xfd",), "zstd"),
    Packing("lz4", ".lz4", (b'\x04"M\x18',), "lz4"),
)  # fmt: skip


class BrokenPackError(Exception):
    """Compressed data is broken, or ends early.

    Attributes:
        what: What it is compressed with.
        check: The command that checks a file.
    """

    def __init__(self, what: str, check: str) -> None:
        super().__init__(what, check)
        self.what = what
        self.check = check


def packing_of(name: str) -> Packing | None:
    """How a file of this name is compressed."""
    lower = name.lower()
    return next((packing for packing in PACKINGS if lower.endswith(packing.suffix)), None)


def unpacked(name: str) -> str:
    """The name without the ending of a compression."""
    packing = packing_of(name)
    return name if packing is None else name[: -len(packing.suffix)]


def ending(name: str) -> str:
    """The ending of a name in lower case, without that of a compression."""
    return os.path.splitext(unpacked(name))[1].lower()  # noqa: PTH122 - pathlib is slow to load


def target_format(name: str) -> str | None:
    """The format of a file to be written, by its name; None if unknown."""
    form = _BY_SUFFIX.get(ending(name))
    return None if form is None else form.name


def format_of(name: str) -> str | None:
    """The format of a file to be read, by its name; None if unknown."""
    form = target_format(name)
    return form if form is not None and _BY_NAME[form].named else None


@dataclass(frozen=True)
class InFormat(os.PathLike[str]):
    """A file and its format, accepted wherever a path is.

    Args:
        path: The file; ``-`` is standard input.
        format: What ``read_qrels`` and ``read_run`` take as `format`.

    Example:
        >>> from rankgauge import Run, sample_path
        >>> len(Run.of(InFormat(sample_path("runs/bm25.run"), "trec"))) > 0
        True
    """

    path: str | os.PathLike[str]
    format: str

    def __fspath__(self) -> str:
        return os.fspath(self.path)
