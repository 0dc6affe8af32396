"""Fixed copies: the fault is gone, and no other byte has changed."""

import csv
import gzip
import json
import random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, strategies as st
from pyarrow import feather

from rankgauge import InputError, Qrels, Run, UnknownName, check, read_qrels, read_run
from rankgauge.checks import FINDING_KINDS, fix_inputs, fixes

QRELS = "q1 0 d1 2\nq1 0 d2 0\nq2 0 d3 1\nq2 0 d1 0\n"
RUN = "q1 Q0 d1 1 9.50 mine\nq1 Q0 d2 2 8 mine\nq2 Q0 d3 1 7e0 mine\nq2 Q0 d9 2 1.0 mine\n"


def written(folder, name, text):
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return str(path)


def mended(folder, qrels=QRELS, run=RUN, also=(), names=("qrels.txt", "a.run")):
    """Return the fixes, and the fixed copies (None if not written)."""
    given_ = [written(folder, name, text) for name, text in zip(names, (qrels, run), strict=True)]
    result = fix_inputs(check(*given_), *given_, also=also)
    result.write(folder / "out")
    paths = [folder / "out" / name for name in names]
    done = {source.rsplit("/", 1)[-1]: codes for source, codes in result.fixed.items()}
    return done, *(path.read_bytes().decode() if path.exists() else None for path in paths)


def test_every_fix_that_a_kind_declares_exists():
    # P103 needs the judgments, and the reader drops the rows of the others.
    registered = {"P103", *fixes._UNREAD, *fixes._FIXES}  # noqa: SLF001 - the registry
    assert registered == {code for code, kind in FINDING_KINDS.items() if kind.automatic}


def test_no_copy_of_correct_input_is_written(tmp_path):
    assert mended(tmp_path) == ({}, None, None)
    assert not (tmp_path / "out").exists()


def test_the_same_judgment_twice_is_written_once_and_all_other_bytes_stay(tmp_path):
    text = "# judged in May\r\nq1  0\td1 2 \nq1 0 d2 0\nq1 0 d1 2\n\nq2 0 d3 1\nq2 0 d1 0"
    done, qrels, run = mended(tmp_path, text)
    assert done == {"qrels.txt": {"J101": 1}}
    assert qrels == text.replace("q1 0 d1 2\n", "")
    assert run is None


def test_judgments_that_contradict_each_other_are_left_to_a_person(tmp_path):
    done, qrels, _ = mended(tmp_path, QRELS + "q1 0 d1 3\n")
    assert (done, qrels) == ({}, None)


def test_duplicates_with_equal_scores_are_fixed_and_others_on_request(tmp_path):
    same = RUN + "q1 Q0 d2 3 8.0 mine\n"
    assert mended(tmp_path, run=same) == ({"a.run": {"R101": 1}}, None, RUN)
    other = RUN + "q1 Q0 d2 3 99 mine\n"
    (tmp_path / "out/a.run").unlink()
    assert mended(tmp_path, run=other)[2] is None
    done, _, run = mended(tmp_path, run=other, also=["R101"])
    assert done == {"a.run": {"R101": 1}}
    assert run == other.replace("q1 Q0 d2 2 8 mine\n", "")


def test_unreadable_lines_and_invalid_scores_are_dropped_on_request(tmp_path):
    bad = RUN.replace("q2 Q0 d3", "oops\nq2 Q0 d4 1 nan mine\nq2 Q0 d3")
    assert mended(tmp_path, run=bad)[2] is None
    done, _, run = mended(tmp_path, run=bad, also=["F101", "R102"])
    assert done == {"a.run": {"F101": 1, "R102": 1}}
    assert run == RUN


def test_fixing_one_of_two_unwritable_faults_is_not_enough(tmp_path):
    bad = RUN + "oops\nq2 Q0 d4 1 nan mine\n"
    given_ = [written(tmp_path, "q", QRELS), written(tmp_path, "r", bad)]
    result = fix_inputs(check(*given_), *given_, also=["F101"])
    assert result.write(tmp_path / "out") == [
        f"{given_[1]}: not copied: it has lines that cannot be kept in a copy: --fix-also R102"
    ]
    assert not (tmp_path / "out").exists()


def test_an_unreadable_first_line_is_dropped_and_a_header_kept(tmp_path):
    bad = "oops\n" + RUN
    assert mended(tmp_path, run=bad, also=["F101"])[2] == RUN
    rows = "query_id,doc_id,score\nq1,d1,2\nq1,d2,1\nq1,d1,2\nq2,d3,1\n"
    names = ("qrels.txt", "a.csv")
    done, _, run = mended(tmp_path, run=rows, names=names)
    assert done == {"a.csv": {"R101": 1}}
    assert run == "query_id,doc_id,score\nq1,d1,2\nq1,d2,1\nq2,d3,1\n"


