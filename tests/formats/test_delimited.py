"""CSV and TSV with a header: every reader returns all cells."""

import csv
import io
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from rankgauge import Collection, FormatError
from rankgauge.corpus import read_queries
from rankgauge.data.subtopic_qrels import read_subtopic_qrels
from rankgauge.explanation import GivenValues
from rankgauge.formats.delimited import rows_of
from rankgauge.formats.texts import Faults, read_texts

_CELL = st.text("a \",;\n\t'ä", max_size=5)


def split(text: str, by: str = ",") -> list[tuple[int, int, list[str]]]:
    lines = text.encode().splitlines(keepends=True)
    starts = [sum(map(len, lines[:n])) for n in range(len(lines))]
    return list(rows_of(zip(range(1, len(lines) + 1), starts, lines, strict=True), "a", by))


@given(st.lists(st.lists(_CELL, min_size=1, max_size=4), max_size=5), st.sampled_from(",\t;"))
def test_rows_are_those_that_were_written(rows: list[list[str]], by: str) -> None:
    stream = io.StringIO()
    writer = csv.writer(stream, delimiter=by, lineterminator="\n")
    begun = []
    for row in rows:
        begun.append((stream.getvalue().count("\n") + 1, len(stream.getvalue().encode())))
        writer.writerow(row)
    found = split(stream.getvalue(), by)
    assert found == [(*at, row) for at, row in zip(begun, rows, strict=True) if any(row)]


@pytest.mark.parametrize(
    ("name", "text", "line", "message", "fix"),
    [
        ("a.csv", "qid,query\n1,fees, fines and loans\n", 2, "got 3 columns", "in quotes"),
        ("a.csv", "qid,query\n1,fees\n2\n", 3, "got 1 column, expected 2", "as many cells"),
        ("a.csv", 'qid,query\n1,fees\n2,"fines\n3,loans\n', 3, "a quote that opens", "close"),
        ("a.csv", 'qid,query\n1,"fees" and\n', 2, "continues after its closing quote", "twice"),
        ("a.csv", "_id,title,text\nd1,T,a, b\n", 2, "got 4 columns, expected 3", "in quotes"),
        ("a.csv", "d1,one\nd2,fees, fines\n", 2, "3 fields.*as the first line: 2", "quotes"),
        ("a.tsv", "1\tfees\n2\tfees\tfines\n", 2, "3 fields.*as the first line: 2", "separator"),
        ("a.tsv", "qid\tquery\n1\tfees\tfines\n", 2, "got 3 columns", "replace tabs"),
        ("a.tsv", "_id\ttext\ttitle\n1\tfees\n", 2, "got 2 columns, expected 3", "as many cells"),
        ("questions.csv", "question,relevant\na,d,e\n", 2, "got 3 columns", "in quotes"),
        ("questions.csv", "question,relevant\na\n", 2, "got 1 column, ", "as many cells"),
        ("questions.csv", 'question,relevant\n"a,d\nb,d\n', 2, "a quote that opens", "close"),
        ("questions.tsv", "question\trelevant\na\td\te\n", 2, "got 3 columns", "by spaces"),
    ],
)  # fmt: skip
def test_a_row_that_would_lose_cells_is_refused(
    name: str, text: str, line: int, message: str, fix: str, tmp_path: Path
) -> None:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    with pytest.raises(FormatError, match=message) as caught:
        Collection.load(queries=path)
    assert (caught.value.path, caught.value.line) == (str(path), line)
    assert fix in caught.value.fix


def test_rows_that_lose_nothing_are_read(tmp_path: Path) -> None:
    for name, text, wanted in (
        ("a.csv", 'qid,query\n1,"fees,\nfines ""now"""\n', {"1": 'fees,\nfines "now"'}),
        ("b.csv", "qid,query\n1,fees,\n2,fines\n", {"1": "fees", "2": "fines"}),
        ("c.csv", '1,fees\n2,"a, b"\n', {"1": "fees", "2": "a, b"}),
        ("a.tsv", '1\t"fees\n2\tthe "best" one\n', {"1": '"fees', "2": 'the "best" one'}),
        ("b.tsv", 'qid\tquery\n1\t"fees\n2\tfines\n', {"1": '"fees', "2": "fines"}),
    ):
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        found = read_queries(path)
        assert {query.id: query.text for query in found.values()} == wanted


def test_rows_of_another_width_are_skipped_and_counted(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("qid,query\n1,fees\n2,fines, loans\n3,books\n", encoding="utf-8")
    faults = Faults()
    assert [row.id for row in read_texts(path, faults)] == ["1", "3"]
    assert faults.count == 1


def test_an_open_quote_hides_no_judgment(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text('query,subtopic,doc,grade,note\nq,s,d,1,"x\nq,s,e,1,\n', encoding="utf-8")
    with pytest.raises(FormatError, match="line 2: a quote that opens in this row is not closed"):
        read_subtopic_qrels(path)


def test_a_value_without_a_header_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "values.csv"
    path.write_text("query,P@5\nq1,0.2,0.4\n", encoding="utf-8")
    with pytest.raises(FormatError, match="line 2: got 3 columns, expected 2"):
        GivenValues.of(path, "P@5")


@pytest.mark.parametrize(("name", "by"), [("a.csv", ","), ("a.tsv", "\t")])
@pytest.mark.parametrize("twice", ["query", "note"])
def test_a_header_of_texts_that_names_a_column_twice_is_refused(
    name: str, by: str, twice: str, tmp_path: Path
) -> None:
    path = tmp_path / name
    path.write_text(f"\nqid,query,{twice},note\n1,a,b,c\n".replace(",", by))
    with pytest.raises(FormatError, match=f"line 2: the header names column '{twice}' twice"):
        list(read_texts(path))
    faults = Faults()
    assert list(read_texts(path, faults)) == []
    assert faults.count == 1
    path.write_text("qid,query,,\n1,a,,\n".replace(",", by))
    assert [row.text for row in read_texts(path)] == ["a"]
