"""Files that look like judgments or runs, line by line, and are neither: named, not measured."""

from __future__ import annotations

import re

from rankgauge.errors import FormatError
from rankgauge.formats import sgml, smart
from rankgauge.formats.layout import RUN, Layout
from rankgauge.formats.lines import shorten

__all__ = ["refuse"]

# What trec_eval calls its measures; -Z puts a Z before the name.
_MEASURE = (
    rb"Z?(runid|num_\w+|map\w*|gm_\w+|P_\w+|recall_\w+|iprec_at_recall_[\d.]+|ndcg\w*|Rndcg\w*|"
    rb"bpref\w*|recip_rank|Rprec\w*|success_\w+|set_\w+|infAP|11pt_avg|relative_P\w*|relstring\w*|"
    rb"utility|G|binG|rbp\w*|prefs_\w+)"
)
_PRINTED = re.compile(rb"(?P<name>" + _MEASURE + rb")(?P<pad> *)\t(?P<query>\S+)\t\S+\s*$")
_DEVIATIONS = re.compile(rb"(?P<query>\S+) (?P<name>" + _MEASURE + rb") -?\d+\.\d+ -?\d+\.\d+\s*$")


def refuse(first: bytes, name: str, number: int, layout: Layout) -> None:
    """Refuse a file that begins with a line of something else.

    Args:
        first: The first line that says something.
        name: The name of the file.
        number: The number of the line.
        layout: Judgments or run: what was wanted.

    Raises:
        FormatError: If it does.
    """
    what, fix = _taken_for(first, layout)
    if what:
        wanted = f"{what}, wanted {layout.words}"
        raise FormatError(wanted, path=name, line=number, text=shorten(first), fix=fix)


def _taken_for(first: bytes, layout: Layout) -> tuple[str, str]:
    printed = _PRINTED.match(first)
    if printed is not None and (printed["pad"] or printed["query"] == b"all"):
        return f"this is what trec_eval prints ({printed['name'].decode()})", _insist(layout)
    deviations = _DEVIATIONS.match(first)
    if deviations is not None:
        said = f"these are means and deviations for trec_eval -Z ({deviations['name'].decode()})"
        return said, _insist(layout)
    if first.startswith(b"<") and sgml.begins(first):
        return "these are topics or documents with tags", _texts(layout)
    if smart.begins(first):
        return "these are queries or documents in the mark-up of SMART", _texts(layout)
    key, tab, text = first.rstrip().partition(b"\t")
    if tab and b"\t" not in text and b" " in text.strip() and b" " not in key:
        return "these are ids with a text each", _texts(layout)
    return "", ""


def _insist(layout: Layout) -> str:
    option = "--format" if layout is RUN else "--qrels-format"
    return (
        "give the judgments and the run that it was made from; if a query has that name: "
        f"{option} trec"
    )


def _texts(layout: Layout) -> str:
    return (
        f"give {layout.words}, with lines such as: {layout.example}; texts are read by --collection"
    )
