"""Column names: synonyms, any order, and ambiguous columns."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from rankgauge.data.qrels import Qrels, read_qrels
from rankgauge.data.run import Run, read_run
from rankgauge.errors import FormatError, InputError
from rankgauge.formats.columns import JUDGMENTS, RUN, columns_of

QUERIES = ["query_id", "qid", "query-id", "q_id", "QueryID", "Topic", "topic_id", "Query Text"]
DOCUMENTS = ["doc_id", "docno", "DocID", "corpus-id", "pid", "passage_id", "Doc-ID", "Doc ID", '"docid"']
GRADES = ["relevance", "rel", "grade", "Label", "rating", "judgment", "judgement", "gain", "score"]
SCORES = ["score", "sim", "Similarity", "_score", "cosine"]
RANKS = ["rank", "position", "Doc Position"]
ROWS = [("q1", "d1", 3), ("q1", "d2", 1), ("q2", "d1", 2)]
JUDGED = Qrels.of({"q1": {"d1": 3, "d2": 1}, "q2": {"d1": 2}})


def table(names: list[str], by: str, order: list[int]) -> str:
    """Return a table of query, document, number, and an irrelevant column as text."""
    rows = [names, *([str(cell) for cell in (*row, "text")] for row in ROWS)]
    return "".join(by.join(row[place] for place in order) + "\n" for row in rows)


@given(
    query=st.sampled_from(QUERIES),
    doc=st.sampled_from(DOCUMENTS),
    number=st.sampled_from([*GRADES, *SCORES]),
    order=st.permutations(range(4)),
    by=st.sampled_from([",", ";", "|", "\t"]),
    ending=st.sampled_from([".csv", ".tsv", ".txt"]),
    mark=st.sampled_from(["", "\ufeff"]),
)
def test_names_and_order_of_columns_change_nothing(
    query: str,
    doc: str,
    number: str,
    order: list[int],
    by: str,
    ending: str,
    mark: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    path = tmp_path_factory.mktemp("columns") / f"a{ending}"
    path.write_text(mark + table([query, doc, number, "title"], by, order), encoding="utf-8")
    usual = {".csv": ",", ".tsv": "\t"}.get(ending)
    if number in GRADES:
        qrels = read_qrels(path)
        assert qrels == JUDGED
        assert any("between columns" in note for note in qrels.table.notes) == (
            by != (usual or ("\t" if by == "\t" else ","))
        )
    if number in SCORES:
        assert read_run(path, name="run") == Run.of({q: dict(JUDGED[q]) for q in JUDGED})


@pytest.mark.parametrize("rank", RANKS)
def test_a_score_decides_beside_a_rank_which_decides_alone(rank: str, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text(f"query_id,doc_id,{rank},score\nq1,d1,1,0.5\nq1,d2,2,0.9\n")
    run = read_run(path)
    assert run["q1"] == {"d1": 0.5, "d2": 0.9}
    assert run.table.notes == ()
    path.write_text(f"query_id,doc_id,{rank}\nq1,d1,1\nq1,d2,2\n")
    run = read_run(path)
    assert run["q1"] == {"d1": -1.0, "d2": -2.0}
    assert "ordered by their rank" in run.table.notes[1]


@pytest.mark.parametrize(
    ("header", "chosen", "beside"),
    [
        ("query,query_id,doc_id,relevance", ("query_id", "doc_id", "relevance"), "'query'"),
        ("query_id,doc_id,score,relevance", ("query_id", "doc_id", "relevance"), "'score'"),
        ("qid,docno,docid,rel,label", ("qid", "docno", "rel"), "'docid', 'label'"),
        ("query_id,doc_id,score,rating", ("query_id", "doc_id", "rating"), "'score'"),
    ],
)
def test_the_first_of_two_column_names_is_used_with_a_note(
    header: str, chosen: tuple[str, str, str], beside: str, tmp_path: Path
) -> None:
    path = tmp_path / "a.csv"
    names = header.split(",")
    cells = {chosen[0]: "q1", chosen[1]: "d1", chosen[2]: "2"}
    path.write_text(f"{header}\n{','.join(cells.get(name, '7') for name in names)}\n")
    qrels = read_qrels(path)
    assert qrels == Qrels.of({"q1": {"d1": 2}})
    assert qrels.table.notes[-1] == f"{path}: other candidates, not used: {beside}"


def test_a_run_reads_the_score_and_judgments_the_relevance_of_one_file(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("query_id,doc_id,score,relevance\nq1,d1,0.5,2\n")
    assert read_run(path)["q1"] == {"d1": 0.5}
    assert read_qrels(path)["q1"] == {"d1": 2.0}


@pytest.mark.parametrize("header", ["qid,docno,rel,Rel", "doc-id,doc_id,qid,rel"])
def test_names_that_are_one_but_for_case_and_dashes_are_an_error(header: str, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text(f"{header}\n1,1,1,1\n")
    with pytest.raises(InputError, match="have the same name except for case"):
        read_qrels(path)


def test_a_distance_is_no_score() -> None:
    assert columns_of(["query_id", "doc_id", "distance"], RUN) is None
    assert columns_of(["query_id", "doc_id", "rank"], JUDGMENTS) is None


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        (["1e+05", "d2"], "1e+05"),
        (["1.23E+15", "d2"], "1.23E+15"),
        (["7.0", "8.0"], "7.0"),
        (["7.0", "7.1"], ""),
        (["e5", "1e"], ""),
        (["7", "8"], ""),
    ],
)
def test_ids_damaged_by_a_spreadsheet_are_a_warning(ids: list[str], message: str, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("query_id,doc_id,score\n" + "".join(f"q1,{doc},1\n" for doc in ids))
    said = [note for note in read_run(path).table.notes if note.startswith("WARNING")]
    assert bool(said) == bool(message)
    assert all(f"document id '{message}'" in note for note in said)


QUEPID = (
    "Team Name,Case Name,Case ID,Query Text,Doc ID,Doc Position,Rating\n"
    "Search,Shop,5,red dress,d1,1,3\nSearch,Shop,5,red dress,d2,2,\nSearch,Shop,5,jeans,d1,1,0\n"
)


def test_an_export_of_quepid_is_read(tmp_path: Path) -> None:
    path = tmp_path / "detailed.csv"
    path.write_text(QUEPID)
    judged = Qrels.of({"red dress": {"d1": 3}, "jeans": {"d1": 0}})
    assert read_qrels(path) == judged
    assert read_qrels(path).table.notes == (
        f"{path}: columns 'Query Text', 'Doc ID', 'Rating'",
        f"{path}: 1 line without a rating: not judged",
    )
    assert read_run(path)["red dress"] == {"d1": -1.0, "d2": -2.0}
    path.write_text("query,docid,rating\nred dress,d1,3\nshoes\njeans,d1,0\nshoes,d3,\n")
    assert read_qrels(path) == judged
    assert "2 lines without a rating" in read_qrels(path).table.notes[-1]


def test_a_grade_that_is_missing_elsewhere_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("query_id,doc_id,relevance\nq1,d1,\n")
    with pytest.raises(FormatError, match="the grade is missing"):
        read_qrels(path)
