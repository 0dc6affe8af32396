"""Data in memory: mappings, lists, rows, columns, and their numbers."""

from __future__ import annotations

from collections import OrderedDict, defaultdict, namedtuple
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from types import MappingProxyType, SimpleNamespace
from typing import Any, NamedTuple

import ir_measures
import numpy as np
import pytest

import rankgauge
from rankgauge.core import native
from rankgauge.data.qrels import Qrels
from rankgauge.data.run import Run
from rankgauge.errors import InputError

RUN = Run.of({"q1": {"d2": 2.0, "d1": 1.0}, "q2": {"d1": 1.0}})
QRELS = Qrels.of({"q1": {"d2": 1, "d1": 1}, "q2": {"d1": 1}})


class Hit(NamedTuple):
    qid: str
    rank: int
    docno: str
    score: float


@dataclass(slots=True)
class Slotted:
    score: float
    doc_id: str
    query_id: str


class WithProperties:
    query_id = "q1"
    doc_id = "d2"

    @property
    def score(self) -> float:
        return 2.0


class Scalar:
    """A number of a tensor library, with float() and additional methods."""

    def __init__(self, value: float) -> None:
        self.value = value

    def __float__(self) -> float:
        return self.value

    def __len__(self) -> int:
        raise TypeError("len() of a 0-d tensor")

    def __getitem__(self, place: object) -> Any:
        raise IndexError("invalid index of a 0-d tensor")


class Lowercase(Mapping[str, Any]):
    """A mapping that is not a dict."""

    def __init__(self, data: dict[str, Any]) -> None:
        self.data = data

    def __getitem__(self, key: str) -> Any:
        return self.data[key]

    def __iter__(self) -> Any:
        return iter(self.data)

    def __len__(self) -> int:
        return len(self.data)


@pytest.mark.parametrize(
    "source",
    [
        {"q1": {"d2": 2, "d1": 1}, "q2": {"d1": 1}},
        {"q1": ["d2", "d1"], "q2": ["d1"]},
        {"q1": ("d2", "d1"), "q2": ("d1",)},
        {"q1": np.array(["d2", "d1"]), "q2": np.array(["d1"], dtype=object)},
        {"q1": [("d2", 2.0), ("d1", 1.0)], "q2": [("d1", 1.0)]},
        {"q1": [["d2", 2.0], ["d1", 1.0]], "q2": [["d1", 1.0]]},
        {"q1": {"d2": 2.0, "d1": 1.0}.items(), "q2": {"d1": 0}.keys()},
        {"q1": [("d2", 2.0), ("d1", 1.0)], "q2": ["d1"]},
        {"q1": iter(["d2", "d1"]), "q2": (doc for doc in ["d1"])},
        defaultdict(dict, {"q1": OrderedDict(d2=2.0, d1=1.0), "q2": {"d1": 1.0}}),
        MappingProxyType({"q1": Lowercase({"d2": 2, "d1": 1}), "q2": {"d1": 1}}),
        Lowercase({"q1": {"d2": 2, "d1": 1}, "q2": {"d1": 1}}),
        {b"q1": {b"d2": 2, b"d1": 1}, b"q2": {b"d1": 1}},
        [("q1", "d2", 2.0), ("q1", "d1", 1.0), ("q2", "d1", 1.0)],
        [["q1", "d2", 2.0], ["q2", "d1", 1.0], ["q1", "d1", 1.0]],
        (row for row in [("q1", "d2", 2.0), ("q1", "d1", 1.0), ("q2", "d1", 1.0)]),
        [Hit("q1", 1, "d2", 2.0), Hit("q1", 2, "d1", 1.0), Hit("q2", 1, "d1", 1.0)],
        [Slotted(2.0, "d2", "q1"), Slotted(1.0, "d1", "q1"), Slotted(1.0, "d1", "q2")],
        [WithProperties(), ("q1", "d1", 1.0), SimpleNamespace(qid="q2", docno="d1", score=1)],
        [
            {"query_id": "q1", "doc_id": "d2", "score": 2},
            {"score": 1, "query_id": "q1", "doc_id": "d1"},
            ("q2", "d1", 1),
        ],
        [
            ir_measures.ScoredDoc("q1", "d2", 2.0),
            ir_measures.ScoredDoc("q1", "d1", 1.0),
            ir_measures.ScoredDoc("q2", "d1", 1.0),
        ],
        {"query_id": ["q1", "q1", "q2"], "doc_id": ["d2", "d1", "d1"], "score": [2, 1, 1]},
        {"score": np.array([2, 1, 1]), "qid": ("q1", "q1", "q2"), "doc": ["d2", "d1", "d1"]},
        np.array(
            [("q1", "d2", 2), ("q1", "d1", 1), ("q2", "d1", 1)], dtype=[("qid", "U2"), ("docno", "S2"), ("score", "f4")]
        ),
    ],
)
def test_a_run_is_read_from_whatever_holds_it(source: Any) -> None:
    assert Run.of(source) == RUN


