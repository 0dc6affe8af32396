"""JSON of search tools: each format agrees with a slow reading of it."""

from __future__ import annotations

import contextlib
import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from rankgauge.data.qrels import Qrels, read_qrels
from rankgauge.data.run import Run, read_run
from rankgauge.errors import RankgaugeError

JUDGED = Qrels.of({"red dress": {"B07": 3, "B01": 0}, "jeans": {"B07": 1}})
ROWS = [("red dress", "B07", 3), ("red dress", "B01", 0), ("jeans", "B07", 1)]


def of(query: str) -> list[tuple[str, int]]:
    return [(doc, grade) for asked, doc, grade in ROWS if asked == query]


def rank_eval_request() -> dict[str, Any]:
    return {
        "requests": [
            {
                "id": query,
                "request": {"query": {"match": {"title": query}}},
                "ratings": [{"_index": "shop", "_id": d, "rating": g} for d, g in of(query)],
            }
            for query in ("red dress", "jeans")
        ],
        "metric": {"dcg": {"k": 10}},
    }


def import_body(grade: type = str) -> dict[str, Any]:
    return {
        "name": "mine",
        "type": "IMPORT_JUDGMENT",
        "judgmentRatings": [
            {"query": query, "ratings": [{"docId": d, "rating": grade(g)} for d, g in of(query)]}
            for query in ("red dress", "jeans")
        ],
    }


def stored() -> dict[str, Any]:
    source = {**import_body(), "id": "b54f", "status": "COMPLETED", "metadata": {}}
    hit = {"_index": "search-relevance-judgment", "_id": "b54f", "_score": 1, "_source": source}
    return {"took": 3, "timed_out": False, "hits": {"max_score": 1, "hits": [hit]}}


def by_query() -> dict[str, Any]:
    rated = import_body()["judgmentRatings"]
    return {"judgmentRatings": {one["query"]: one["ratings"] for one in rated}}


def quepid(key: str = "query") -> dict[str, Any]:
    return {"queries": [{key: q, "ratings": dict(of(q))} for q in ("red dress", "jeans")]}


def quepid_list() -> dict[str, Any]:
    return {
        "case_name": "shop",
        "queries": [
            {"query_text": q, "ratings": [{"doc_id": d, "rating": g} for d, g in of(q)]} for q in ("red dress", "jeans")
        ],
    }


def rre(kind: str) -> dict[str, Any]:
    """Return gains by document, documents by gain, or a list."""

    def documents(query: str) -> Any:
        if kind == "document":
            return {doc: {"gain": grade} for doc, grade in of(query)}
        if kind == "gain":
            return {str(grade): [doc] for doc, grade in of(query)}
        return [{"document_id": doc, "gain": grade} for doc, grade in of(query)]

    def asked(query: str) -> list[dict[str, Any]]:
        return [
            {"template": name, "placeholders": {"$query": query, "$lang": "en"}}
            for name in ("all.json", "filtered.json")
        ]

    groups = [
        {"name": query, "queries": asked(query), "relevant_documents": documents(query)}
        for query in ("red dress", "jeans")
    ]
    return {"index": "shop", "topics": [{"description": "all", "query_groups": groups}]}


def rre_of_quepid() -> dict[str, Any]:
    return {
        "id_field": "id",
        "queries": [
            {"placeholders": {"$query": query}, "relevant_documents": {str(grade): [doc] for doc, grade in of(query)}}
            for query in ("red dress", "jeans")
        ],
    }


def rre_flat() -> dict[str, Any]:
    (topic,) = rre("document")["topics"]
    for group in topic["query_groups"]:
        for query in group["queries"]:
            query["placeholders"] = {"query": query["placeholders"]["$query"]}
    return {"query_placeholder": "query", "query_groups": topic["query_groups"]}


def rows() -> list[dict[str, Any]]:
    return [{"query": query, "docid": doc, "rating": grade} for query, doc, grade in ROWS]


