"""Every file of the test data is read as its kind, or rejected as the reference says."""

from __future__ import annotations

import gzip
import io
import json
import pickle
import re
import tarfile
import zipfile
from collections import Counter
from collections.abc import Callable, Iterable
from fnmatch import fnmatch
from pathlib import Path

import pytest

from rankgauge.corpus.collection import read_documents, read_queries
from rankgauge.data.qrels import read_qrels
from rankgauge.data.run import read_run
from rankgauge.errors import RankgaugeError

PAGE = Path(__file__).resolve().parents[2] / "docs/reference/formats.md"

# The kind of each file, by the first matching pattern. Every file needs one.
KINDS = (
    # Files distributed with trec_eval.
    ("trec-eval-sample/out.*", "refused", "this is output of trec_eval"),
    ("trec-eval-sample/v9.0.8/out.*", "refused", "this is output of trec_eval"),
    ("trec-eval-sample/zscores_file", "refused", "these are means and deviations for trec_eval -Z"),
    ("trec-eval-sample/prefs.test", "refused", "got 5 fields, expected"),
    ("trec-eval-sample/prefs.comment.test", "refused", "got 5 fields, expected"),
    ("trec-eval-sample/prefs.rank20", "refused", "got 5 fields"),
    ("trec-eval-sample/prefs.results.test", "run", "fields"),
    ("trec-eval-sample/qrels.123", "several judges", "times for query"),
    ("trec-eval-sample/qrels.comments.123", "several judges", "times for query"),
    ("trec-eval-sample/qrels*", "qrels", "fields"),
    ("trec-eval-sample/results*", "run", "fields"),
    ("*/oracle/*.json.gz", "refused", ""),
    ("*/expected/*.json.gz", "refused", ""),
    # Collections.
    ("*/runs/*.run.gz", "run", "fields"),
    ("*/qrels/dev_no_header.tsv", "qrels", "fields"),
    ("*/qrels/test.tsv", "qrels and run", "header"),
    ("*/trec/qrels.txt", "qrels", "fields"),
    ("dl20-doc/qrels.txt", "qrels", "fields"),
    ("*/topics.tsv", "queries", "lines"),
    ("*corpus.jsonl*", "documents", "lines"),
    ("*queries.jsonl", "queries", "lines"),
    # Unusual files.
    ("sampled/qrels.txt", "refused", "got 5 fields, expected"),
    ("sampled/run.txt", "run", "fields"),
    ("sampled/*.json", "qrels and run", "json"),
    ("formats/cisi_rel_raw.txt", "qrels", "smart"),
    ("formats/npl_rlv-ass_raw.txt", "qrels", "npl"),
    ("formats/cran*rel*.txt", "qrels", "fields"),
    ("formats/*qrels*", "qrels", "fields"),
    ("formats/run_msmarco_3col.tsv", "qrels and run", "fields"),
    ("formats/run_dict.json", "qrels and run", "json"),
    ("formats/run_*", "run", "fields"),
    ("formats/cran.qry", "queries", rb"^\.I "),
    ("formats/topics_beir_touche.tsv.gz", "queries", "lines"),
    ("formats/topics_trec_sgml.txt", "queries", rb"<top>"),
    ("formats/topics_*", "queries", rb"<topic "),
    ("formats/beir-mini.zip", "archive", "qrels/test.tsv"),
    # Queries for drift.
    ("drift/ecommerce-queryset-vs-ubi-log/production.jsonl", "a log", "is also in line 202"),
    ("drift/*/NOTE.txt", "refused", "fields, expected"),
    ("drift/*.jsonl*", "queries", "lines"),
    # Neither judgments nor runs.
    ("clicks-ubi/*", "refused", "the keys are"),
    ("codesearchnet-annotations/*.csv", "refused", "the columns are"),
    ("preferences/*.csv", "refused", "the columns are"),
    ("rag/ragchecker_human_labeled.json.gz", "refused", "the keys are"),
    ("rag/*.json*", "refused", ""),
    ("*README.md", "refused", "fields, expected"),
)


def said_in_the_page() -> list[str]:
    """Return the messages in the table of errors of the reference."""
    text = PAGE.read_text(encoding="utf-8").partition("## Rejected files")[2]
    rows = [line.split("|") for line in text.splitlines() if line.startswith("| ")]
    return [said for row in rows[1:] for said in re.findall("`([^`]+)`", row[2])]


def bytes_of(path: Path) -> bytes:
    data = path.read_bytes()
    return gzip.decompress(data) if data.startswith(b"\x1f\x8b") else data


