"""A large file that several threads read gives what one thread gives: values, notes, counts, and errors."""

import gzip
import json
import random
import re
import signal
import subprocess
import sys
import time

import pytest

import rankgauge as rg
from rankgauge.core import native
from rankgauge.data import joined_blocks
from rankgauge.formats import fast_trec, pieces
from rankgauge.formats.columns import RUN
from rankgauge.formats.pieces import PairFile

MEASURES = ("nDCG@3", "AP", "RR", "P@2", "R@5", "Judged@4", "ERR@5")
FILES = 400
LINES = {
    "trec": "{query} Q0 {doc} {rank} {score} tag",
    "tabs": " {query}\tQ0\t{doc}\t{rank}\t{score} \t tag",
    "later": "{doc} {query} {rank} {score}",
    "csv": "{query},{doc},{score}",
    "tsv": "{query}\t{doc}\t{score}",
}


def lines_of(rng, form):
    """Return the lines of a run, with what a file may have that is unusual."""
    queries = rng.sample(range(60), rng.randint(1, 30))
    prefix = rng.choice(["", "q"])
    rows = []
    for query in queries:
        docs = rng.sample(range(30), rng.randint(1, 12))
        scores = [rng.choice([0.5, 0.25, 3.0, -1.0, rng.random()]) for _ in docs]
        scores.sort(reverse=rng.random() < 0.7)
        rows += [(f"{prefix}{query}", f"d{doc}", score) for doc, score in zip(docs, scores, strict=True)]
    lines = [
        LINES[form].format(query=query, doc=doc, rank=place % 7, score=score)
        for place, (query, doc, score) in enumerate(rows)
    ]
    place = min(len(lines) - 1, int(rng.triangular(0, len(lines), len(lines))))
    odd = rng.choice([*[""] * 8, "interleaved", "again", "duplicate", "number", "short", "comment", "blank", "bytes"])
    if odd == "interleaved":
        rng.shuffle(lines)
    elif odd == "again":
        lines.append(lines[0].replace("d", "x"))
    elif odd == "duplicate":
        lines.insert(place, lines[place])
    elif odd in {"number", "short", "bytes"}:
        *_, score = rows[place]
        text = {"number": "high", "short": "", "bytes": f"{score} \u00e9"}[odd]
        lines[place] = lines[place].replace(str(score), text)
    elif odd:
        lines.insert(place, {"comment": "# a comment", "blank": ""}[odd])
    return lines


def file_of(rng, folder):
    """Write a run file, and return its path and judgments."""
    form = rng.choice(["trec"] * 4 + [*LINES])
    lines = lines_of(rng, form)
    if form in {"csv", "tsv"}:
        lines.insert(0, LINES[form].format(query="query_id", doc="doc_id", score="score"))
    end = rng.choice(["\n", "\n", "\n", "\r\n"])
    text = end.join(lines) + rng.choice([end, end, "", 3 * end])
    data = rng.choice([b"", b"", b"", b"\xef\xbb\xbf", b"# made by hand\n"]) + text.encode()
    path = folder / f"a.{form if form in {'csv', 'tsv'} else 'run'}"
    path.write_bytes(gzip.compress(data, 1) if rng.random() < 0.1 else data)
    prefix = rng.choice(["", "q"])
    qrels = {
        f"{prefix}{query}": {f"d{doc}": rng.choice([-1, 0, 1, 2]) for doc in range(rng.randint(1, 15))}
        for query in rng.sample(range(60), rng.randint(1, 40))
    }
    return path, qrels


def outcome(qrels, path, **how):
    """Return all of an evaluation, or its error."""
    try:
        evaluation = rg.evaluate(qrels, path, MEASURES, **how)
    except rg.RankgaugeError as error:
        return type(error), str(error)
    values = evaluation.per_query.tobytes(), evaluation.undefined.tobytes()
    return json.dumps(evaluation.to_dict()), str(evaluation), values, evaluation.findings, dict(evaluation.counts)


@pytest.fixture
def parts(monkeypatch):
    """Let all files be large, in small pieces; return the numbers of results of files."""
    counts = []
    joined = joined_blocks.join_parts

    def counting(*arguments):
        results = joined(*arguments)
        counts.append(0 if results is None else len(results))
        return results

    monkeypatch.setattr(pieces, "LARGE_FILE", 0)
    monkeypatch.setattr(fast_trec, "_PIECE", 600)
    monkeypatch.setattr(joined_blocks, "join_parts", counting)
    return counts


