"""Tantivy in memory and in a folder, compared with BM25 from its definition."""

import math
import re
from collections import Counter

import pytest

from rankgauge import Document, InputError, Query
from rankgauge.corpus.collection import read_documents, read_queries
from rankgauge.retrievers import Tantivy
from rankgauge.sample import sample_path
from rankgauge.testing import check_retriever

tantivy = pytest.importorskip("tantivy", reason="without tantivy its adapter is not tested")

DOCUMENTS = list(read_documents(sample_path("corpus.jsonl")).values())
QUERIES = list(read_queries(sample_path("queries.jsonl")).values())
K = 10


def words(text):
    return [word for word in re.findall(r"[^\W_]+", text.lower()) if len(word) < 40]


def length_kept(length):
    """Return the stored length: exact up to 40, above that with 3 significant bits."""
    if length < 40:
        return length
    shift = (length - 24).bit_length() - 4
    return 24 + ((length - 24) >> shift << shift)


def bm25(documents, query):
    """Return BM25 (k1 = 1.2, b = 0.75) from its definition."""
    counts = {d.id: Counter(words(d.full_text)) for d in documents}
    mean = sum(sum(c.values()) for c in counts.values()) / len(counts)
    scores = {}
    for name, count in counts.items():
        length = length_kept(sum(count.values()))
        for word, times in Counter(words(query)).items():
            holding = sum(1 for c in counts.values() if c[word])
            if count[word]:
                idf = math.log(1 + (len(counts) - holding + 0.5) / (holding + 0.5))
                tf = count[word] * 2.2 / (count[word] + 1.2 * (0.25 + 0.75 * length / mean))
                scores[name] = scores.get(name, 0.0) + times * idf * tf
    return scores


def test_scores_are_those_of_bm25():
    engine = Tantivy(None)
    engine.index(DOCUMENTS)
    for query, ranking in zip(QUERIES, engine.search(QUERIES, K), strict=True):
        wanted = bm25(DOCUMENTS, query.text)
        best = sorted(wanted.values(), reverse=True)[:K]
        assert [score for _, score in ranking] == pytest.approx(best, rel=1e-5)
        for name, score in ranking:
            assert score == pytest.approx(wanted[name], rel=1e-5)


def test_a_repeated_query_term_counts_twice():
    engine = Tantivy()
    engine.index([Document("d1", text="book"), Document("d2", text="fees")])
    once, twice = engine.search([Query("1", "books"), Query("2", "books book")], K)
    assert twice[0][1] == pytest.approx(2 * once[0][1])


@pytest.mark.parametrize("folder", [False, True])
def test_the_retriever_contract_is_satisfied(tmp_path, folder):
    engine = Tantivy(location=str(tmp_path / "index") if folder else None)
    checks = check_retriever(engine)
    assert {check.name for check in checks if not check.passed} <= {"size"}
    assert (engine.size or 0) > 0 or not folder
    engine.close()


def test_nothing_in_a_query_is_syntax():
    engine = Tantivy(None)
    engine.index([Document("d1", text="open and or not"), Document("d2", text="title closed")])

    def found(text):
        return sorted(name for name, _ in engine.search([Query("q", text)], K)[0])

    assert found("-open") == found('"open"') == found("id:open^9") == found("+(open") == ["d1"]
    assert found("NOT open") == found("AND") == found("OR") == ["d1"]
    assert found("title:open") == ["d1", "d2"]
    assert found("open closed") == ["d1", "d2"]
    assert found("op*") == found("open~x".replace("open", "opn")) == []
    assert found("closed-title") == found("closed_title") == ["d2"]


def test_the_stemmer_and_stop_words_are_of_the_language():
    documents = [Document("d1", text="die Häuser"), Document("d2", text="die Straße")]
    query = [Query("q", "die Haus")]

    def found(engine):
        engine.index(documents)
        return {name for name, _ in engine.search(query, K)[0]}

    assert found(Tantivy("german", stop_words="german")) == {"d1"}
    assert found(Tantivy("german")) == {"d1", "d2"}
    assert found(Tantivy(None, stop_words="german")) == set()


