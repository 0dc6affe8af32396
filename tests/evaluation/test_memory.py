"""A memory limit is respected and changes no digit, for any parts of the files."""

import json
import os
import random
import signal
import subprocess
import sys
from collections import Counter

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from rankgauge import FormatError, InputError, MismatchError, Qrels, Run, evaluate, read_run
from rankgauge.core.progress import showing
from rankgauge.data import storage
from rankgauge.data.storage import StoredQrels
from rankgauge.errors import StorageError
from rankgauge.evaluation import read_judgments
from rankgauge.formats import fast_trec, pieces, readers
from rankgauge.formats.columns import RUN

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

MEASURES = ("nDCG@5", "AP", "RR", "R@2", "P@3", "Bpref", "GMAP", "FirstRel")
LIMIT = "64MB"


def write_rows(path, rows, value):
    """Write rows of (query, document, number) in this order."""
    names = ("query_id", "doc_id", value)
    match path.suffix:
        case ".csv":
            lines = [",".join(names), *(f"{q},{d},{v}" for q, d, v in rows)]
        case ".jsonl":
            lines = [json.dumps(dict(zip(names, row, strict=True))) for row in rows]
        case ".parquet":
            columns = [list(column) for column in zip(*rows, strict=True)]
            table = pa.table(dict(zip(names, columns, strict=True)))
            pq.write_table(table, path, row_group_size=70)
            return path
        case ".arrow":
            columns = [list(column) for column in zip(*rows, strict=True)]
            table = pa.table(dict(zip(names, columns, strict=True)))
            with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
                writer.write_table(table, 5)
            return path
        case _ if value == "score":
            lines = [f"{q} Q0 {d} 1 {v} t" for q, d, v in rows]
        case _:
            lines = [f"{q} 0 {d} {v}" for q, d, v in rows]
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