def test_compressed_files_stay_compressed(tmp_path):
    packed = gzip.compress((RUN + "q1 Q0 d2 3 8.0 mine\n").encode())
    paths = [written(tmp_path, "q.txt", QRELS), written(tmp_path, "a.run.gz", packed)]
    fix_inputs(check(*paths), *paths).write(tmp_path / "out")
    assert gzip.decompress((tmp_path / "out/a.run.gz").read_bytes()).decode() == RUN


def distances(folder):
    """Write 30 queries with distances as scores, and matching judgments."""
    draw = random.Random(5)
    qrels, run = [], []
    for query in range(30):
        for rank in range(1, 21):
            run.append(f"q{query} Q0 d{rank} {rank} {rank / 8 + draw.random() / 16!r} mine\n")
            if draw.random() < 0.9 / rank:
                qrels.append(f"q{query} 0 d{rank} 1\n")
        qrels.append(f"q{query} 0 other 1\n")
    return written(folder, "qrels.txt", "".join(qrels)), written(folder, "a.run", "".join(run))


def test_distances_are_negated_on_request_in_their_field_only(tmp_path):
    qrels, run = distances(tmp_path)
    found = check(qrels, run)
    assert "R104" in found.codes
    result = fix_inputs(found, qrels, run, also=["R104"])
    result.write(tmp_path / "out")
    copy = tmp_path / "out/a.run"
    before = (tmp_path / "a.run").read_text().splitlines()
    after = copy.read_text().splitlines()
    for old, new in zip(before, after, strict=True):
        fields, others = old.split(" "), new.split(" ")
        assert float(others.pop(4)) == -float(fields.pop(4))
        assert others == fields
    assert not {"R104", "R103"} & set(check(qrels, copy).codes)


def test_ranks_become_scores_on_request(tmp_path):
    draw = random.Random(3)
    rows = [f"q{q} Q0 d{r} {r} {draw.random()!r} mine\n" for q in range(9) for r in range(1, 8)]
    qrels = "".join(f"q{q} 0 d1 1\nq{q} 0 d5 0\n" for q in range(9))
    draw.shuffle(rows)
    assert mended(tmp_path, qrels, "".join(rows))[2] is None
    done, _, run = mended(tmp_path, qrels, "".join(rows), also=["R103"])
    assert done == {"a.run": {"R103": 63}}
    for old, new in zip(rows, run.splitlines(keepends=True), strict=True):
        fields = old.split(" ")
        assert new == " ".join([*fields[:4], f"{8 - int(fields[3])}.0", fields[5]])
    assert "R103" not in check(str(tmp_path / "qrels.txt"), str(tmp_path / "out/a.run")).codes


def test_a_self_retrieved_document_is_removed_on_request(tmp_path):
    own = RUN + "q1 Q0 q1 3 10 mine\nq2 Q0 q2 3 10 mine\n"
    assert mended(tmp_path, run=own)[2] is None
    done, _, run = mended(tmp_path, run=own, also="R108")
    assert (done, run) == ({"a.run": {"R108": 2}}, RUN)


@pytest.mark.parametrize(
    ("wrong", "right"),
    [("d%d", "D%d"), ("d%d", "d%04d"), ("d%d", "corpus_d%d"), ("%04d", "%d")],
    ids=["case", "zeros", "prefix", "no zeros"],
)
def test_ids_of_a_run_are_written_as_in_the_judgments(tmp_path, wrong, right):
    names = range(10, 40)
    qrels = "".join(f"q{n % 5} 0 {right % n} 1\n" for n in names)
    run = "".join(f"q{n % 5} Q0 {wrong % n} 1 {n}.50 mine\n" for n in names)
    done, judged, copy = mended(tmp_path, qrels, run)
    assert done == {"a.run": {"P103": 30}}
    assert judged is None
    assert copy == "".join(f"q{n % 5} Q0 {right % n} 1 {n}.50 mine\n" for n in names)
    assert "P103" not in check(str(tmp_path / "qrels.txt"), str(tmp_path / "out/a.run")).codes


def test_ids_that_are_not_judged_are_written_as_the_judged_ones(tmp_path):
    qrels = "".join(f"q{n % 5} 0 {n} 1\n" for n in range(10, 40))
    run = "".join(f"q{n % 5} Q0 {n:04d} 1 {n}.50 mine\n" for n in range(10, 60))
    done, _, copy = mended(tmp_path, qrels, run)
    assert done == {"a.run": {"P103": 50}}
    assert copy == "".join(f"q{n % 5} Q0 {n} 1 {n}.50 mine\n" for n in range(10, 60))


