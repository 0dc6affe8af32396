"""Fused rankings of several retrievers."""

import gzip
import json
from importlib.metadata import version

import pytest

from rankgauge import Collection, Document, Query, evaluate, fuse
from rankgauge.errors import InputError, UnknownName
from rankgauge.retrievers import BM25, Dense, HashingEncoder, Hybrid, Random, SavedRun
from rankgauge.retrievers.protocol import Retriever, search

DOCUMENTS = [
    Document(f"d{n}", text=text) for n, text in enumerate(["late fees", "fees", "opening hours", "hours of rooms", ""])
]
QUERIES = [Query("q1", "late hours"), Query("q2", "fees of rooms"), Query("q3", "xyz")]


def parts():
    return [BM25(), Dense(HashingEncoder(128))]


@pytest.mark.parametrize("method", ["rrf", "combsum", "combmnz", "borda", "condorcet"])
def test_it_fuses_as_fuse_does(method):
    hybrid = Hybrid(parts(), method=method)
    assert isinstance(hybrid, Retriever)
    hybrid.index(DOCUMENTS)
    runs = []
    for one in parts():
        one.index(DOCUMENTS)
        found = one.search(QUERIES, 100)
        runs.append({q.id: ranking for q, ranking in zip(QUERIES, found, strict=True) if ranking})
    wanted = fuse(runs, method, ties="input")
    found = hybrid.search(QUERIES, 100)
    assert [dict(ranking) for ranking in found] == [dict(wanted[q.id]) for q in QUERIES]
    assert found == [hybrid.search([query], 100)[0] for query in QUERIES]
    assert hybrid.search(QUERIES, 2) == [ranking[:2] for ranking in found]


def test_any_retriever_takes_part_also_one_that_finds_nothing():
    async def later(_text):
        return ["d2", "d1"]

    hybrid = Hybrid([lambda _: [], later, lambda _: {"d1": 0.5}], k=1)
    hybrid.index(DOCUMENTS)
    assert hybrid.search(QUERIES[:1], 10) == [[("d1", 5 / 6), ("d2", 1 / 2)]]
    assert Hybrid([lambda _: [], lambda _: []]).search(QUERIES, 10) == [[], [], []]
    assert hybrid.search([], 10) == []


def test_two_queries_with_one_id_are_two():
    hybrid = Hybrid([lambda text: [text], lambda text: [text]])
    found = hybrid.search([Query("q", "a"), Query("q", "b")], 10)
    assert [[name for name, _ in ranking] for ranking in found] == [["a"], ["b"]]


def test_weights_count_the_retrievers():
    one, other = (lambda _: ["d1", "d2"]), (lambda _: ["d2", "d1"])
    for weights, first in (((2, 1), "d1"), ((1, 2), "d2"), ((0, 1), "d2")):
        assert Hybrid([one, other], weights=weights).search(QUERIES, 1)[0][0][0] == first


def test_depth_says_how_many_take_part():
    asked = []

    def one(_text, k):
        asked.append(k)
        return [f"d{n}" for n in range(k)]

    Hybrid([one, one], depth=7).search(QUERIES[:1], 3)
    Hybrid([one, one], depth=7).search(QUERIES[:1], 20)
    assert asked == [7, 7, 20, 20]


def test_settings_are_those_of_all_or_none():
    hybrid = Hybrid(parts(), k=10)
    assert json.loads(json.dumps(hybrid.settings)) == hybrid.settings
    assert (hybrid.settings["k"], hybrid.settings["depth"]) == (10, 100)
    assert [part["type"] for part in hybrid.settings["of"]] == ["bm25", "dense"]
    assert Hybrid([Random(), lambda _: []]).settings is None


def test_size_usage_and_close_are_those_of_all():
    class Counting(Random):
        size = 5
        closed = 0

        def usage(self):
            return {"tokens": 2}

        def close(self):
            self.closed += 1

    class Silent(Random):
        size = None

    members = [Counting(1), Counting(2), Random(), Silent()]
    hybrid = Hybrid(members)
    hybrid.close()
    assert (hybrid.size, hybrid.usage()) == (10, {"tokens": 4})
    assert [one.closed for one in members[:2]] == [1, 1]


@pytest.mark.parametrize(
    ("of", "options", "error"),
    [
        ([Random()], {}, InputError),
        ("bm25", {}, InputError),
        (None, {}, InputError),
        (None, {"method": "rrf"}, InputError),
        ([Random(), Random()], {"method": "rff"}, UnknownName),
        ([Random(), Random()], {"weights": [1]}, InputError),
        ([Random(), Random()], {"norm": "min-max"}, InputError),
        ([Random(), Random()], {"method": "wsum"}, InputError),
        ([Random(), Random()], {"depth": 0}, InputError),
    ],
    ids=lambda value: str(value)[:30] if isinstance(value, dict | str) else type(value).__name__,
)
def test_impossible_options_are_refused_by_the_constructor(of, options, error):
    with pytest.raises(error):
        Hybrid(of, **options)


def test_the_stored_fusion_comes_out_again(data_folder):
    folder = data_folder / "cranfield"
    collection = Collection.read(folder)
    queries = list(collection.queries.values())
    dense = SavedRun(folder / "runs" / "minilm-l6-v2-cosine.run.gz", missing="empty")
    hybrid = Hybrid([BM25(fields=["title", "text"]), dense], depth=200)
    hybrid.index(collection.documents.values())
    found = search(hybrid, queries, 100)
    run = {q.id: hits.pairs() for q, hits in zip(queries, found, strict=True) if len(hits)}
    measured = evaluate(folder / "trec" / "qrels.txt", run, ["nDCG@10"]).mean()
    with gzip.open(folder / "expected" / "rrf-bm25-minilm-k60.json.gz") as file:
        wanted = json.load(file)["nDCG@10"]["mean_all_judged"]
    # Scores are stored with six digits, so a few ties differ. Older stemmers stem differently.
    near = 1e-4 if version("pystemmer") >= "3" else 0.02
    assert measured["nDCG@10"] == pytest.approx(wanted, abs=near)
