"""CSV and TSV with a header: every reader returns all cells."""

import csv
import gzip
import io
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

import rankgauge
from rankgauge import Collection, FormatError, InputError
from rankgauge.core import native
from rankgauge.core.pair_table import PairTable
from rankgauge.corpus import read_queries
from rankgauge.data.special_qrels import read_subtopic_qrels
from rankgauge.explanation import GivenValues
from rankgauge.formats import delimited, fast_trec, pieces
from rankgauge.formats.columns import JUDGMENTS, RUN, Layout
from rankgauge.formats.delimited import rows_of
from rankgauge.formats.pieces import PairFile
from rankgauge.formats.readers import read_table
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
    assert found == [(*at, row) for at, row in zip(begun, rows, strict=True)]


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
)
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
def test_a_header_of_texts_that_names_a_column_twice_is_refused(name: str, by: str, twice: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text(f"\nqid,query,{twice},note\n1,a,b,c\n".replace(",", by))
    with pytest.raises(FormatError, match=f"line 2: the header names column '{twice}' twice"):
        list(read_texts(path))
    faults = Faults()
    assert list(read_texts(path, faults)) == []
    assert faults.count == 1
    path.write_text("qid,query,,\n1,a,,\n".replace(",", by))
    assert [row.text for row in read_texts(path)] == ["a"]


# Cells that are plain, and others, which only the csv module reads.
_PLAIN = st.sampled_from(["a", "b7", "d-1", "x.y", "e5", "q1", "1e", "0", "7.50", "1e5x", "12e4"])
_OTHER = st.sampled_from(['"a"', "a b", "", "é", "1e5", "3.2E+10", "7.0", "a\tb", '"a,b"', "#1", "a\r", "nan", "\v"])
_SCORE = st.one_of(
    st.floats(-9, 9).map(repr),
    st.sampled_from(["1", "2e5", "1e-5", " 1", "", "nan", "x", "1_0", "1e999", "0x1", "9" * 20]),
)
_HEADER = st.sampled_from(
    [
        "query_id,doc_id,score",
        "qid,docno,score,name",
        "name,score,doc_id,qid",
        "qid,doc_id,rank",
        "qid,docno,rank,score",
        "qid,Qid,doc_id,score",
        "qid;doc_id;score",
        "qid,doc_id,grade",
        '"qid",doc_id,score',
        "qid,doc_id,text",
        "a,b,c",
    ]
)


@st.composite
def _tables(draw: st.DrawFn) -> bytes:
    """A table, most of them plain but for one cell."""
    header = draw(_HEADER)
    by = ";" if ";" in header else ","
    names = header.split(by)
    odd = draw(st.none() | st.tuples(st.integers(0, 30), st.integers(0, 3)))
    lines = [header]
    for row in range(draw(st.integers(0, 30))):
        numbers = {"score", "rank", "grade"}
        cells = [repr(draw(st.floats(-9, 9))) if name in numbers else f"{draw(_PLAIN)}.{row}" for name in names]
        if odd and odd[0] == row:
            place = odd[1] % len(cells)
            cells[place] = draw(_SCORE if names[place] in numbers else _OTHER | _PLAIN)
        lines.append(by.join(cells))
    if odd and odd[1] == 3:
        lines.insert(min(odd[0], len(lines)), draw(st.sampled_from(["", "a", "a,b,1,2,3", "# a"])))
    end = draw(st.sampled_from(["\n", "\r\n"]))
    return (end.join(lines) + draw(st.sampled_from(["", end, end * 2]))).encode()


@given(_tables(), st.sampled_from([RUN, JUDGMENTS]))
def test_plain_cells_are_read_like_others(content: bytes, layout: Layout) -> None:
    _assert_read_alike(content, layout)


@pytest.mark.parametrize(
    "row",
    [
        "q1,,d,0.5",
        ",q1,d,0.5",
        "q1,d,0.5,",
        "#1,d,0.5",
        "q1,1e5,0.5",
        "3.2E+10,d,0.5",
        "q1,\udce9,0.5",
        "q1,d\r,0.5",
        'q1,"d",0.5',
        "q1,d x,0.5",
        "",
        "q1,d,nan",
        "q1,d,1e5",
    ],
)
def test_one_cell_that_is_not_plain_is_read_like_others(row: str) -> None:
    # In every position relative to the ends of the pieces.
    for length in range(1, 40, 3):
        rows = [f"q1,{'x' * length}{n},0.5" for n in range(9)]
        header = f"query_id,doc_id,{'score' if length % 2 else 'rank'}"
        text = "\n".join([header, *rows, row, *rows[:1]])
        _assert_read_alike(text.encode(errors="surrogateescape"), RUN)


def _assert_read_alike(content: bytes, layout: Layout) -> None:
    """Compare the compiled core and NumPy with the reader of single cells."""
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        path = Path(folder) / "a.csv"
        path.write_bytes(content)
        patch.setattr(pieces, "_LEAST", 200)
        patch.setattr(fast_trec, "_PIECE", 150)
        found = [_outcomes(path, layout)]
        if native.core is not None:
            patch.setattr(native, "core", None)
            found.append(_outcomes(path, layout))
        patch.setattr(delimited, "plain_table", lambda *_, **__: None)
        slow = _outcomes(path, layout)
    for quick in found:
        assert quick[:2] == slow[:2]
        # Blocks are read by arrays only, or not at all.
        assert quick[2] in (slow[0], None)


def _outcomes(path: Path, layout: Layout) -> list[object]:
    """Read a file as a whole, in pieces, and in blocks: rows and notes, or the error."""
    whole = _outcome(lambda: [read_table(path, layout)])
    # With this limit, pieces are as small as possible.
    parts = _outcome(lambda: (table for table, _ in PairFile(path, layout, 1).pieces()), warnings=False)
    blocks = _outcome(PairFile(path, layout).blocks)
    return [whole, parts, None if isinstance(blocks, str) else blocks]


def _outcome(
    read: Callable[[], Iterable[PairTable]], *, warnings: bool = True
) -> tuple[dict[bytes, list[tuple[bytes, str]]], list[str]] | str:
    """Return the rows of each query, and the notes, or the error."""
    rows: dict[bytes, list[tuple[bytes, str]]] = {}
    notes = dict[str, None]()
    try:
        for table in read():
            notes.update(dict.fromkeys(table.notes))
            numbers = table.query_numbers().tolist()
            values = map(float.hex, table.values.tolist())
            for number, *row in zip(numbers, table.docs.tolist(), values, strict=True):
                rows.setdefault(table.queries[number], []).append((row[0], row[1]))
    except InputError as error:
        return str(error)
    # Warnings may depend on the rows of a piece.
    return rows, [note for note in notes if warnings or "WARNING" not in note]


@pytest.mark.parametrize("core", ["compiled", "NumPy"])
def test_plain_cells_are_read_as_arrays(core: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if core == "NumPy":
        monkeypatch.setattr(native, "core", None)
    read = []
    number = delimited.read_number
    monkeypatch.setattr(delimited, "read_number", lambda text: read.append(1) or number(text))
    path = tmp_path / "a.csv"
    path.write_bytes(b"qid;docno;x;score\r\n" + b"q1;d1;-;0.5\r\nq1;d2;-;1e-5\r\n" * 90_000)
    (found,) = PairFile(path, RUN).blocks()
    assert (len(found), found.docs[1], found.values[1]) == (180_000, b"d2", 1e-5)
    assert found.source == str(path)
    assert found.notes == (f"{path}: columns 'qid', 'docno', 'score'", f"{path}: read with ';' between columns")
    # Only the first row.
    assert len(read) == 1


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"query_id,doc_id,score\nq1,d1,1\nq1," + b"d" * 140_000 + b",2\n", "line 3: a cell of"),
        (b"query_id,doc_id,score,a\0b\nq1,d1,1,x\n", "line 1: the line contains a NUL byte"),
        (gzip.compress(b"query_id,doc_id,score\nq1,d1,1\n")[:31], "line 1: the gzip data is"),
    ],
    ids=["a long cell", "NUL", "cut"],
)
def test_plain_cells_have_the_errors_of_others(content: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(content)
    whole, parts, blocks = _outcomes(path, RUN)
    assert message in str(whole)
    assert parts == whole
    assert blocks is None


@pytest.mark.parametrize("core", ["compiled", "NumPy"])
@pytest.mark.parametrize(
    ("last", "message"),
    [
        (b"q9,d,x\n", "line 102, column 3: score 'x' is text"),
        (b"q9,d\n", "line 102: got 2 columns"),
        (b'q9,"d\n', "line 102: a quote that opens in this row"),
        (b"q9,,1\n", "line 102, column 2: the document id is empty"),
    ],
)
def test_rows_after_plain_cells_keep_their_line_numbers(
    core: str, last: bytes, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if core == "NumPy":
        monkeypatch.setattr(native, "core", None)
    monkeypatch.setattr(pieces, "_LEAST", 200)
    monkeypatch.setattr(fast_trec, "_PIECE", 150)
    path = tmp_path / "a.csv"
    rows = b"".join(b"q%d,d%d,0.5\n" % (row // 10, row) for row in range(100))
    path.write_bytes(b"query_id,doc_id,score\n" + rows + last)
    with pytest.raises(InputError, match=message):
        list(PairFile(path, RUN, 1).pieces())


def test_only_blank_lines_may_follow_plain_cells(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pieces, "_LEAST", 200)
    monkeypatch.setattr(fast_trec, "_PIECE", 150)
    path = tmp_path / "a.csv"
    # Ten rows after the first one exactly fill a piece.
    path.write_bytes(b"query_id,doc_id,score\n" + b"query,document,0.50\n" * 11 + b"\n")
    assert [len(table) for table, _ in PairFile(path, RUN, 1).pieces()] == [11]


@pytest.mark.parametrize("columns", [64, 65, 300])
def test_wide_tables_are_read(columns: int, tmp_path: Path) -> None:
    names = [f"x{n}" for n in range(columns - 3)]
    path = tmp_path / "a.csv"
    path.write_text(",".join(["score", *names, "doc_id", "query_id"]) + "\n" + "7," + ",".join(names) + ",d1,q1\n")
    assert dict(rankgauge.Run.of(path)["q1"]) == {"d1": 7.0}
    assert rankgauge.evaluate({"q1": {"d1"}}, path, "P@1").mean() == {"P@1": 1.0}