@pytest.mark.parametrize(
    "source",
    [
        {"q1": {"d2": 1, "d1": 1}, "q2": {"d1": 1}},
        {"q1": {"d2", "d1"}, "q2": frozenset(["d1"])},
        {"q1": ["d2", "d1"], "q2": ("d1",)},
        {"q1": [("d2", 1), ("d1", np.True_)], "q2": {"d1": np.True_}},
        [("q1", "d2", 1), ("q2", "d1", 1), ("q1", "d1", 1)],
        [ir_measures.Qrel("q1", "d2", 1, "0"), ir_measures.Qrel("q1", "d1", 1), ir_measures.Qrel("q2", "d1", 1)],
        ir_measures.read_trec_qrels("q1 0 d2 1\nq1 0 d1 1\nq2 0 d1 1\n"),
    ],
)
def test_judgments_are_read_from_whatever_holds_them(source: Any) -> None:
    assert Qrels.of(source) == QRELS


@pytest.mark.parametrize(
    "number",
    [
        2,
        2.0,
        np.float32(2),
        np.float16(2),
        np.int64(2),
        np.uint8(2),
        np.longdouble(2),
        Decimal(2),
        Fraction(4, 2),
        Scalar(2.0),
    ],
)
def test_whatever_is_a_number_is_one(number: Any) -> None:
    assert Run.of({"q": {"d": number}})["q"] == {"d": 2.0}
    assert Run.of([("q", "d", number)])["q"] == {"d": 2.0}


def test_grades_of_true_and_false_are_one_and_zero() -> None:
    assert Qrels.of({"q": {"a": True, "b": np.False_}})["q"] == {"a": 1.0, "b": 0.0}
    assert Qrels.from_columns(["q"] * 2, ["a", "b"], np.array([True, False]))["q"] == {"a": 1.0, "b": 0.0}


@pytest.mark.parametrize("dtype", ["int8", "int64", "uint64", "U3", "S3", "O", ">i4", ">U3"])
def test_columns_of_numpy_are_ids(dtype: str) -> None:
    ids = np.array([11, 22, 33, 11]).astype(dtype)
    run = Run.from_columns(ids[:3], ids[1:], np.array([1, 2, 3], dtype="f4"))
    assert run == Run.of({"11": {"22": 1.0}, "22": {"33": 2.0}, "33": {"11": 3.0}})


def test_columns_may_be_slices_that_are_not_contiguous() -> None:
    ids = np.array(["a", "x", "b", "x"])[::2]
    run = Run.from_columns(ids, np.arange(4)[::-2], np.arange(4.0)[::2])
    assert run == Run.of({"a": {"3": 0.0}, "b": {"1": 2.0}})


def test_masked_values_are_missing_not_read() -> None:
    masked = np.ma.array([1, 2], mask=[False, True])
    with pytest.raises(InputError, match=r"^run, row 2: the document id is missing"):
        Run.from_columns([1, 1], masked, [1, 2])
    with pytest.raises(InputError, match=r"^run, row 2: the score is missing"):
        Run.from_columns([1, 1], [1, 2], masked)


def test_a_number_too_large_for_64_bits_is_infinite_and_refused() -> None:
    for number in (10**400, np.longdouble("1e4000"), Decimal("1e400")):
        with pytest.raises(InputError, match="score inf of document 'd' for query 'q'"):
            Run.of({"q": {"d": number}})
    with pytest.raises(InputError, match="score inf of document 'd' for query 'q'"):
        Run.from_columns(["q"], ["d"], np.array(["1e4000"], dtype=np.longdouble))


def test_queries_named_like_columns_are_queries() -> None:
    source = {"query_id": {"d1": 1.0}, "doc_id": {"d1": 2.0}, "score": {"d1": 3.0}}
    assert {query: dict(docs) for query, docs in Run.of(source).items()} == source


@pytest.mark.parametrize("key", [int, str], ids=["to_dict", "to_json"])
def test_a_table_that_pandas_made_a_mapping_is_the_table(key: type) -> None:
    # With numbers as ids, it would be read as three queries named query_id, doc_id, and score.
    columns = {"qid": [7, 7, 8], "docno": [1, 2, 1], "score": [0.5, 0.25, 2.0], "rank": [1, 2, 1]}
    made = {name: {key(row): cell for row, cell in enumerate(cells)} for name, cells in columns.items()}
    assert Run.of(made) == Run.of({"7": {"1": 0.5, "2": 0.25}, "8": {"1": 2.0}})
    assert Run.of(made).table.notes == ("run: columns 'qid', 'docno', 'score'",)
    assert Qrels.of(made)["8"] == {"1": 2.0}


def test_a_table_row_by_row_is_refused() -> None:
    rows = [{"qid": 7, "docno": 1, "score": 0.5}, {"qid": 8, "docno": 2, "score": 1.5}]
    with pytest.raises(InputError, match=r"run: this looks like the rows of a table \('qid', "):
        Run.of({str(number): row for number, row in enumerate(rows)})
    assert Run.of({"a": {"qid": 1, "docno": 2, "score": 3}})["a"]["qid"] == 1