def counted(path: Path, how: str | bytes) -> Counter[str]:
    """Count rows of each query, or of each text, with code independent of the readers."""
    data = bytes_of(path)
    if isinstance(how, bytes):
        return Counter(str(n) for n, _ in enumerate(re.findall(how, data, re.MULTILINE)))
    if how == "json":
        return Counter({query: len(docs) for query, docs in json.loads(data).items()})
    lines = [line for line in data.decode().split("\n") if line.strip() and line[0] != "#"]
    if how == "lines":
        return Counter(str(n) for n, _ in enumerate(lines))
    if how == "npl":
        blocks = [block.split() for block in data.decode().split("/")]
        return Counter({block[0]: len(block) - 1 for block in blocks if block})
    return Counter(line.split()[0] for line in lines[how == "header" :])


def refusals(path: Path, readers: Iterable[Callable[..., object]]) -> list[str]:
    found = []
    for read in readers:
        with pytest.raises(RankgaugeError) as caught:
            read(path)
        assert "\nfix: " in str(caught.value), (path, read)
        found.append(str(caught.value))
    return found


def looked_at(path: Path, kind: str, how: str | bytes) -> list[str]:
    """Check one file against its kind; return the message if it is rejected."""
    if kind in {"qrels", "run", "qrels and run"}:
        expected = counted(path, how)
        readers = {"qrels": [read_qrels], "run": [read_run]}.get(kind, [read_qrels, read_run])
        for read in readers:
            found = read(path)
            ends = found.table.offsets.tolist()
            rows = {q: b - a for q, a, b in zip(found, ends, ends[1:], strict=False)}
            assert rows == expected, path
        return refusals(path, [one for one in (read_qrels, read_run) if one not in readers])
    if kind in {"queries", "documents"}:
        texts = read_queries(path) if kind == "queries" else read_documents(path)
        assert len(texts) == len(counted(path, how)), path
        return refusals(path, [read_qrels, read_run])
    if kind == "archive":
        assert read_qrels(path) == read_qrels(path.with_suffix("") / str(how))
        return refusals(path, [read_run])
    if kind == "several judges":
        (said,) = refusals(path, [read_qrels])
    elif kind == "a log":
        (said,) = refusals(path, [read_queries])
        assert str(how) in said
        return refusals(path, [read_qrels, read_run])
    else:
        said = "\n".join(refusals(path, [read_qrels, read_run]))
    assert str(how) in said, path
    return [said] if kind == "several judges" else refusals(path, [read_qrels, read_run])


@pytest.mark.slow
def test_every_file_is_read_or_refused_as_documented(data_folder: Path) -> None:
    known = said_in_the_page()
    assert len(known) > 20
    unsaid = []
    for path in sorted(data_folder.rglob("*")):
        if not path.is_file():
            continue
        name = path.relative_to(data_folder).as_posix()
        kind, how = next(((kind, how) for pattern, kind, how in KINDS if fnmatch(name, pattern)), ("", ""))
        assert kind, f"nobody says what {name} is"
        messages = looked_at(path, kind, how)
        unsaid += [(name, said) for said in messages if not any(one in said for one in known)]
    assert unsaid == []


def test_every_pattern_has_its_file(data_folder: Path) -> None:
    names = [path.relative_to(data_folder).as_posix() for path in data_folder.rglob("*")]
    first = Counter(next((p for p, _, _ in KINDS if fnmatch(name, p)), "") for name in names)
    assert [pattern for pattern, _, _ in KINDS if not first[pattern]] == []


def zipped() -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("[Content_Types].xml", "<Types/>")
        archive.writestr("xl/workbook.xml", "<workbook/>")
    return packed.getvalue()


def tarred() -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        archive.addfile(tarfile.TarInfo("a.run"), io.BytesIO())
    return packed.getvalue()


MADE = {
    "this is a pickle": pickle.dumps({"q1": {"d1": 1}}, protocol=4),
    "this is a NumPy array": b"\x93NUMPY\x01\x00v\x00{'descr': '<f8'}\n" + bytes(80),
    "this is a tar archive": tarred(),
    "NUL byte": b"q1\x00Q0\n",
    "this is an Excel or Word file": zipped(),
    "this is UTF-16": "q1 Q0 d1 1 2.5 t\n".encode("utf-16"),
    "may be a rank or a score": b"q1 d1 0.5\n",
    "got 2 fields, expected 6": b"q1 d1\n",
    "which does not name the quer": b'{"hits": {"hits": []}}',
    "which has judgments; expected a run": b'{"requests": [{"id": "1", "ratings": []}]}',
    "this looks like judgments": b"q1 0 d1 1\n",
    "expected the documents of a query": b'{"q1": 3}',
}


@pytest.mark.parametrize("message", MADE)
def test_errors_without_an_example_in_the_data_are_as_documented(message: str, tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(MADE[message])
    assert any(message.startswith(one) or one == message for one in said_in_the_page())
    with pytest.raises(RankgaugeError) as caught:
        read_run(path)
    assert message in str(caught.value)
