"""Detect the format of a file by its first line, and recognize files of other kinds."""

from __future__ import annotations

import re
from typing import Any

from rankgauge.errors import FormatError
from rankgauge.formats.columns import RUN, Layout, columns_of
from rankgauge.formats.lines import shorten
from rankgauge.formats.registry import FORMATS, load
from rankgauge.formats.rows import PairInput
from rankgauge.formats.trec import is_line, places_of

# Names of measures in the output of trec_eval; -Z prefixes a Z.
_MEASURE = (
    rb"Z?(runid|num_\w+|map\w*|gm_\w+|P_\w+|recall_\w+|iprec_at_recall_[\d.]+|ndcg\w*|Rndcg\w*|"
    rb"bpref\w*|recip_rank|Rprec\w*|success_\w+|set_\w+|infAP|11pt_avg|relative_P\w*|relstring\w*|"
    rb"utility|G|binG|rbp\w*|prefs_\w+)"
)
_PRINTED = rb"(?P<name>" + _MEASURE + rb")(?P<pad> *)\t(?P<query>\S+)\t\S+\s*$"
_DEVIATIONS = rb"(?P<query>\S+) (?P<name>" + _MEASURE + rb") -?\d+\.\d+ -?\d+\.\d+\s*$"


def guess_format(first: bytes, layout: Layout) -> str:
    """Return the format of judgments or a run that begins with this line."""
    fields = first.split()
    # A line of SMART judgments is one of TREC judgments, too: of document 0.
    if is_line(fields, layout) and fields[2] != b"0":
        return "trec"
    if first.startswith((b"{", b"[")):
        return "jsonl" if _is_row(first, layout) else "json"
    if _has_columns(first.split(b"\t"), layout):
        return "tsv"
    if is_header(first, layout):
        return "csv"
    content = "run" if layout is RUN else "qrels"
    for form in FORMATS:
        if form.begins and content in form.reads and load(form.begins)(first):
            return form.name
    return "trec"


def has_header(first: bytes, layout: Layout) -> bool:
    """Return whether this tab-separated line is a header."""
    if is_header(first, layout):
        return True
    # A line of the right width without a number is a header with unknown names.
    cells = first.split(b"\t")
    return places_of(cells, layout) is not None and not is_line(cells, layout)


def is_header(line: bytes, layout: Layout) -> bool:
    """Return whether this line is a table header with known columns."""
    return any(_has_columns(line.split(by), layout) for by in (b"\t", b",", b";", b"|"))


def first_object(first: bytes) -> Any:
    """Parse a first line as JSON; return None if it is not a complete value."""
    import json

    try:
        return json.loads(first)
    except (ValueError, RecursionError):
        return None  # an object of several lines, or broken: the reader reports it


def _has_columns(cells: list[bytes], layout: Layout) -> bool:
    names = [cell.decode("utf-8", "replace") for cell in cells]
    return columns_of(names, layout) is not None


def _is_row(first: bytes, layout: Layout) -> bool:
    value = first_object(first)
    if not isinstance(value, dict):
        return False
    columns = columns_of(value, layout)
    if columns is None:
        from rankgauge.formats.json_files import Nested

        nested = Nested.of(value, PairInput(layout, ""))
        columns = None if nested is None else nested.columns
    return columns is not None and not isinstance(value[columns.query], list | dict)


def refuse_lookalike(first: bytes, number: int, origin: PairInput) -> None:
    """Refuse a file whose first line belongs to another kind of file."""
    doubtful = first.startswith((b"<", b".I ")) or b" \t" in first or b"\tall\t" in first or first.count(b"\t") == 1
    doubtful = doubtful or (first.count(b".") > 1 and all(b"." in word for word in first.split()[2:4]))
    what, fix = _taken_for(first, origin.layout) if doubtful else ("", "")
    if what:
        wanted = f"{what}, expected {origin.layout.words}"
        raise FormatError(wanted, path=origin.name, line=number, text=shorten(first), fix=fix)


def _is_trec(fields: list[bytes], layout: Layout) -> bool:
    """Return whether the line, which contains a tab, is one of a run or of judgments."""
    size, place = (6, 4) if layout is RUN else (4, 3)
    if len(fields) != size or fields[1].upper() not in {b"0", b"Q0"}:
        return False
    return re.fullmatch(rb"[-+.\deE]+", fields[place]) is not None


def _taken_for(first: bytes, layout: Layout) -> tuple[str, str]:
    from rankgauge.formats import classic_formats, sgml

    option = "--format" if layout is RUN else "--qrels-format"
    insist = f"pass the judgments and the run that it was made from; if it is the name of a query: {option} trec"
    printed = re.match(_PRINTED, first)
    if printed is not None and (printed["pad"] or printed["query"] == b"all"):
        return f"this is output of trec_eval ({printed['name'].decode()})", insist
    deviations = re.match(_DEVIATIONS, first)
    if deviations is not None:
        name = deviations["name"].decode()
        return f"these are means and deviations for trec_eval -Z ({name})", insist
    what = ""
    key, tab, text = first.rstrip().partition(b"\t")
    if first.startswith(b"<") and sgml.begins(first):
        what = "these are topics or documents with tags"
    elif classic_formats.begins_text(first):
        what = "these are queries or documents in SMART format"
    elif (
        tab and b"\t" not in text and b" " in text.strip() and b" " not in key and not (_is_trec(first.split(), layout))
    ):
        what = "these are pairs of id and text"
    texts = f"use {layout.words}, with lines such as: {layout.example}; texts are read by "
    return what, texts + "--collection"