def test_a_query_without_documents_is_kept() -> None:
    assert dict(Run.of({"q1": [], "q2": {}, "q3": ["d"]})) == {"q1": {}, "q2": {}, "q3": {"d": 1.0}}


def test_a_frame_as_the_documents_of_a_query_is_not_read_by_its_column_names() -> None:
    frame = SimpleNamespace(columns=["doc_id"], __iter__=lambda: iter(["doc_id"]))
    with pytest.raises(InputError, match=r"^run, query 'q1': got .*, expected the documents"):
        Run.of({"q1": frame})


def test_a_named_tuple_of_other_names_is_read_by_position() -> None:
    row = namedtuple("row", "a b c")  # noqa: PYI024 - the old way is in use
    assert Run.of([row("q1", "d2", 2), row("q1", "d1", 1), row("q2", "d1", 1)]) == RUN


# ---- many rows are processed in chunks


def _many(queries: int = 40, docs: int = 1000) -> dict[str, dict[str, float]]:
    return {f"q{q}": {f"d{q}-{d}": float(d) for d in range(docs)} for q in range(queries)}


def test_many_rows_are_the_same_as_few() -> None:
    data = _many()
    run = Run.of(data)
    assert list(run) == list(data)
    assert all(dict(run[query]) == docs for query, docs in data.items())


def test_an_id_of_another_kind_is_found_far_down() -> None:
    data: dict[str, Any] = _many() | {"late": {7: 1.0}}
    with pytest.raises(InputError) as caught:
        Run.of(data)
    assert caught.value.where == "run, query 'late'"
    assert caught.value.what.startswith("document id 7 is a whole number, but 'd")


def test_a_wrong_number_far_down_is_named() -> None:
    data: dict[str, Any] = _many()
    data["q33"]["d33-5"] = "high"
    with pytest.raises(InputError) as caught:
        Run.of(data)
    assert caught.value.where == "run, query 'q33', document 'd33-5'"


def test_queries_without_documents_can_be_between_many_rows() -> None:
    data: dict[str, Any] = {}
    for query, docs in _many().items():
        data |= {query: docs, f"{query}-empty": {}}
    assert {query: dict(docs) for query, docs in Run.of(data).items()} == data


class Lying(Mapping):
    """A mapping with its own length and keys, whose iteration may change."""

    def __init__(self, entries, length=None, keys=None, *, changing=False):
        self.entries, self.length, self.given, self.changing = entries, length, keys, changing

    def __getitem__(self, key):
        return self.entries[key]

    def __iter__(self):
        self.changing, shown = bool(self.changing), self.given or list(self.entries)
        yield from shown[:1] if self.changing else shown

    def __len__(self):
        self.changing = False
        return len(self.entries) if self.length is None else self.length


class LyingDict(dict):
    def __len__(self):
        return 7


class LyingList(list):
    def __len__(self):
        return 7


DOCS = {"a": 1.0, "b": 2.0}


@pytest.mark.parametrize("kind", [rankgauge.Run, rankgauge.Qrels])
@pytest.mark.parametrize("compiled_core", [True, False])
@pytest.mark.parametrize("docs", [LyingDict(DOCS), Lying(DOCS, 7), Lying(DOCS, 0), Lying(DOCS, 10**9), LyingList("ab")])
def test_a_container_with_a_wrong_length_is_read_as_it_iterates(monkeypatch, kind, docs, compiled_core):
    if not compiled_core:
        monkeypatch.setattr(native, "core", None)
    for data in ({"q": docs}, Lying({"q": docs}, 3), LyingDict({"q": docs})):
        found = kind.of(data)
        assert {query: set(found[query]) for query in found} == {"q": {"a", "b"}}
        pair = (data, {"q": {"a": 1}}) if kind is rankgauge.Qrels else ({"q": {"a": 1}}, data)
        assert rankgauge.evaluate(*pair, "NumRelRet").mean()["NumRelRet"] == 1


@pytest.mark.parametrize("kind", [rankgauge.Run, rankgauge.Qrels])
def test_a_mapping_without_one_of_its_keys_is_refused(kind):
    for data in (Lying({"q": DOCS}, keys=["q", "z"]), {"q": Lying(DOCS, keys=["a", "z"])}):
        with pytest.raises(InputError, match=r"this Lying cannot be read: KeyError: 'z'"):
            kind.of(data)


@pytest.mark.parametrize("kind", [rankgauge.Run, rankgauge.Qrels])
def test_a_mapping_that_changes_is_read_once(kind):
    found = kind.of({"q": Lying(DOCS, changing=True)})
    assert len(found["q"]) in {1, 2}


def test_documents_that_change_while_scores_are_converted_are_those_before():
    later = {f"d{n}": 1.0 for n in range(20_000)}

    class Score(float):
        def __float__(self):
            later.clear()
            return 1.0

    run = rankgauge.Run.of({"q1": {f"e{n}": Score(1.0) for n in range(20_000)}, "q2": later})
    assert (len(run["q2"]), len(later)) == (20_000, 0)