def test_ties_keep_the_order_of_the_documents():
    engine = Tantivy()
    engine.index([Document(name, text="late fees") for name in "zbya"])
    assert [name for name, _ in engine.search([Query("q", "fee")], K)[0]] == list("zbya")
    assert [name for name, _ in engine.search([Query("q", "fee")], 2)[0]] == ["z", "b"]


def test_a_filter_chooses_and_does_not_rank():
    kinds = ["a", "it's", 'say "so"', "back\\slash", "図", 7, True]
    documents = [
        Document(d.id, d.title, d.text, {} if n % 8 == 7 else {"kind": kinds[n % 8]}) for n, d in enumerate(DOCUMENTS)
    ]
    engine = Tantivy(filter_field="kind")
    engine.index(documents)
    everything = dict(engine.search([Query("q", "opening hours books")], 1000)[0])
    for kind in kinds:
        query = Query("q", "opening hours books", {"kind": kind})
        (ranking,) = engine.search([query], 1000)
        some = {d.id for d in documents if d.fields.get("kind") == kind}
        assert dict(ranking) == pytest.approx({n: s for n, s in everything.items() if n in some})


def test_an_index_in_a_folder_is_reused_and_not_overwritten(tmp_path):
    folder = tmp_path / "index"
    first = Tantivy("english", location=str(folder))
    first.index(DOCUMENTS)
    before = first.search(QUERIES, K)
    first.close()
    (folder / "mine.txt").write_text("kept")
    other = Tantivy("english", location=str(folder))
    with pytest.raises(InputError, match="replace=True"):
        other.index(DOCUMENTS[:3])
    existing = Tantivy("english", location=str(folder), existing=True)
    existing.index(DOCUMENTS[:3])
    assert existing.search(QUERIES, K) == before
    assert existing.settings is None
    replacing = Tantivy("english", location=str(folder), replace=True)
    replacing.index(DOCUMENTS[:3])
    (ranking,) = replacing.search([Query("q", "renew loans library")], K)
    assert {name for name, _ in ranking} <= {document.id for document in DOCUMENTS[:3]}
    assert (folder / "mine.txt").read_text() == "kept"


def test_an_existing_index_is_searched_by_its_fields(tmp_path):
    builder = tantivy.SchemaBuilder()
    builder.add_text_field("url", stored=True, tokenizer_name="raw")
    builder.add_text_field("title", tokenizer_name="en_stem")
    builder.add_text_field("body", tokenizer_name="en_stem")
    index = tantivy.Index(builder.build(), path=str(tmp_path))
    writer = index.writer(15_000_000, 1)
    for url, title, body in (("/fees", "Fees", "late"), ("/hours", "Hours", "opening and fees")):
        row = tantivy.Document()
        row.add_text("url", url)
        row.add_text("title", title)
        row.add_text("body", body)
        writer.add_document(row)
    writer.commit()
    writer.wait_merging_threads()
    options = {"location": str(tmp_path), "existing": True}
    engine = Tantivy(id_field="url", fields=["title", "body"], **options)
    (ranking,) = engine.search([Query("q", "opening fee")], K)
    assert {name for name, _ in ranking} == {"/fees", "/hours"}
    with pytest.raises(InputError, match="'id'; it has url"):
        Tantivy(fields=["body"], **options).search([Query("q", "fee")], K)
    with pytest.raises(InputError, match="text"):
        Tantivy(**options).index([])


@pytest.mark.parametrize(
    "options",
    [
        {"stemmer": "klingon"},
        {"stop_words": "klingon"},
        {"heap": 5},
        {"existing": True},
        {"fields": "text"},
        {"fields": ["a", "b"]},
        {"filter_field": "id"},
        {"id_field": "text"},
    ],
    ids=lambda options: "-".join(f"{k}-{v}" for k, v in options.items()),
)
def test_invalid_options_are_refused(options):
    with pytest.raises(InputError, match="fix: "):
        Tantivy(**options)


def test_a_folder_without_an_index_is_named(tmp_path):
    with pytest.raises(InputError, match="index of Tantivy"):
        Tantivy(location=str(tmp_path), existing=True).index([])
