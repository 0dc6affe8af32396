"""Tables with a header and JSON: columns by name, cells by line and column."""

from __future__ import annotations

from pathlib import Path

import pytest
from growth import assert_linear

from rankgauge.data.qrels import Qrels, read_qrels
from rankgauge.data.run import Run, read_run
from rankgauge.errors import FormatError

JUDGED = Qrels.of({"q1": {"d1": 2, "d2": 0}, "q2": {"d1": 1}})


@pytest.mark.parametrize(
    "header", ["query_id,doc_id,relevance", "query-id,corpus-id,score", "QID, Docno ,LABEL", "topic,docid,rel"]
)
@pytest.mark.parametrize("delimiter", [",", "\t"])
@pytest.mark.parametrize("suffix", ["csv", "tsv", "txt", "qrels"])
def test_a_header_names_the_columns(header: str, delimiter: str, suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"a.{suffix}"
    text = f"{header}\nq1,d1,2\nq1,d2,0\n\nq2,d1,1\n"
    path.write_bytes(b"\xef\xbb\xbf" + text.replace(",", delimiter).replace("\n", "\r\n").encode())
    assert read_qrels(path) == JUDGED


def test_columns_can_be_in_any_order_among_others(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text('text,grade,doc_id,query_id\n"a, ""b""\nc",2,d1,q1\n,0,d2,q1\nx,1,d1,q2\n')
    qrels = read_qrels(path)
    assert qrels == JUDGED
    assert qrels.table.notes == (f"{path}: columns 'query_id', 'doc_id', 'grade'",)
    assert qrels.table.lines is not None
    assert qrels.table.lines.tolist() == [2, 4, 5]


def test_a_run_without_scores_is_read_by_its_rank(tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    path.write_text("qid\tdocno\trank\nq1\ta\t1\nq1\tb\t2\n")
    run = read_run(path)
    assert run["q1"] == {"a": -1.0, "b": -2.0}
    assert run.table.notes == (
        f"{path}: columns 'qid', 'docno', 'rank'",
        f"{path}: no scores, so documents are ordered by their rank",
    )


def test_an_unknown_header_of_a_tsv_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    path.write_text("one\ttwo\tthree\nq1\td1\t1\n")
    with pytest.raises(FormatError, match="line 1: the columns are 'one', 'two', 'three'"):
        read_qrels(path)


def test_json_lines_have_an_object_a_row(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    rows = (
        '{"query_id": "q1", "doc_id": "d1", "relevance": 2, "text": {"x": [1]}}\n\n'
        '{"relevance": false, "doc_id": "d2", "query_id": "q1"}\n'
        '{"query_id": "q2", "doc_id": "d1", "relevance": 1.0}'
    )
    path.write_text(rows)
    assert read_qrels(path) == JUDGED
    path.rename(tmp_path / "a.txt")
    assert read_qrels(tmp_path / "a.txt") == JUDGED


@pytest.mark.parametrize(
    "text",
    [
        '{"q1": {"d1": 2, "d2": 0}, "q2": {"d1": 1}}',
        '{\n "q1": {"d1": 2, "d2": 0},\n "q2": {"d1": 1}\n}',
        '{"q1": [["d1", 2], ["d2", 0]], "q2": ["d1"]}',
        '{"query_id": ["q1", "q1", "q2"], "doc_id": ["d1", "d2", "d1"], "score": [2, 0, 1]}',
    ],
)
@pytest.mark.parametrize("suffix", ["json", "txt"])
def test_json_is_a_mapping_of_queries_or_of_columns(text: str, suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"a.{suffix}"
    path.write_text(text)
    assert read_qrels(path) == JUDGED


def test_a_decimal_comma_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("qid;docno;score\nq1;d1;0,5\n")
    with pytest.raises(FormatError, match=r"line 2, column 3: score '0,5' .*\nfix: .*with a decimal point"):
        read_run(path)


def test_a_hundred_thousand_columns_take_linear_time(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"

    def write(count: int) -> str:
        names = ",".join(f"c{n}" for n in range(count))
        path.write_text(f"qid,docno,score,{names}\n" + f"q1,d1,1{',' * count}\n" * 3)
        return names

    def read(_: object) -> None:
        with pytest.raises(ValueError, match="document 'd1' occurs 3 times"):
            read_qrels(path)

    assert_linear(write, read, 4_000)
    path.write_text(f"{write(100_000)}\n")
    with pytest.raises(FormatError, match="'c7' and 99992 more; judgments need one of queries"):
        read_qrels(path)


def test_a_repeated_key_among_many_is_found_in_linear_time(tmp_path: Path) -> None:
    path = tmp_path / "a.json"

    def write(count: int) -> str:
        keys = ", ".join(f'"d{n}": 1' for n in range(count))
        path.write_text(f'{{"q1": {{{keys}, "d{count - 1}": 1}}}}')
        return f"d{count - 1}"

    def read(key: str) -> None:
        with pytest.raises(FormatError, match=f"the key '{key}' occurs twice in one object"):
            read_run(path)

    assert_linear(write, read, 6250)


def test_a_cell_beyond_the_limit_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text(f"qid,docno,score\nq1,{'d' * 200_000},1\n")
    with pytest.raises(FormatError, match=r"(?s)more than 131072 characters.*JSON lines"):
        read_run(path)


def test_ids_of_a_table_are_not_changed(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text('qid,docno,score\n01, d1,1\n1,"d,2",1\n', encoding="utf-8")
    assert read_run(path) == Run.of({"01": {" d1": 1.0}, "1": {"d,2": 1.0}}, name="a")
