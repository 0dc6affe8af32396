"""Written files, read by others: csv, json, pyarrow, pandas, pytrec_eval, ir_measures."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import json
import lzma
import math
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ir_measures
import numpy as np
import pytest
import pytrec_eval
from hypothesis import example, given, strategies as st

from rankgauge.data.qrels import Qrels
from rankgauge.data.run import Run
from rankgauge.errors import InputError, UnknownName
from rankgauge.formats.columns import JUDGMENTS, RUN, Layout
from rankgauge.formats.registry import TARGET_FORMATS
from rankgauge.formats.writers import write_tables
from rankgauge.sample import sample_path

pa = pytest.importorskip("pyarrow")

Rows = list[tuple[str, str, float]]
OF_JUDGMENTS = tuple(form for form in TARGET_FORMATS if form != "msmarco")
OF_RUNS = ("trec", "csv", "tsv", "json", "jsonl", "parquet", "arrow")


def bits(value: float) -> bytes:
    return struct.pack("<d", value)


def rows_of(held: Qrels | Run) -> Rows:
    """Return the rows, without using the writers."""
    return [
        (query.decode(), doc.decode(), float(value))
        for number, query in enumerate(held.table.queries.tolist())
        for doc, value in zip(
            held.table.docs.tolist()[held.table.offsets[number] : held.table.offsets[number + 1]],
            held.table.values[held.table.offsets[number] : held.table.offsets[number + 1]],
            strict=True,
        )
    ]


def _of_table(text: str, mark: str) -> Rows:
    lines = list(csv.reader(io.StringIO(text, newline=""), delimiter=mark))
    return [(query, doc, float(value)) for query, doc, value in lines[1:]]


def _of_lines(data: bytes) -> Rows:
    lines = [line.split() for line in data.split(b"\n")[:-1]]
    places = (0, 2, 3) if len(lines[0]) == 4 else (0, 2, 4)
    cells = [[parts[place].decode() for place in places] for parts in lines]
    return [(query, doc, float(number)) for query, doc, number in cells]


def _of_columns(path: Path) -> Rows:
    import pyarrow.feather
    import pyarrow.parquet

    parquet = path.read_bytes().startswith(b"PAR1")
    read = pyarrow.parquet.read_table if parquet else pyarrow.feather.read_table
    return list(zip(*read(path).to_pydict().values(), strict=True))


def _of_lists(lists: Any, names: tuple[str, str, str]) -> Rows:
    query, doc, rating = names
    return [(one[query], d[doc], float(d[rating])) for one in lists for d in one["ratings"]]


# Readers of independent libraries.
OTHERS: dict[str, Callable[[Path], Rows]] = {
    "trec": lambda path: _of_lines(path.read_bytes()),
    "csv": lambda path: _of_table(path.read_bytes().decode(), ","),
    "quepid": lambda path: _of_table(path.read_bytes().decode(), ","),
    "tsv": lambda path: _of_table(path.read_bytes().decode(), "\t"),
    "beir": lambda path: _of_table(path.read_bytes().decode(), "\t"),
    "jsonl": lambda path: [tuple(json.loads(line).values()) for line in path.read_bytes().split(b"\n")[:-1]],
    "json": lambda path: [(q, d, v) for q, docs in json.loads(path.read_bytes()).items() for d, v in docs.items()],
    "rank-eval": lambda path: _of_lists(json.loads(path.read_bytes())["requests"], ("id", "_id", "rating")),
    "opensearch": lambda path: _of_lists(
        json.loads(path.read_bytes())["judgmentRatings"], ("query", "docId", "rating")
    ),
    "parquet": _of_columns,
    "arrow": _of_columns,
}


IDS = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0"), min_size=1, max_size=6)
HARD = st.sampled_from(["q 1", 'a"b', "a,b", "a\tb", "a\nb", "a\rb", "é", "文", "1", "01", " d", "#"])
GRADES = st.one_of(
    st.integers(-2, 4).map(float), st.sampled_from([0.5, -0.0, 2.0**53, 2.0**53 + 2, 2.0**31, 1e22, 5e-324, 1 / 3])
)
SCORES = st.floats(allow_nan=False, allow_infinity=False)


def tables(numbers: st.SearchStrategy[float]) -> st.SearchStrategy[dict[str, dict[str, float]]]:
    ids = st.one_of(HARD, IDS)
    return st.dictionaries(ids, st.dictionaries(ids, numbers, min_size=1, max_size=4), min_size=1)


def check_written(held: Qrels | Run, layout: Layout, form: str, folder: Path) -> None:
    """Check that a file is written exactly, or rejected and not written."""
    path = folder / "written"
    path.unlink(missing_ok=True)
    try:
        write_tables([held.table], path, layout, "tag", form=form)
    except InputError:
        assert list(folder.iterdir()) == []
        return
    found = OTHERS[form](path)
    wanted = rows_of(held)
    if layout is RUN and form == "trec":
        found, wanted = sorted(found), sorted(wanted)
    assert [(q, d, bits(v)) for q, d, v in found] == [(q, d, bits(v)) for q, d, v in wanted]


@pytest.mark.parametrize("form", OF_JUDGMENTS)
@given(judged=tables(GRADES))
@example(judged={"q": {"d": -0.0}})
@example(judged={"q": {"d": 2.0**53 + 2}})
@example(judged={"q\r": {"d\n": 1.0, "\u2028": 2.0, "\x85": 0.0, '"': 3.0}})
def test_judgments_are_written_to_the_last_bit_or_refused(form, judged, tmp_path_factory):
    folder = tmp_path_factory.mktemp("judged")
    check_written(Qrels.of(judged), JUDGMENTS, form, folder)


@pytest.mark.parametrize("form", OF_RUNS)
@given(scored=tables(SCORES))
@example(scored={"q": {"d": -0.0, "e": 5e-324, "f": 1.7976931348623157e308, "g": 2.0**53 + 2}})
def test_runs_are_written_to_the_last_bit_or_refused(form, scored, tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    check_written(Run.of(scored), RUN, form, folder)


@pytest.mark.parametrize("form", OF_JUDGMENTS)
def test_the_bundled_judgments_are_read_by_others(form, tmp_path):
    held = Qrels.of(sample_path("qrels.txt"))
    check_written(held, JUDGMENTS, form, tmp_path)
    assert (tmp_path / "written").exists()


@pytest.mark.parametrize("form", OF_RUNS)
def test_the_bundled_run_is_read_by_others(form, tmp_path):
    held = Run.of(sample_path("runs/bm25.run"))
    check_written(held, RUN, form, tmp_path)
    assert (tmp_path / "written").exists()


def test_judgments_as_json_are_what_pytrec_eval_takes(tmp_path):
    write_tables([Qrels.of({"q": {"d": 2, "e": -1}}).table], tmp_path / "a.json", JUDGMENTS)
    held = json.loads((tmp_path / "a.json").read_text())
    pytrec_eval.RelevanceEvaluator(held, {"map"})  # it rejects grades with a decimal point
    assert held == {"q": {"d": 2, "e": -1}}


def test_trec_files_are_read_by_pytrec_eval_and_ir_measures(tmp_path):
    qrels, run = Qrels.of(sample_path("qrels.txt")), Run.of(sample_path("runs/bm25.run"))
    write_tables([qrels.table], tmp_path / "q", JUDGMENTS)
    write_tables([run.table], tmp_path / "r", RUN, "tag")
    with (tmp_path / "q").open() as file:
        assert pytrec_eval.parse_qrel(file) == {q: dict(qrels[q]) for q in qrels}
    with (tmp_path / "r").open() as file:
        assert pytrec_eval.parse_run(file) == {q: dict(run[q]) for q in run}
    seen = {(d.query_id, d.doc_id, d.score) for d in ir_measures.read_trec_run(str(tmp_path / "r"))}
    assert seen == set(rows_of(run))


def test_ranks_of_ms_marco_give_equal_scores_the_order_of_trec_eval(tmp_path):
    run = Run.of({"q": {"a": 1.0, "b": 2.0, "c": 2.0, "z": 0.5}})
    write_tables([run.table], tmp_path / "r", RUN, form="msmarco")
    assert (tmp_path / "r").read_text() == "q\tc\t1\nq\tb\t2\nq\ta\t3\nq\tz\t4\n"


def test_ranks_in_trec_format_follow_the_scores_with_equal_ones_as_given(tmp_path):
    run = Run.of({"q": {"a": 1.0, "c": 2.0, "b": 2.0}})
    write_tables([run.table], tmp_path / "r", RUN, "my tag")
    assert (tmp_path / "r").read_text() == ("q Q0 c 1 2.0 my_tag\nq Q0 b 2 2.0 my_tag\nq Q0 a 3 1.0 my_tag\n")


def test_whole_grades_have_no_point_and_a_zero_with_a_sign_keeps_it(tmp_path):
    write_tables([Qrels.of({"q": {"d": 2, "e": -0.0, "f": 0.5}}).table], tmp_path / "q", JUDGMENTS)
    assert (tmp_path / "q").read_text() == "q 0 d 2\nq 0 e -0.0\nq 0 f 0.5\n"


def _unlz4(data: bytes) -> bytes:
    return pytest.importorskip("lz4.frame").decompress(data)


def _unzstd(data: bytes) -> bytes:
    return pytest.importorskip("zstandard").ZstdDecompressor().decompressobj().decompress(data)


UNPACKERS: dict[str, Any] = {
    "gz": gzip.decompress,
    "bz2": bz2.decompress,
    "xz": lzma.decompress,
    "zst": _unzstd,
    "lz4": _unlz4,
}


@pytest.mark.parametrize("end", UNPACKERS)
@pytest.mark.parametrize("form", ["trec", "csv", "tsv", "json", "jsonl"])
def test_the_last_suffix_compresses_and_the_one_before_it_is_the_format(end, form, tmp_path):
    table = Qrels.of(sample_path("qrels.txt")).table
    write_tables([table], tmp_path / f"plain.{form}", JUDGMENTS)
    for name in ("one", "two"):
        write_tables([table], tmp_path / f"{name}.{form}.{end}", JUDGMENTS)
    one, two = ((tmp_path / f"{name}.{form}.{end}").read_bytes() for name in ("one", "two"))
    assert one == two
    assert UNPACKERS[end](one) == (tmp_path / f"plain.{form}").read_bytes()


@pytest.mark.parametrize("form", ["parquet", "arrow"])
def test_columns_are_text_and_floats_and_the_same_bytes_each_time(form, tmp_path):
    run = Run.of(sample_path("runs/bm25.run"))
    paths = [tmp_path / f"{name}.{form}" for name in ("one", "two")]
    for path in paths:
        write_tables([run.table], path, RUN)
    assert paths[0].read_bytes() == paths[1].read_bytes()
    pd = pytest.importorskip("pandas")
    frame = (pd.read_parquet if form == "parquet" else pd.read_feather)(paths[0])
    assert list(frame.columns) == ["query_id", "doc_id", "score"]
    assert frame["score"].dtype == np.float64
    assert Run.of(frame)["q01"] == run["q01"]


def test_columns_are_cut_into_groups_of_rows_without_a_seam(tmp_path, monkeypatch):
    monkeypatch.setattr("rankgauge.formats.parquet._ROWS", 7)
    held = Run.of(sample_path("runs/bm25.run"))
    for form in ("parquet", "arrow"):
        check_written(held, RUN, form, tmp_path)
        (tmp_path / "written").unlink()


@pytest.mark.parametrize(
    ("form", "judged", "said"),
    [
        ("rank-eval", {"q": {"d": 0.5, "e": 1.5}}, "(2 grades do not fit)"),
        ("rank-eval", {"q": {"d": 2.0**31}}, "up to 2147483647"),
        ("rank-eval", {"q": {"d": -0.0}}, "got -0.0"),
        ("beir", {"q": {"d": 0.5}}, "got 0.5 for document 'd' of query 'q'"),
        ("msmarco", {"q": {"d": 1}}, "cannot store judgments, only runs"),
        ("trec", {"q": {"a b": 1, "c d": 2}}, "(2 ids contain blanks)"),
        ("trec", {"a b": {"d": 1}}, "query id 'a b' cannot be written"),
        ("csv", {"q": {b"\xff": 1}}, "is not UTF-8"),
        ("json", {"q": {b"\xff": 1, b"\xfe": 2}}, "(2 ids are not)"),
        ("parquet", {"q": {b"\xff": 1, b"\xfe": 2}}, "(2 ids are not)"),
        ("csv", {"q": {}}, "query 'q' has no judgment"),
    ],
)
def test_values_that_a_format_cannot_represent_are_counted_and_shown(form, judged, said, tmp_path):
    with pytest.raises(InputError) as caught:
        write_tables([Qrels.of(judged).table], tmp_path / "a", JUDGMENTS, form=form)
    assert said in caught.value.what
    assert caught.value.fix
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("form", ["json", "rank-eval", "opensearch"])
def test_formats_that_go_query_by_query_hold_a_query_without_judgments(form, tmp_path):
    write_tables([Qrels.of({"q": {}, "r": {"d": 1}}).table], tmp_path / "a", JUDGMENTS, form=form)
    held = json.loads((tmp_path / "a").read_text())
    if form == "json":
        assert held == {"q": {}, "r": {"d": 1}}
    else:
        lists = held["requests" if form == "rank-eval" else "judgmentRatings"]
        assert [len(one["ratings"]) for one in lists] == [0, 1]


@pytest.mark.parametrize("form", ["beir", "rank-eval", "opensearch", "quepid"])
def test_a_run_is_no_judgments(form, tmp_path):
    with pytest.raises(InputError, match="cannot store a run, only judgments"):
        write_tables([Run.of({"q": ["d"]}).table], tmp_path / "a", RUN, form=form)


def test_a_duplicate_document_cannot_be_an_object(tmp_path):
    run = Run.of([("q", "d", 1.0), ("q", "d", 2.0)])
    with pytest.raises(InputError, match="document 'd' occurs twice for query 'q'"):
        write_tables([run.table], tmp_path / "a.json", RUN)


def test_an_elasticsearch_request_has_the_fields_of_the_api(tmp_path):
    write_tables([Qrels.of({"q": {"d": 1}}).table], tmp_path / "a", JUDGMENTS, form="rank-eval")
    assert json.loads((tmp_path / "a").read_text()) == {
        "requests": [
            {
                "id": "q",
                "request": {"query": {"match_all": {}}},
                "ratings": [{"_index": "documents", "_id": "d", "rating": 1}],
            }
        ],
        "metric": {"dcg": {"k": 10, "normalize": True}},
    }


def test_an_opensearch_list_has_the_fields_of_the_api(tmp_path):
    table = Qrels.of({"q": {"d": 1, "e": 0.5}}).table
    write_tables([table], tmp_path / "a.json", JUDGMENTS, form="opensearch")
    assert json.loads((tmp_path / "a.json").read_text()) == {
        "name": "judgments",
        "description": "",
        "type": "IMPORT_JUDGMENT",
        "judgmentRatings": [
            {"query": "q", "ratings": [{"docId": "d", "rating": "1"}, {"docId": "e", "rating": "0.5"}]}
        ],
    }
    write_tables([table], tmp_path / "a.csv", JUDGMENTS, form="opensearch")
    assert (tmp_path / "a.csv").read_text() == "query,docid,rating\nq,d,1\nq,e,0.5\n"


def test_an_unknown_format_is_named(tmp_path):
    with pytest.raises(UnknownName, match="format='xlsx' is not valid"):
        write_tables([Run.of({"q": ["d"]}).table], tmp_path / "a", RUN, form="xlsx")


def test_parquet_is_not_packed_again(tmp_path):
    with pytest.raises(InputError, match="already compressed"):
        write_tables([Run.of({"q": ["d"]}).table], tmp_path / "a.parquet.gz", RUN)


def test_scores_of_every_size_come_back(tmp_path):
    """Every power of two, with its neighbors."""
    powers = [math.ldexp(1.0, e) for e in range(-1074, 1024)]
    values = [v for p in powers for v in (p, -p, math.nextafter(p, 0), math.nextafter(p, math.inf))]
    scored = {f"d{n}": v for n, v in enumerate(values) if math.isfinite(v)}
    for form in OF_RUNS:
        check_written(Run.of({"q": scored}), RUN, form, tmp_path)
        (tmp_path / "written").unlink()