@pytest.mark.parametrize("part", range(4))
def test_several_threads_give_what_one_gives(tmp_path, parts, part):
    rng = random.Random(f"large {part}")
    divided = declined = 0
    for _ in range(FILES // 4):
        path, qrels = file_of(rng, tmp_path)
        how = {
            "ties": rng.choice(["trec", "trec", "input", "best", "worst"]),
            "duplicates": rng.choice(["error", "error", "first", "best"]),
            "queries": rng.choice(["all", "all", "intersection"]),
            "unjudged": rng.choice(["not relevant"] * 3 + ["removed"]),
        }
        alone = outcome(qrels, path, **how)
        parts.clear()
        shared = outcome(qrels, path, **how, jobs=rng.randint(2, 5))
        assert shared == alone, (path.read_bytes(), qrels, how)
        divided += parts[-1:] > [1]
        declined += parts[-1:] == [0]
        path.unlink()
    if native.core is not None:
        assert divided > 20
        assert declined > 10


@pytest.mark.parametrize(
    ("name", "start", "line"),
    [
        ("a.run", "\n# a comment\n", "q{query} Q0 d{doc} 1 {score} t\n"),
        ("a.csv", "doc_id,query_id,score\r\n", "d{doc},q{query},{score}\r\n"),
        ("a.tsv", "query_id\tdoc_id\tscore\n", "q{query}\td{doc}\t{score}\n"),
    ],
)
def test_the_parts_of_a_file_contain_whole_queries_and_all_lines(tmp_path, monkeypatch, name, start, line):
    monkeypatch.setattr(pieces, "LARGE_FILE", 1000)
    path = tmp_path / name
    sizes = [3, 40, 1, 1, 200, 7, 7, 7]
    lines = [line.format(query=query, doc=doc, score=-doc) for query, size in enumerate(sizes) for doc in range(size)]
    path.write_bytes((start + "".join(lines)).encode())
    data = path.read_bytes()
    assert PairFile(path, RUN).parts(1) == []
    for count in range(2, 20):
        found = PairFile(path, RUN).parts(count)
        assert 2 <= len(found) <= min(count, len(sizes))
        assert b"".join(data[start:stop] for start, stop in found) == "".join(lines).encode()
        queries = [set(re.findall(rb"q\d", data[start:stop])) for start, stop in found]
        assert sum(map(len, queries)) == len(sizes)
    assert PairFile(path, RUN, 1 << 20).parts(2) == []  # a limit of memory
    monkeypatch.setattr(pieces, "LARGE_FILE", len(data) + 1)
    assert PairFile(path, RUN).parts(2) == []


@pytest.mark.parametrize("text", ["q1 Q0 d1 1 0.5 t\n" * 100, "q1 d1 0.5\n" * 100, "[]", "", "PK\x03\x04 and so on"])
def test_other_files_are_not_divided(tmp_path, monkeypatch, text):
    monkeypatch.setattr(pieces, "LARGE_FILE", 0)
    path = tmp_path / "a.run"
    path.write_text(text)
    assert len(PairFile(path, RUN).parts(4)) < 2


def test_a_broken_line_in_the_last_part_is_named(tmp_path, parts):
    path = tmp_path / "a.run"
    lines = [f"q{query} Q0 d{doc} 1 {-doc} t\n" for query in range(50) for doc in range(20)]
    lines[-3] = "q49 Q0 d17 1 high t\n"
    path.write_text("".join(lines))
    with pytest.raises(rg.InputError, match=r"a\.run, line 998[\s\S]*high"):
        rg.evaluate({"q1": {"d1"}}, path, "RR", jobs=3)
    assert parts in ([0], [])


def test_compare_reads_large_files_in_threads(tmp_path, parts):
    paths = []
    for name in ("a", "b"):
        paths.append(tmp_path / f"{name}.run")
        rows = [(query, doc) for query in range(50) for doc in range(20)]
        score = {"a": -1, "b": 1}[name]
        paths[-1].write_text("".join(f"q{query} Q0 d{doc} 1 {doc * score} t\n" for query, doc in rows))
    qrels = {f"q{query}": {f"d{query % 7}": 1} for query in range(50)}
    alone = rg.compare(qrels, paths, "RR")
    assert parts == [0, 0]
    assert rg.compare(qrels, paths, "RR", jobs=6).to_dict() == alone.to_dict()
    assert native.core is None or parts[2:] == [3, 3]


@pytest.mark.slow
def test_an_interrupt_ends_the_threads_of_a_file(tmp_path):
    path = tmp_path / "a.run"
    block = "".join(f"{{0}} Q0 d{doc} 1 {-doc} t\n" for doc in range(1000))
    with path.open("w") as stream:
        for query in range(15_000):
            stream.write(block.replace("{0}", str(query)))
    program = (
        "import sys, rankgauge as rg\n"
        "print('begun', flush=True)\n"
        "while True:\n"
        "    rg.evaluate({'1': {'d1'}}, sys.argv[1], 'RR', jobs=2)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", program, path], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout.readline() == b"begun\n"
    time.sleep(1)
    began = time.monotonic()
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert time.monotonic() - began < 10
    assert errors.strip().endswith(b"KeyboardInterrupt")
