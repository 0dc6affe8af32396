"""Reading past malformed rows: the same readers, with the faults reported."""

import pytest

from rankgauge.errors import InputError
from rankgauge.formats.columns import JUDGMENTS, RUN
from rankgauge.formats.readers import read_table

RANKED = "query_id,doc_id,score,rank\nq1,d1,2.5,1\nq1,d2,1.5,2\n"
# Name and text of a file, its malformed lines, and whether only the number is malformed.
BROKEN = {
    "trec": ("a.run", "q1 Q0 d1 1 2 t\nq1 Q0 d2 2\nq1 Q0 d3 3 1 t\n", [2], []),
    "trec, not a number": ("a.run", "q1 Q0 d1 1 2 t\nq1 Q0 d2 2 x t\nq1 Q0 d3 3 nan t\n", [2], [3]),
    "csv": ("a.csv", "qid,docno,score\nq1,d1,2\nq1\nq1,d2,\nq1,d3,x\n,d4,1\n", [3, 5, 6], [4]),
    "csv, quotes": ("a.csv", 'qid,docno,score\nq1,"d1,2\nq1,d2,2\n', [2], []),
    "json lines": (
        "a.jsonl",
        (
            '{"qid": "q1", "docno": "d1", "score": 2}\n{"qid": \n{"qid": "q1", "docno": "d2", '
            '"score": null}\n{"qid": "q1", "docno": 0.5, "score": 1}\n'
        ),
        [2, 4],
        [3],
    ),
}


@pytest.mark.parametrize(("name", "text", "lines", "numbers"), BROKEN.values(), ids=BROKEN)
def test_each_fault_is_reported_and_the_other_rows_are_read(name, text, lines, numbers, tmp_path):
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(InputError):
        read_table(path, RUN)
    faults = []
    table = read_table(path, RUN, on_error=faults.append)
    assert len(table) >= 1
    assert sorted(fault.line for fault in faults if not fault.not_finite) == lines
    assert [fault.line for fault in faults if fault.not_finite] == numbers
    assert all(fault.error.where.startswith(str(path)) for fault in faults)


@pytest.mark.parametrize(
    ("form", "text", "line"),
    [
        ("smart", "1 28 0 0.000000\n1 35\n2 28 0 0.000000\n", 2),
        ("npl", "1\n28\n/\n28 35\n2\n28\n/\n", 4),
        ("letor", "2 qid:1 1:0.5 # d1\n1 1:0.5 # d2\n", 2),
    ],
)
def test_old_judgments_are_read_past_their_faults(form, text, line, tmp_path):
    path = tmp_path / "rels.txt"
    path.write_text(text)
    faults = []
    assert len(read_table(path, JUDGMENTS, form, on_error=faults.append))
    assert [fault.line for fault in faults] == [line]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.run", "q1 Q0 d1 1 2.5 t\nq1 Q0 d2 2 1.5 t\n"),
        ("a.run", "q1  Q0 d1 1 2.5 t\rq1 Q0 d2 2 1.5 t\n"),
        ("a.csv", RANKED),
        ("a.tsv", RANKED.replace(",", "\t")),
        (
            "a.jsonl",
            (
                '{"qid": "q1", "docno": "d1", "score": 2.5, "rank": 1}\n'
                '{"qid": "q1", "docno": "d2", "score": 1.5, "rank": "2"}\n'
            ),
        ),
    ],
    ids=["trec", "trec, line by line", "csv", "tsv", "json lines"],
)
def test_ranks_beside_scores_are_read_where_asked_for(name, text, tmp_path):
    path = tmp_path / name
    path.write_text(text)
    plain, ranked = read_table(path, RUN), read_table(path, RUN, ranks=True)
    assert plain == ranked == read_table(path, RUN, ranks=True, on_error=pytest.fail)
    assert plain.ranks is None
    assert ranked.ranks.tolist() == [1, 2]