def test_ambiguous_ids_are_not_changed(tmp_path):
    qrels = "".join(f"q{n % 5} 0 {n} 1\n" for n in range(10, 40))
    run = "".join(f"q{n % 5} Q0 {n:04d} 1 {n}.50 mine\n" for n in range(10, 40))
    done, _, copy = mended(tmp_path, qrels, run + "q0 Q0 00010 2 1.5 mine\n")
    assert (done, copy) == ({}, None)


def test_data_in_memory_are_fixed_too():
    rows = [("q1", "d1", 1), ("q1", "d2", 0), ("q1", "d1", 1)]
    result = fix_inputs(check(rows), rows)
    assert result.fixed == {"judgments": {"J101": 1}}
    assert result.qrels() == Qrels.of({"q1": {"d1": 1.0, "d2": 0.0}})
    assert result.runs() == ()


def test_rows_that_are_not_lines_are_rewritten(tmp_path):
    rows = [("q1", "d1", 1), ("q1", "d2", 0), ("q1", "d1", 1)]
    said = fix_inputs(check(rows), rows).write(tmp_path)
    assert said == [f"wrote {tmp_path / 'judgments.txt'}: J101 1 row"]
    assert read_qrels(tmp_path / "judgments.txt") == Qrels.of({"q1": {"d1": 1, "d2": 0}})


def test_files_of_one_name_get_copies_of_two(tmp_path):
    paths = []
    for name in "xy":
        (tmp_path / name).mkdir()
        text = RUN + f"q1 Q0 d2 3 8.0 {name}\n"
        paths.append(written(tmp_path / name, "a.run", text))
    judged = written(tmp_path, "qrels.txt", QRELS)
    fix_inputs(check(judged, paths), judged, paths).write(tmp_path / "out")
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["2-a.run", "a.run"]