SHAPES = {
    "a request of _rank_eval": rank_eval_request(),
    "a judgment list to import": import_body(),
    "the same with numbers": import_body(float),
    "a stored judgment list": stored(),
    "a judgment list by query": by_query(),
    "ratings of Quepid": quepid(),
    "a Quepid case": quepid("query_text"),
    "a Quepid case with lists": quepid_list(),
    "RRE, gains by document": rre("document"),
    "RRE, documents by gain": rre("gain"),
    "RRE, a list": rre("list"),
    "RRE of Quepid": rre_of_quepid(),
    "RRE without topics": rre_flat(),
    "rows in a list": rows(),
}


def written(path: Path, value: Any) -> Path:
    path.write_text(json.dumps(value), encoding="utf-8")
    return path


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", ["a.json", "a.txt"])
def test_judgments_of_a_search_tool_are_read(shape: str, name: str, tmp_path: Path) -> None:
    assert read_qrels(written(tmp_path / name, SHAPES[shape])) == JUDGED


@pytest.mark.parametrize("shape", [name for name in SHAPES if name != "rows in a list"])
def test_judgments_of_a_search_tool_are_no_run(shape: str, tmp_path: Path) -> None:
    with pytest.raises(RankgaugeError, match="which has judgments; expected a run"):
        read_run(written(tmp_path / "a.json", SHAPES[shape]))


def response(scores: bool = True) -> dict[str, Any]:  # noqa: FBT001, FBT002 - a test helper
    def hit(doc: str, score: float | None, rating: int | None) -> dict[str, Any]:
        found = {"_index": "shop", "_id": doc, "_score": score if scores else None}
        return {"hit": found, "rating": rating}

    details = {
        "red dress": {
            "metric_score": 0.6,
            "unrated_docs": [{"_index": "shop", "_id": "B99"}],
            "hits": [hit("B99", 7.5, None), hit("B07", 2.25, 3)],
            "metric_details": {},
        },
        "jeans": {"metric_score": 0.0, "unrated_docs": [], "hits": [], "metric_details": {}},
    }
    return {"metric_score": 0.3, "details": details, "failures": {}}


@pytest.mark.parametrize("wrapped", [False, True])
def test_a_response_of_rank_eval_is_a_run(wrapped: bool, tmp_path: Path) -> None:  # noqa: FBT001
    value = {"rank_eval": response()} if wrapped else response()
    run = read_run(written(tmp_path / "a.json", value), name="x")
    assert run == Run.of({"red dress": {"B99": 7.5, "B07": 2.25}, "jeans": {}}, name="x")
    assert run.table.notes == ()


def test_hits_without_scores_keep_their_order(tmp_path: Path) -> None:
    path = written(tmp_path / "a.json", response(scores=False))
    run = read_run(path)
    assert run["red dress"] == {"B99": -1.0, "B07": -2.0}
    assert run.table.notes == (f"{path}: hits without a score: ranked in the order given",)


def test_the_ratings_of_a_response_are_judgments_of_what_was_retrieved(tmp_path: Path) -> None:
    path = written(tmp_path / "a.json", response())
    qrels = read_qrels(path)
    assert {query: dict(docs) for query, docs in qrels.items()} == {"red dress": {"B07": 3.0}, "jeans": {}}
    message = "\n".join(qrels.table.notes)
    assert "only ratings of retrieved documents" in message
    assert "recall, AP, and nDCG are too high" in message
    assert "1 document without a rating" in message


def test_queries_that_failed_are_a_warning(tmp_path: Path) -> None:
    value = {**response(), "failures": {"shoes": {"type": "index_not_found"}}}
    (said,) = read_run(written(tmp_path / "a.json", value)).table.notes
    assert said.startswith("WARNING")
    assert "1 query failed and has" in said
    assert "'shoes'" in said