class Parts:
    """Sizes of parts far below those of real limits."""

    def __init__(self, monkeypatch, *, piece=500, rows=5, bucket=300, bits=2, stored=True):
        for name in ("_LEAST", "_MOST"):
            monkeypatch.setattr(pieces, name, piece)
        monkeypatch.setattr(pieces, "_ROW", max(1, piece // rows))
        monkeypatch.setattr(pieces, "_OBJECTS", max(1, piece // rows))
        monkeypatch.setattr(fast_trec, "_PIECE", max(100, piece // 3))
        monkeypatch.setattr(storage, "_MOST", bucket)
        monkeypatch.setattr(storage, "_BITS", bits)
        monkeypatch.setattr(storage, "_COUNT", 1 << bits)
        monkeypatch.setattr(storage, "_PIECE", piece)
        for name in ("_TEXT", "_PACKED"):
            monkeypatch.setattr(pieces, name, 10**9 if stored else 0)


@pytest.fixture
def parts(monkeypatch):
    return Parts(monkeypatch, piece=3000, rows=100, bucket=6000)


@st.composite
def inputs(draw):
    """Rows of judgments and of a run in some order, and options of the evaluation."""
    rng = random.Random(draw(st.integers(0, 2**32)))
    docs = [f"d{number}" for number in range(14)] + ["d\xe9", "a-rather-long-document-id"]
    judged = [f"q{number}" for number in range(draw(st.integers(1, 14)))]
    qrels = [
        (query, doc, rng.choice([-1, 0, 0, 1, 2])) for query in judged for doc in rng.sample(docs, rng.randint(1, 9))
    ]
    levels = draw(st.sampled_from([2, 5, 1000]))
    names = [*judged, "other", "another"]
    run = [
        (query, doc, rng.randrange(levels) / 8)
        for query in rng.sample(names, rng.randint(1, len(names)))
        for doc in rng.sample(docs, rng.randint(1, 16))
    ]
    duplicates = draw(st.sampled_from(["error", "first", "best"]))
    if duplicates != "error":
        run += [(query, doc, rng.randrange(levels) / 8) for query, doc, _ in rng.sample(run, 1)]
        run.sort(key=lambda row: names.index(row[0]))
    for rows in (qrels, run):
        order = draw(st.sampled_from(["together", "shuffled", "one apart"]))
        if order == "shuffled":
            rng.shuffle(rows)
        elif order == "one apart":
            rows.append(rows.pop(rng.randrange(len(rows))))
    common = {query for query, *_ in run} & set(judged)
    queries = ["all", "intersection"] if common else ["all"]
    ties = draw(st.sampled_from(["trec", "input", "best", "worst", "mean"]))
    policies = {
        "ties": ties,
        "queries": draw(st.sampled_from([*queries, judged[: len(judged) // 2 + 1]])),
        "duplicates": duplicates,
        "undefined": draw(st.sampled_from(["zero", "skip"])),
        "unjudged": draw(st.sampled_from(["not relevant", "removed"])),
        "draws": 3 if ties == "mean" else 0,
    }
    sizes = {
        "piece": draw(st.integers(120, 1500)),
        "rows": draw(st.integers(1, 40)),
        "bucket": draw(st.integers(1, 1500)),
        "bits": draw(st.integers(0, 4)),
        "stored": draw(st.booleans()),
    }
    forms = [draw(st.sampled_from([".txt", ".csv", ".jsonl", ".parquet", ".arrow"])) for _ in "ab"]
    return qrels, run, policies, sizes, forms


def outcome(*args, **kwargs):
    """Return everything that an evaluation reports, or its error."""
    try:
        found = evaluate(*args, **kwargs)
    except InputError as error:
        return type(error), error.what
    return (
        found.query_ids,
        found.per_query.tobytes(),
        found.undefined.tobytes(),
        str(found.mean()),
        dict(found.counts),
        dict(found.coverage),
        [(n.code, n.severity) for n in found.findings],
        found.notes,
    )


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(inputs())
def test_parts_and_buckets_and_memory_give_the_same_bits(tmp_path, given_inputs):
    qrels, run, policies, sizes, (form, other) = given_inputs
    judged = write_rows(tmp_path / f"qrels{form}", qrels, "relevance")
    path = write_rows(tmp_path / f"run{other}", run, "score")
    in_memory = outcome(Qrels.of(qrels), Run.of(run), MEASURES, **policies)
    with pytest.MonkeyPatch.context() as patch:
        Parts(patch, **sizes)
        in_parts = outcome(judged, path, MEASURES, **policies, memory=LIMIT)
        by_default = outcome(judged, path, MEASURES, **policies)
    assert in_parts == in_memory
    assert by_default == in_memory


@pytest.mark.slow
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(inputs())
def test_parts_of_many_files_give_the_same_bits(tmp_path, given_inputs):
    test_parts_and_buckets_and_memory_give_the_same_bits.hypothesis.inner_test(tmp_path, given_inputs)


ROWS = [(f"q{n % 40}", f"d{n // 40}", round(1 / (1 + n), 6)) for n in range(2000)]
GRADES = [(query, doc, 1 + len(query) % 2) for query, doc, _ in ROWS[:600]]


@pytest.mark.usefixtures("parts")
@pytest.mark.parametrize("form", [".txt", ".csv", ".jsonl", ".parquet", ".arrow"])
def test_several_runs_are_evaluated_with_judgments_that_stay_on_disk(tmp_path, form):
    judged = read_judgments(write_rows(tmp_path / f"qrels{form}", GRADES, "relevance"), "AP", memory=LIMIT)
    assert isinstance(judged, StoredQrels)
    assert repr(judged) == "<StoredQrels: 40 queries, 600 judgments>"
    for rows in (sorted(ROWS), ROWS[::-1]):
        path = write_rows(tmp_path / f"run{form}", rows, "score")
        found = evaluate(judged, path, "AP", memory=LIMIT)
        assert found == evaluate(Qrels.of(GRADES), read_run(path), "AP")


@pytest.mark.parametrize("order", [sorted, list])
@pytest.mark.usefixtures("parts")
def test_a_parquet_file_in_order_is_evaluated_while_it_is_read(tmp_path, order, monkeypatch):
    path = write_rows(tmp_path / "a.parquet", order(ROWS), "score")
    expected = evaluate(GRADES, read_run(path), "AP")
    whole = []
    read = readers.read_table
    monkeypatch.setattr(readers, "read_table", lambda *args: whole.append(args) or read(*args))
    assert evaluate(GRADES, path, "AP") == expected
    assert bool(whole) == (order is list)


@pytest.mark.parametrize("form", [".run", ".csv", ".parquet"])
@pytest.mark.usefixtures("parts")
def test_no_block_of_rows_that_are_not_adjacent_is_evaluated(tmp_path, form):
    file = pieces.PairFile(write_rows(tmp_path / f"a{form}", ROWS, "score"), RUN, 64_000_000)
    with pytest.raises(fast_trec.NotInBlocksError, match="not adjacent"):
        next(file.blocks())


@pytest.mark.parametrize("memory", [None, LIMIT])
@pytest.mark.usefixtures("parts")
def test_a_folder_of_parquet_files_is_one_run(tmp_path, memory):
    for name, rows, value in (("run", ROWS, "score"), ("qrels", GRADES, "grade")):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "_SUCCESS").touch()
        for start in range(0, len(rows), 450):
            path = folder / f"part-{start:05d}.snappy.parquet"
            write_rows(path, rows[start : start + 450], value)
    found = evaluate(tmp_path / "qrels", f"{tmp_path}/run/", "AP", memory=memory)
    assert found.to_columns() == evaluate(Qrels.of(GRADES), Run.of(ROWS), "AP").to_columns()
    assert found.run_name == "run"
    [columns] = [note for note in found.notes if "columns" in note]
    assert "part-00000" in columns
    broken = tmp_path / "run" / "part-00900.snappy.parquet"
    broken.write_bytes(broken.read_bytes()[:-20])
    with pytest.raises(FormatError, match="the file cannot be read") as caught:
        evaluate(tmp_path / "qrels", tmp_path / "run", "AP", memory=memory)
    assert caught.value.path == str(broken)
    (tmp_path / "run" / "notes.txt").touch()
    with pytest.raises(InputError, match="folder"):
        evaluate(tmp_path / "qrels", tmp_path / "run", "AP", memory=memory)


@pytest.mark.parametrize("uneven", ["# a comment\n", "q1  Q0 d 1 0.5 t more\n"], ids=str)
@pytest.mark.usefixtures("parts")
def test_lines_of_different_layout_are_read_one_by_one(tmp_path, uneven):
    path = write_rows(tmp_path / "a.run", sorted(ROWS), "score")
    lines = path.read_text().splitlines(keepends=True)
    for place in (0, 700, 1999):
        path.write_text("".join([*lines[:place], uneven, *lines[place:]]))
        found = evaluate(GRADES, path, ["AP", "nDCG@10"], memory=LIMIT)
        assert found == evaluate(GRADES, read_run(path), ["AP", "nDCG@10"])


@pytest.mark.usefixtures("parts")
def test_a_third_column_is_a_rank_or_a_score_as_without_a_limit(tmp_path):
    path = tmp_path / "a.run"
    rows = [f"{query} {doc} {n // 40 + 1}\n" for n, (query, doc, _) in enumerate(ROWS)]
    path.write_text("".join(rows))
    assert evaluate(GRADES, path, "AP", memory=LIMIT) == evaluate(GRADES, path, "AP")
    path.write_text("".join(rows).replace("q7 d3 4\n", "q7 d3 0.5\n"))
    with pytest.raises(FormatError, match="may be a rank or a score"):
        evaluate(GRADES, path, "AP", memory=LIMIT)


@pytest.mark.usefixtures("parts")
@pytest.mark.parametrize("memory", [None, "64MB"])
def test_empty_partitions_and_markers_in_a_folder_are_no_rows(tmp_path, memory):
    names = ("query_id", "doc_id", "score")
    table = pa.table(dict(zip(names, (["q1", "q1"], ["d1", "d2"], [2.0, 1.0]), strict=True)))
    for place, part in enumerate((table.slice(0, 0), table, table.slice(0, 0))):
        pq.write_table(part, tmp_path / f"part-{place}.parquet")
    for name in ("_SUCCESS", ".part-0.parquet.crc"):
        (tmp_path / name).write_bytes(b"")
    assert evaluate({"q1": {"d2"}}, tmp_path, "RR", memory=memory).mean() == {"RR": 0.5}
    pq.write_table(table.slice(0, 0), tmp_path / "part-1.parquet")
    with pytest.raises(InputError, match=f"{tmp_path.name}: there are no rows"):
        evaluate({"q1": {"d2"}}, tmp_path, "RR", memory=memory)
    (tmp_path / "part-1.parquet").write_bytes(b"")
    with pytest.raises(InputError, match=r"part-1.parquet: the file is empty \(0 bytes\)"):
        evaluate({"q1": {"d2"}}, tmp_path, "RR", memory=memory)


@pytest.mark.parametrize("kind", [pa.float64(), pa.int32()])
def test_a_null_score_is_reported_with_its_row_and_column(tmp_path, kind):
    columns = [["q1"] * 3, ["d1", "d2", "d3"], pa.array([2, 1, None], kind)]
    table = pa.table(dict(zip(("query_id", "doc_id", "score"), columns, strict=True)))
    pq.write_table(table, tmp_path / "a.parquet")
    message = r"a.parquet, row 3: the score is missing: column 'score' is null"
    with pytest.raises(InputError, match=message):
        evaluate({"q1": {"d2"}}, tmp_path / "a.parquet", "RR")


@pytest.mark.parametrize("adjacent", [True, False])
def test_a_repeated_document_is_named_wherever_its_rows_are(tmp_path, adjacent):
    rows = ["q1,d1,2", "q1,d2,1", "q2,d1,2", "q1,d1,1"]
    path = tmp_path / "a.csv"
    path.write_text("\n".join(["query_id,doc_id,score", *(sorted(rows) if adjacent else rows)]))
    with pytest.raises(InputError, match="document 'd1' occurs twice for query 'q1'"):
        evaluate({"q1": {"d2"}}, path, "RR", memory="64MB")


@pytest.mark.parametrize("name", ["a.parquet", "a.run", "a.csv", "a.jsonl"])
@pytest.mark.parametrize("order", [sorted, list])
@pytest.mark.usefixtures("parts")
def test_the_share_of_the_rows_read_is_reported(tmp_path, name, order):
    path = write_rows(tmp_path / name, order(ROWS), "score")
    shares = {"read": [], "evaluated": []}
    with showing(lambda share, done: shares[done].append(share)):
        evaluate(GRADES, path, "AP", memory=LIMIT)
    assert len(shares["read"]) > 2
    assert max(shares["read"]) == shares["read"][-1] == 1
    # Rows in random order are first written to temporary files.
    assert shares["evaluated"][-1:] == ([1] if order is list else [])


def test_one_query_may_be_larger_than_all_parts(tmp_path):
    rows = [("q1", f"d{n}", (n * 7919) % 10007) for n in range(5000)] + [("q2", "d1", 1)]
    judged = [("q1", f"d{n}", n % 3) for n in range(0, 9000, 7)] + [("q2", "d1", 1)]
    for order in (rows, rows[::-1], random.Random(1).sample(rows, len(rows))):
        path = write_rows(tmp_path / "a.parquet", order, "score")
        found = evaluate(write_rows(tmp_path / "q.csv", judged, "rel"), path, "AP", memory=LIMIT)
        assert found.mean() == evaluate(judged, Run.of(rows), "AP").mean()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes with a name are a thing of POSIX")
@pytest.mark.usefixtures("parts")
def test_a_pipe_is_split_while_it_is_read(tmp_path):
    text = write_rows(tmp_path / "a.run", ROWS, "score").read_text()
    pipe = tmp_path / "pipe"
    if not hasattr(os, "mkfifo"):
        pytest.skip("needs named pipes")
    os.mkfifo(pipe)
    writer = subprocess.Popen(
        [sys.executable, "-c", "import sys; open(sys.argv[1], 'w').write(sys.stdin.read())", str(pipe)],
        stdin=subprocess.PIPE,
        text=True,
    )
    writer.stdin.write(text)
    writer.stdin.close()
    assert evaluate(GRADES, pipe, "AP", memory=LIMIT).mean() == evaluate(GRADES, Run.of(ROWS), "AP").mean()
    assert writer.wait(10) == 0


@pytest.mark.parametrize("memory", ["abc", "", "MB", "-1GB", "1PB", True, "12 apples"])
def test_an_invalid_size_is_refused_with_the_right_form(memory):
    with pytest.raises(InputError, match="not a size") as caught:
        evaluate({"q": {"d"}}, {"q": ["d"]}, "AP", memory=memory)
    assert '"512MB"' in caught.value.fix


@pytest.mark.parametrize("memory", ["63MB", 1000, "0"])
def test_too_little_memory_is_refused(memory):
    with pytest.raises(InputError, match="at least 64MB"):
        evaluate({"q": {"d"}}, {"q": ["d"]}, "AP", memory=memory)


def test_objects_in_memory_and_iterators_are_evaluated_unchanged():
    blocks = ({query: {"d": 1.0}} for query in ("q1", "q2"))
    assert evaluate({"q1": {"d"}, "q2": {"e"}}, blocks, "RR", memory="1 GiB").mean() == {"RR": 0.5}


def test_inputs_that_are_read_whole_are_refused(tmp_path, monkeypatch):
    with pytest.raises(InputError, match="with a profile"):
        evaluate({"q": {"d"}}, {"q": ["d"]}, "AP", memory=LIMIT, profile="ranx")
    with pytest.raises(InputError, match="for records"):
        evaluate([{"query": "q"}], measures="AP", memory=LIMIT)
    path = tmp_path / "a.json"
    path.write_text(json.dumps({f"q{n}": {"d": 1.0} for n in range(50)}))
    assert evaluate({"q1": {"d"}}, path, "RR", memory=LIMIT).mean() == {"RR": 1.0}
    monkeypatch.setattr(pieces, "_SHARE", 10**6)
    with pytest.raises(InputError, match="of the format json is read whole") as caught:
        evaluate({"q1": {"d"}}, path, "RR", memory=LIMIT)
    assert "rankgauge convert" in caught.value.fix
    assert caught.value.where == str(path)


def test_values_that_do_not_fit_are_refused_before_the_run_is_read(tmp_path, monkeypatch):
    monkeypatch.setattr("rankgauge.evaluation.context._QUERY_BYTES", 10**8)
    with pytest.raises(InputError, match="values of 2 queries take about 200 MB") as caught:
        evaluate({"q": {"d"}, "r": {"d"}}, tmp_path / "none", "AP", memory=LIMIT)
    assert 'memory="1GB"' in caught.value.fix


FAULTS = {
    "null query": (0, None, "row 1501", "query id is missing"),
    "null document": (1, None, "row 1501", "document id is missing"),
    "null score": (2, None, "row 1501", "the score is missing: column 'score' is null"),
    "NaN score": (2, float("nan"), "", "score NaN of document 'd37' for query 'q20'"),
    "infinite score": (2, float("inf"), "", "score inf of document 'd37' for query 'q20'"),
}


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.usefixtures("parts")
def test_a_missing_value_is_refused_with_file_and_row(tmp_path, fault, order):
    column, value, where, what = FAULTS[fault]
    rows = [list(row) for row in ROWS]
    rows[1500][column] = value
    rows = rows if order > 0 else sorted(rows[:1500]) + rows[1500:]
    path = write_rows(tmp_path / "a.parquet", rows, "score")
    with pytest.raises(InputError) as caught:
        evaluate(GRADES, path, "AP", memory=LIMIT)
    assert str(path) in str(caught.value)
    assert where in caught.value.where
    assert what in caught.value.what
    assert caught.value.fix


@pytest.mark.usefixtures("parts")
def test_a_parquet_file_that_was_cut_off_is_refused(tmp_path):
    path = write_rows(tmp_path / "a.parquet", ROWS, "score")
    path.write_bytes(path.read_bytes()[:-700])
    with pytest.raises(FormatError, match="the file cannot be read") as caught:
        evaluate(GRADES, path, "AP", memory=LIMIT)
    assert caught.value.path == str(path)


@pytest.mark.usefixtures("parts")
@pytest.mark.parametrize("form", [".txt", ".parquet"])
@pytest.mark.parametrize("far", [False, True])
def test_a_repeated_document_is_refused_wherever_it_is(tmp_path, form, far):
    rows = sorted(ROWS)
    rows.insert(len(rows) if far else 3, rows[2])
    path = write_rows(tmp_path / f"a{form}", rows, "score")
    with pytest.raises(InputError, match="occurs twice for query 'q0'") as caught:
        evaluate(GRADES, path, "AP", memory=LIMIT)
    assert str(path) in caught.value.where
    judged = write_rows(tmp_path / f"q{form}", [*GRADES, GRADES[0]], "relevance")
    with pytest.raises(InputError, match="occurs twice for query 'q0'"):
        evaluate(judged, path, "AP", memory=LIMIT)


@pytest.mark.usefixtures("parts")
def test_ids_of_different_types_are_the_same_ids_and_decimals_are_refused(tmp_path):
    numbers = [(int(query[1:]), int(doc[1:]), score) for query, doc, score in ROWS]
    texts = [(str(query), str(doc), 1) for query, doc, _ in numbers[:500]]
    run = write_rows(tmp_path / "a.parquet", numbers, "score")
    qrels = write_rows(tmp_path / "q.parquet", texts, "relevance")
    assert evaluate(qrels, run, "AP", memory=LIMIT).to_columns() == (evaluate(texts, numbers, "AP").to_columns())
    floats = write_rows(tmp_path / "b.parquet", [(float(q), d, s) for q, d, s in numbers], "score")
    with pytest.raises(InputError, match="decimal number"):
        evaluate(qrels, floats, "AP", memory=LIMIT)


@pytest.mark.usefixtures("parts")
def test_inputs_without_a_common_query_are_refused_as_without_a_limit(tmp_path):
    path = write_rows(tmp_path / "a.csv", [(f"x{q}", d, s) for q, d, s in ROWS], "score")
    judged = write_rows(tmp_path / "q.csv", GRADES, "rel")
    with pytest.raises(MismatchError, match="no query of the run is judged"):
        evaluate(judged, path, "AP", memory=LIMIT)
    path = write_rows(tmp_path / "a.csv", [(q, d.upper(), s) for q, d, s in ROWS], "score")
    with pytest.raises(MismatchError, match="differ only in leading zeros, spaces, or case"):
        evaluate(judged, path, "AP", memory=LIMIT)


@pytest.mark.parametrize("bits", [0, 3])
@pytest.mark.usefixtures("parts")
def test_constant_hashes_change_only_the_time(tmp_path, monkeypatch, bits):
    judged = write_rows(tmp_path / "q.parquet", GRADES, "relevance")
    path = write_rows(tmp_path / "a.parquet", ROWS, "score")
    expected = evaluate(judged, path, MEASURES)
    monkeypatch.setattr(
        "rankgauge.core.ids.Ids.hashes", lambda self: (self.lengths & ((1 << bits) - 1)).astype(np.uint64)
    )
    assert evaluate(judged, path, MEASURES, memory=LIMIT) == expected


def test_every_row_is_in_one_bucket_once(monkeypatch):
    Parts(monkeypatch, bits=3)
    tables = [Run.of(ROWS[start : start + 130]).table for start in range(0, 2000, 130)]
    for most in (1, 500, 10**9):
        seen, queries = Counter(), Counter()
        for table, positions in storage.Buckets(tables).tables(most):
            queries.update(table.queries.tolist())
            assert len(positions) == len(table.queries)
            seen.update(
                zip(
                    np.repeat(table.queries.tolist(), np.diff(table.offsets)).tolist(),
                    table.docs.tolist(),
                    table.values.tolist(),
                    strict=True,
                )
            )
        assert seen == Counter((q.encode(), d.encode(), s) for q, d, s in ROWS)
        assert set(queries.values()) == {1}


def test_judgments_on_disk_are_found_in_any_order(tmp_path, monkeypatch):
    Parts(monkeypatch)
    rows = random.Random(3).sample(GRADES, len(GRADES))
    stored = storage.StoredQrels(write_rows(tmp_path / "q.csv", rows, "rel"), 64_000_000)
    whole = Qrels.of(rows)
    assert stored.queries == whole.table.queries
    numbers = np.array([3, 17, 4, 39, 0])
    part = stored.part(numbers)
    assert {query: dict(part[query]) for query in part} == {
        whole.query_ids[n]: dict(whole[whole.query_ids[n]]) for n in numbers.tolist()
    }
    assert list(part) == [whole.query_ids[n] for n in numbers.tolist()]
    assert len(stored.part(numbers[:0])) == 0
    assert stored.outline().judgments == len(rows)
    assert (stored.outline().lacking(2) == whole.lacking(2)).all()


SCRIPT = """
import resource, sys
import rankgauge
from rankgauge.data import storage
judged, path, memory = sys.argv[1:4]
print("ready", flush=True)
"""


def process(tmp_path, *words, then, first="", **more):
    """Start a process that evaluates, with a separate folder for temporary files."""
    folder = tmp_path / "temporary"
    folder.mkdir(exist_ok=True)
    return subprocess.Popen(
        [sys.executable, "-c", first + SCRIPT + then, *map(str, words)],
        env={**os.environ, "TMPDIR": str(folder)},
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        **more,
    )


EVALUATE = "print(rankgauge.evaluate(judged, path, 'AP', memory=memory).mean())\n"


@pytest.mark.skipif(sys.platform == "win32", reason="signals are a thing of POSIX")
@pytest.mark.parametrize("stop", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_a_process_that_ends_early_leaves_no_file(tmp_path, stop):
    judged = write_rows(tmp_path / "q.csv", GRADES, "rel")
    path = write_rows(tmp_path / "a.parquet", ROWS, "score")
    wait = (
        "import time\n"
        "read = storage.Buckets.tables\n"
        "def slow(*args):\n"
        "    print('split', flush=True); time.sleep(60); yield from read(*args)\n"
        "storage.Buckets.tables = slow\n"
    )
    small = "from rankgauge.formats import pieces\npieces._LEAST = pieces._MOST = 2000\n"
    found = process(tmp_path, judged, path, LIMIT, first=small, then=wait + EVALUATE)
    assert [found.stdout.readline() for _ in range(2)] == ["ready\n", "split\n"]
    found.send_signal(stop)
    out, _ = found.communicate(timeout=30)
    assert out == ""
    assert found.returncode != 0
    assert list((tmp_path / "temporary").iterdir()) == []


@pytest.mark.skipif(sys.platform == "win32", reason="limits of files are a thing of POSIX")
def test_a_full_disk_is_reported_with_the_folder_and_a_fix(tmp_path):
    judged = write_rows(tmp_path / "q.csv", GRADES, "rel")
    path = write_rows(tmp_path / "a.parquet", ROWS, "score")
    small = "from rankgauge.formats import pieces\npieces._LEAST = pieces._MOST = 2000\n"
    # Bytecode would be cut off, too.
    limited = "import sys\nsys.dont_write_bytecode = True\n"
    limited += "resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000))\n" + EVALUATE
    found = process(tmp_path, judged, path, LIMIT, first=small, then=limited)
    _, said = found.communicate(timeout=30)
    assert "StorageError" in said
    assert f"{tmp_path / 'temporary'}: temporary data cannot be written: File too large" in said
    assert "TMPDIR=" in said
    assert list((tmp_path / "temporary").iterdir()) == []


def test_a_missing_temporary_folder_is_reported(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "none"))
    with pytest.raises(StorageError, match="cannot be written"):
        storage.Buckets([])


def many_rows(path, queries, docs, *, shuffled, seed=1):
    """Write a run of random documents in row groups of 100,000 rows."""
    rng = np.random.default_rng(seed)
    total = queries * docs
    order = rng.permutation(total) if shuffled else np.arange(total)
    schema = pa.schema([("query_id", pa.string()), ("doc_id", pa.string()), ("score", "f8")])
    with pq.ParquetWriter(path, schema) as writer:
        for start in range(0, total, 100_000):
            rows = order[start : start + 100_000]
            number = rows % docs * 7919 + rows // docs
            names = np.char.mod("query-%07d", rows // docs), np.char.mod("document-%d", number)
            score = (number % 9973) / 9973
            writer.write_table(pa.table([*map(pa.array, names), pa.array(score)], schema=schema))
    return path


MEASURED = """
def peak():
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) * 1024
rankgauge.evaluate(sys.argv[4], sys.argv[5], "AP", memory=memory)
before = peak()
found = rankgauge.evaluate(judged, path, ["nDCG@10", "AP"], memory=memory)
print(len(found.query_ids), peak() - before, found.mean()["AP"])
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads the peak of a process from /proc")
@pytest.mark.parametrize("shuffled", [False, True], ids=["in order", "shuffled"])
def test_two_million_rows_take_little_more_than_64_megabytes(tmp_path, shuffled):
    path = many_rows(tmp_path / "a.parquet", 20_000, 100, shuffled=shuffled)
    judged = many_rows(tmp_path / "judged.parquet", 20_000, 10, shuffled=shuffled)
    table = pq.read_table(judged)
    grades = pa.array(np.arange(table.num_rows) % 3)
    pq.write_table(table.set_column(2, "relevance", grades), judged)
    small = many_rows(tmp_path / "b.parquet", 100, 10, shuffled=True)
    few = write_rows(tmp_path / "few.csv", [("query-0000001", "document-1", 1)], "rel")
    found = process(tmp_path, judged, path, LIMIT, few, small, then=MEASURED)
    out, said = found.communicate(timeout=300)
    assert found.returncode == 0, said
    queries, peak, mean = out.splitlines()[-1].split()
    assert int(queries) == 20_000
    # The first large file costs pyarrow about 50 MB, whatever the limit is.
    assert int(peak) < 64_000_000 + 50_000_000
    assert float(mean) == evaluate(judged, path, "AP").mean()["AP"]