def test_copies_have_unique_names(tmp_path):
    paths = []
    for name in ("3-a.run", "x/a.run", "X/A.run"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        paths.append(written(tmp_path, name, RUN + f"q1 Q0 d2 3 8.0 {name}\n"))
    judged = written(tmp_path, "qrels.txt", QRELS)
    said = fix_inputs(check(judged, paths), judged, paths).write(tmp_path / "out")
    copies = sorted((tmp_path / "out").iterdir())
    assert [copy.name for copy in copies] == ["3-3-A.run", "3-a.run", "a.run"]
    assert len(said) == len(copies)


def test_a_copy_never_takes_the_place_of_another_input(tmp_path):
    judged = written(tmp_path, "qrels.txt", QRELS)
    for folder in ("new", "old"):
        (tmp_path / folder).mkdir()
    old = written(tmp_path / "old", "a.run", RUN + "q1 Q0 d2 3 8.0 x\n")
    new = written(tmp_path / "new", "a.run", RUN)
    with pytest.raises(InputError, match="overwrite an input"):
        fix_inputs(check(judged, [old, new]), judged, [old, new]).write(tmp_path / "new")
    assert (tmp_path / "new" / "a.run").read_text() == RUN


@pytest.mark.parametrize(
    ("name", "text", "copy"),
    [
        ("a.csv", "query_id;doc_id;score\nq1;d1;3\nq1;d1;3\nq2;d3;1\n", "query_id;doc_id;score\nq1;d1;3\nq2;d3;1\n"),
        ("b.csv", "query_id,doc_id,score\n#q1,d1,3\n#q1,d1,3\nq2,d3,1\n", "query_id,doc_id,score\n#q1,d1,3\nq2,d3,1\n"),
        (
            "c.csv",
            "\ufeffquery_id,doc_id,score\r\nq1,d1,3\r\nq1,d1,3\r\nq2,d3,1",
            "\ufeffquery_id,doc_id,score\r\nq1,d1,3\r\nq2,d3,1",
        ),
        (
            "d.run",
            "\ufeffq1 Q0 d1 1 3 x\nq1 Q0 d1 2 3 x\n# end\nq2 Q0 d3 1 1 x",
            "\ufeffq1 Q0 d1 1 3 x\n# end\nq2 Q0 d3 1 1 x",
        ),
    ],
    ids=["semicolons", "ids with a hash", "byte order mark", "byte order mark and remarks"],
)
def test_a_copy_has_the_bytes_of_its_file_but_for_the_lines_that_go(tmp_path, name, text, copy):
    _, _, run = mended(tmp_path, run=text, names=("qrels.txt", name))
    assert run is not None
    assert run.encode() == copy.encode()


def test_rows_that_span_lines_are_rewritten_with_a_note(tmp_path):
    text = 'query_id,doc_id,score,why\nq1,d1,3,"two\nlines"\nq1,d1,3,b\nq2,"d\n3",1,c\n'
    judged, run = written(tmp_path, "qrels.txt", QRELS), written(tmp_path, "a.csv", text)
    said = fix_inputs(check(judged, run), judged, run).write(tmp_path / "out")
    assert said == [f"wrote {tmp_path / 'out' / 'a.csv'}: R101 1 row; all rows were rewritten"]
    with (tmp_path / "out" / "a.csv").open(newline="") as file:
        rows = list(csv.reader(file))
    assert rows == [["query_id", "doc_id", "score"], ["q1", "d1", "3.0"], ["q2", "d\n3", "1.0"]]


def test_ranks_used_as_scores_are_recomputed(tmp_path):
    text = "q1\td1\t1\nq1\td1\t2\nq1\td2\t3\nq2\td3\t1\n"
    done, _, run = mended(tmp_path, run=text, also=["R101"], names=("qrels.txt", "a.tsv"))
    assert done == {"a.tsv": {"R101": 1}}
    assert run == "q1\td1\t1\nq1\td2\t2\nq2\td3\t1\n"


@pytest.mark.parametrize("name", ["a.parquet", "a.feather", "a.json"])
def test_invalid_scores_are_dropped_from_columns_and_rows_too(tmp_path, name):
    rows = {"query_id": ["q1", "q1", "q2"], "doc_id": ["d1", "d2", "d3"], "score": [2.5, None, 1]}
    run = tmp_path / name
    if name.endswith("json"):
        run.write_text(json.dumps([dict(zip(rows, row, strict=True)) for row in zip(*rows.values(), strict=True)]))
    elif name.endswith("parquet"):
        pq.write_table(pa.table(rows), run)
    else:
        feather.write_feather(pa.table(rows), run)
    judged = written(tmp_path, "qrels.txt", QRELS)
    found = check(judged, str(run))
    assert found.of("R102")[0].evidence.count == 1
    fix_inputs(found, judged, str(run), also=["R102"]).write(tmp_path / "out")
    assert read_run(tmp_path / "out" / name) == Run.of({"q1": {"d1": 2.5}, "q2": {"d3": 1}}, name="a")


def test_only_reported_problems_are_fixed(tmp_path):
    path = written(tmp_path, "qrels.txt", QRELS + QRELS)
    found = check(path, ignore=["J101"])
    assert fix_inputs(found, path).fixed == {}


def test_a_code_without_a_fix_is_refused():
    with pytest.raises(UnknownName, match="J102 cannot be fixed automatically"):
        fix_inputs(check({"q": ["d"]}), {"q": ["d"]}, also=["J102"])
    with pytest.raises(UnknownName, match="unknown finding code 'X'"):
        fix_inputs(check({"q": ["d"]}), {"q": ["d"]}, also=["X"])


def test_a_copy_never_takes_the_place_of_its_original(tmp_path):
    path = written(tmp_path, "qrels.txt", QRELS + QRELS)
    with pytest.raises(InputError, match="overwrite an input"):
        fix_inputs(check(path), path).write(tmp_path)
    assert (tmp_path / "qrels.txt").read_text() == QRELS + QRELS


_ROWS = st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from("xyzab"), st.sampled_from("012")), min_size=1)


@given(rows=_ROWS)
def test_a_fixed_copy_keeps_the_order_of_lines(tmp_path_factory, rows):
    folder = tmp_path_factory.mktemp("any")
    lines = [f"{q} Q0 {d} 1 {v} t{n}" for n, (q, d, v) in enumerate(rows)]
    run = written(folder, "a.run", "\n".join(lines))
    judged = {"a": {"x": 1, "z": 0}, "b": {"y": 1}}
    also = ("R101", "R108")
    fix_inputs(check(judged, run), judged, run, also=also).write(folder / "out")
    copy = folder / "out/a.run"
    best = {}
    for n, (query, doc, value) in enumerate(rows):
        first = best.get((query, doc))
        if query != doc and (first is None or value > rows[first][2]):
            best[query, doc] = n
    own = any(query == doc for query, doc, _ in rows)
    if own and "R108" not in check(judged, run).codes:
        return
    kept = [lines[n] for n in sorted(best.values())]
    if not copy.exists():
        assert kept == lines or not kept
        return
    assert copy.read_text().splitlines() == kept
    if kept:
        assert not set(also) & set(check(judged, copy).codes)
