"""Runs with three columns, and others that do not have six."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from rankgauge.data.qrels import Qrels, read_qrels
from rankgauge.data.run import Run, read_run
from rankgauge.errors import FormatError, InputError, RankgaugeError
from rankgauge.evaluation.evaluation import evaluate
from rankgauge.formats.columns import RUN
from rankgauge.formats.pieces import PairFile
from rankgauge.formats.registry import InFormat

ANNOUNCED = "the third column counts from 1 to n in every query, so it is read as a rank"
RANKINGS = st.dictionaries(
    st.integers(0, 9).map("q{}".format),
    st.lists(st.integers(0, 99).map("d{}".format), min_size=1, max_size=6, unique=True),
    min_size=1,
    max_size=4,
)


def lines_of(data: dict[str, list[str]], between: str = "\t") -> list[str]:
    return [
        between.join((query, doc, str(rank))) + "\n"
        for query, docs in data.items()
        for rank, doc in enumerate(docs, start=1)
    ]


def ranked(run: Run) -> dict[str, list[str]]:
    return {query: sorted(docs, key=lambda doc: -docs[doc]) for query, docs in run.items()}


@given(data=RANKINGS, between=st.sampled_from(["\t", " ", "   "]), seed=st.integers(0, 9))
@pytest.mark.parametrize("name", ["a.tsv", "a.run"])
def test_a_third_column_of_1_to_n_is_a_rank_in_any_order_of_lines(
    name: str, data: dict[str, list[str]], between: str, seed: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    lines = lines_of(data, "\t" if name == "a.tsv" else between)
    random.Random(seed).shuffle(lines)
    path = tmp_path_factory.mktemp("thirds") / name
    path.write_text("".join(lines))
    run = read_run(path)
    assert ranked(run) == data
    assert any(ANNOUNCED in note for note in run.table.notes)
    assert ranked(read_run(path, format="msmarco")) == data
    scores = read_run(path, format="trec3")
    assert {query: list(docs.values()) for query, docs in scores.items()} == {
        query: [-score for score in docs.values()] for query, docs in run.items()
    }


@pytest.mark.parametrize(
    "text",
    [
        "q1 d1 1\nq1 d2 1\n",
        "q1 d1 0\nq1 d2 1\n",
        "q1 d1 1\nq1 d2 3\n",
        "q1 d1 1\nq1 d2 1.5\n",
        "q1 d1 1.5\nq1 d2 2\n",
        "q2 d1 1\nq1 d1 0.5\n",
        "q1 d1 2\n",
        "q1 d1 -1\n",
    ],
)
def test_any_other_third_column_must_be_named(text: str, tmp_path: Path) -> None:
    path = tmp_path / "a.run"
    path.write_text(text)
    with pytest.raises(FormatError, match="may be a rank or a score") as caught:
        read_run(path)
    assert "msmarco:FILE" in caught.value.fix
    assert "trec3:FILE" in caught.value.fix
    rows = [line.split() for line in text.splitlines()]
    run = read_run(path, format="trec3", name="x")
    assert run.table.values.tolist() == [float(row[2]) for row in rows]
    assert read_run(path, format="msmarco").table.values.tolist() == [-float(r[2]) for r in rows]
    with pytest.raises(InputError):
        list(PairFile(path, RUN).blocks())


def test_a_run_of_three_columns_is_evaluated_as_it_is_read(tmp_path: Path) -> None:
    data = {f"q{n}": [f"d{m}" for m in range(n % 7 + 1)] for n in range(300)}
    path = tmp_path / "a.run"
    path.write_text("".join(lines_of(data)))
    assert list(PairFile(path, RUN).blocks())
    qrels = Qrels.of({query: {docs[-1]: 1} for query, docs in data.items()})
    by_hand = sum(1 / len(docs) for docs in data.values()) / len(data)
    for source in (path, InFormat(path, "msmarco"), read_run(path)):
        found = evaluate(qrels, source, "RR")
        assert found.mean()["RR"] == pytest.approx(by_hand, abs=1e-12)
        assert any("read as a rank" in note for note in found.notes)
    upside_down = evaluate(qrels, InFormat(path, "trec3"), "RR")
    assert upside_down.mean()["RR"] == 1.0


def test_a_path_with_its_format_replaces_a_path(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("q1 Q0 d1 1 2.5 t\nq1 Q0 d2 2 1.5 t\n")
    run = Run.of(InFormat(path, "trec"))
    assert run == Run.of({"q1": {"d1": 2.5, "d2": 1.5}}, name="a")
    assert next(PairFile(InFormat(path, "trec"), RUN).blocks()) is not None
    path.write_text("q1 0 d1 2\n")
    assert Qrels.of(InFormat(path, "trec")) == Qrels.of({"q1": {"d1": 2}})
    with pytest.raises(RankgaugeError, match="unknown format 'msmarco'"):
        Qrels.of(InFormat(path, "msmarco"))


def test_cells_between_tabs_may_hold_blanks_and_be_few(tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    path.write_text("my query\td 1\t1\nmy query\td 2\t2\n")
    assert ranked(read_run(path)) == {"my query": ["d 1", "d 2"]}
    path.write_text("my query\td1\t2\nmy query\td2\t0\n")
    assert read_qrels(path) == Qrels.of({"my query": {"d1": 2, "d2": 0}})
    path.write_text("q1\td1\t1\nq1\t\td2\t2\n")
    with pytest.raises(FormatError, match="line 2: got 4 fields, expected 3"):
        read_run(path)
    path.write_text("q1\td1\t1\n\tq1\td2\t2\n")
    with pytest.raises(FormatError, match="line 2: got 4 fields, expected 3"):
        read_run(path)


@pytest.mark.parametrize("read", [read_run, read_qrels], ids=["run", "judgments"])
def test_blanks_do_not_split_cells_if_tabs_do(read: Any, tmp_path: Path) -> None:
    """Three fields but two tabs: only the blank shows that these are not three cells."""
    path = tmp_path / "a.tsv"
    path.write_text("q1\td1\t1\nq1 d2\t2\t\n")
    with pytest.raises(FormatError, match=r"line 2, column 3: the (score|grade) is missing"):
        read(path)


def test_five_fields_are_a_run_without_a_tag(tmp_path: Path) -> None:
    path = tmp_path / "a.run"
    path.write_text("q1 Q0 d1 1 2.5\nq1 Q0 d2 2 1.5\n")
    assert read_run(path)["q1"] == {"d1": 2.5, "d2": 1.5}
    path.write_text("q1 d1 1 2.5 7\n")
    with pytest.raises(FormatError, match="got 5 fields"):
        read_run(path)


def test_words_after_the_tag_are_skipped_and_counted(tmp_path: Path) -> None:
    path = tmp_path / "a.run"
    path.write_text("q1 Q0 d1 1 2.5 my tag\nq1 Q0 d2 2 1.5 tag\nq1 Q0 d3 3 1 my other tag\n")
    run = read_run(path)
    assert run["q1"] == {"d1": 2.5, "d2": 1.5, "d3": 1.0}
    assert run.table.notes == (f"{path}: 2 lines have text after the tag, which is not read",)


@pytest.mark.parametrize(
    "line", ["q1 Q0 d 1 1 2.5 tag", "q1 Q0 a d 1 2.5 tag", "q 1 Q0 d 1 2.5 tag", "q1 Q0 d 1 x y z"]
)
def test_a_blank_in_an_id_is_not_taken_for_one_in_the_tag(line: str, tmp_path: Path) -> None:
    path = tmp_path / "a.run"
    path.write_text(line + "\n")
    with pytest.raises(FormatError, match="got 7 fields"):
        read_run(path)


def test_ranks_of_a_large_run_are_those_of_a_loop(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    path = tmp_path / "a.run"
    rows = [(q, d, r) for q in range(400) for r, d in enumerate(rng.permutation(200)[:90], 1)]
    path.write_text("".join(f"{q} {d} {r}\n" for q, d, r in rows))
    run = read_run(path)
    assert run.table.values.tolist() == [-r for _, _, r in rows]
    assert [int(doc) for doc in run.table.docs.tolist()] == [d for _, d, _ in rows]