def test_documents_of_two_indices_are_different_unless_ids_are_unique(tmp_path: Path) -> None:
    value = rank_eval_request()
    value["requests"][1]["ratings"] = [{"_index": "old", "_id": "B55", "rating": 1}]
    qrels = read_qrels(written(tmp_path / "a.json", value))
    assert qrels["jeans"] == {"B55": 1.0}
    assert qrels.table.notes[0].endswith("documents of 2 indices ('old', 'shop')")
    value["requests"][1]["ratings"] = [{"_index": "old", "_id": "B07", "rating": 1}]
    with pytest.raises(RankgaugeError, match="two documents have the same id"):
        read_qrels(written(tmp_path / "a.json", value))


def test_a_document_without_a_rating_is_unjudged(tmp_path: Path) -> None:
    value = quepid()
    value["queries"][0]["ratings"]["B02"] = None
    path = written(tmp_path / "a.json", value)
    assert read_qrels(path) == JUDGED
    assert read_qrels(path).table.notes == (f"{path}: 1 document without a rating: not judged",)


def test_a_document_rated_twice_is_reported(tmp_path: Path) -> None:
    value = rank_eval_request()
    value["requests"][0]["ratings"].append({"_index": "shop", "_id": "B07", "rating": 1})
    with pytest.raises(RankgaugeError, match="document 'B07' occurs twice for query 'red dress'"):
        read_qrels(written(tmp_path / "a.json", value))


KEYS = ["requests", "details", "judgmentRatings", "queries", "topics", "hits", "rank_eval"]


@given(
    data=st.dictionaries(st.sampled_from(KEYS), st.dictionaries(st.sampled_from(KEYS), st.integers(0, 3)), min_size=1)
)
def test_ids_that_are_keys_of_a_tool_are_ids(
    data: dict[str, dict[str, int]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = written(tmp_path_factory.mktemp("ids") / "a.json", data)
    assert read_qrels(path) == Qrels.of(data)
    assert read_run(path, name="run") == Run.of(data)


TREES = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.text(max_size=3) | st.floats(width=16),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    *KEYS,
                    "id",
                    "ratings",
                    "query",
                    "docId",
                    "_id",
                    "_index",
                    "rating",
                    "hit",
                    "_score",
                    "_source",
                    "relevant_documents",
                    "placeholders",
                    "$query",
                    "gain",
                    "query_groups",
                ]
            ),
            inner,
            max_size=3,
        )
    ),
    max_leaves=12,
)


@given(tree=TREES)
def test_any_other_tree_is_read_or_refused(tree: Any, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = written(tmp_path_factory.mktemp("trees") / "a.json", tree)
    for read in (read_qrels, read_run):
        # Any other exception is a failure.
        with contextlib.suppress(RankgaugeError):
            read(path)


def test_a_part_that_is_nested_deeply_is_refused(tmp_path: Path) -> None:
    deep: Any = "d1"
    for _ in range(400):
        deep = {"topics": [deep]}
    for value in (deep, {"requests": [{"id": deep, "ratings": []}]}, {"q1": deep}):
        with pytest.raises(RankgaugeError):
            read_qrels(written(tmp_path / "a.json", value))


def grown(value: Any, leaf: Any) -> Iterator[Any]:
    """Yield copies, each with one of its parts replaced."""
    yield leaf
    parts: Any = enumerate(value) if isinstance(value, list) else ()
    for key, part in value.items() if isinstance(value, dict) else parts:
        for other in grown(part, leaf):
            copy_of = dict(value) if isinstance(value, dict) else list(value)
            copy_of[key] = other
            yield copy_of


@pytest.mark.parametrize("shape", [*SHAPES, "a response"])
def test_a_shape_with_a_strange_part_is_read_or_refused(shape: str, tmp_path: Path) -> None:
    whole = SHAPES.get(shape) or response()
    for start, leaf in enumerate((None, True, 3.5, "x", [], {}, [[]], [{}], {"x": []})):
        # Each part is replaced by a third of the leaves.
        for value in itertools.islice(grown(whole, leaf), start % 3, None, 3):
            path = written(tmp_path / "a.json", value)
            for read in (read_qrels, read_run):
                with contextlib.suppress(RankgaugeError):
                    read(path)
