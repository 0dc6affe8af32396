"""LangChain itself: retrievers, vector stores, and chains on the sample."""

import itertools
import math
import zlib

import pytest

core = pytest.importorskip("langchain_core", reason="langchain-core is not installed")

from langchain_core.documents import Document as Page  # noqa: E402
from langchain_core.embeddings import Embeddings  # noqa: E402
from langchain_core.retrievers import BaseRetriever  # noqa: E402
from langchain_core.vectorstores import InMemoryVectorStore  # noqa: E402

from rankgauge import Benchmark, Collection, InputError, Query, evaluate, read_qrels  # noqa: E402
from rankgauge.retrievers import LangChain  # noqa: E402
from rankgauge.sample import sample_path  # noqa: E402
from rankgauge.testing import check_retriever  # noqa: E402

SAMPLE = Collection.read(sample_path("qrels.txt").parent)
DOCUMENTS = list(SAMPLE.documents.values())
QUERIES = list(SAMPLE.queries.values())


class Words(Embeddings):
    """Vectors of hashed words, equal on every machine."""

    def embed_documents(self, texts):
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text):
        vector = [1e-3] * 256
        for word in text.lower().split():
            vector[zlib.crc32(word.encode()) % 256] += 1.0
        length = math.sqrt(sum(value * value for value in vector))
        return [value / length for value in vector]


class Distances(InMemoryVectorStore):
    """Returns distances, as many stores do."""

    def similarity_search_with_score(self, query, k=4, **rest):
        found = super().similarity_search_with_score(query, k=k, **rest)
        return [(page, 1 - score) for page, score in found]


class Fixed(BaseRetriever):
    """Returns the same pages for every query."""

    pages: list[Page]
    k: int = 1

    def _get_relevant_documents(self, query, *, run_manager):
        return self.pages[: self.k]


def filled(kind=InMemoryVectorStore):
    store = kind(Words())
    store.add_documents([Page(id=one.id, page_content=one.full_text) for one in DOCUMENTS])
    return store


def nearest(text, k):
    """Independent check: all dot products."""
    words = Words()
    asked = words.embed_query(text)
    scores = {
        one.id: sum(a * b for a, b in zip(asked, words.embed_query(one.full_text), strict=True)) for one in DOCUMENTS
    }
    return sorted(scores.items(), key=lambda row: -row[1])[:k]


def test_a_vector_store_is_indexed_and_satisfies_the_contract():
    retriever = LangChain(InMemoryVectorStore(Words()), score="similarity", indexing=True, settings={"model": "words"})
    checks = check_retriever(retriever)
    assert [one.name for one in checks if not one.passed] == []


def test_the_store_of_a_retriever_is_indexed_too():
    """With search by diversity, only the order matters; scores are not read."""
    own = InMemoryVectorStore(Words()).as_retriever(search_type="mmr", search_kwargs={"fetch_k": 90})
    checks = check_retriever(LangChain(own, indexing=True))
    assert [one.name for one in checks if not one.passed] == [
        "scores are finite and in descending order",
        "settings are plain, without secrets",
    ]


@pytest.mark.parametrize(
    ("retriever", "depth"),
    [
        (LangChain(filled(), score="similarity"), 10),
        (LangChain(filled(Distances), score="distance"), 10),
        (LangChain(filled()), 10),
        (LangChain(filled().as_retriever()), 10),
        # A chain takes no number of results; it was created with four.
        (LangChain(filled().as_retriever() | (lambda pages: pages)), 4),
    ],
    ids=["similarity", "distance", "store", "retriever", "chain"],
)
def test_all_search_types_give_the_same_ranking(retriever, depth):
    check_retriever(retriever, DOCUMENTS, QUERIES, indexing=False)
    for query, hits in zip(QUERIES, retriever.search(QUERIES, 10), strict=True):
        wanted = nearest(query.text, 11)
        if any(math.isclose(a[1], b[1]) for a, b in itertools.pairwise(wanted)):
            continue
        names = [hit if isinstance(hit, str) else hit[0] for hit in hits]
        assert names == [name for name, _ in wanted[:depth]]


def test_similarities_are_those_of_the_store_and_distances_are_negated():
    query = [Query("q", "opening hours")]
    (similar,) = LangChain(filled(), score="similarity").search(query, 3)
    (distant,) = LangChain(filled(Distances), score="distance").search(query, 3)
    assert similar[0][1] == pytest.approx(nearest("opening hours", 1)[0][1])
    assert [score for _, score in distant] == pytest.approx([score - 1 for _, score in similar])


@pytest.mark.parametrize(
    ("kind", "score", "other"), [(InMemoryVectorStore, "distance", "similarity"), (Distances, "similarity", "distance")]
)
def test_scores_in_the_wrong_direction_are_detected(kind, score, other):
    with pytest.raises(InputError, match=f'set score="{other}"'):
        LangChain(filled(kind), score=score).search([Query("q", "opening hours")], 5)


def test_k_replaces_the_default_depth_of_a_retriever():
    own = filled().as_retriever()
    assert len(own.invoke("opening hours")) == 4
    assert len(LangChain(own).search([Query("q", "opening hours")], 9)[0]) == 9
    assert own.search_kwargs == {}
    pages = [Page(page_content="", metadata={"doc_id": number}) for number in range(5)]
    assert LangChain(Fixed(pages=pages)).search([Query("q", "a")], 3) == [["0", "1", "2"]]


def test_documents_of_chunks_are_unique_and_depth_retrieves_more():
    pages = [
        Page(id=f"c{number}", page_content="", metadata={"source": f"d{number // 2}", "s": 9.0 - number})
        for number in range(8)
    ]
    queries = [Query("q", "a")]
    assert LangChain(Fixed(pages=pages), id_key="source").search(queries, 3) == [["d0", "d1"]]
    deep = LangChain(Fixed(pages=pages), id_key="source", depth=6, score_key="s")
    assert deep.search(queries, 3) == [[("d0", 9.0), ("d1", 7.0), ("d2", 5.0)]]
    assert LangChain(Fixed(pages=pages)).search(queries, 2) == [["c0", "c1"]]


def test_a_page_without_an_id_is_an_error_that_names_its_keys():
    retriever = LangChain(Fixed(pages=[Page(page_content="", metadata={"source": "x", "page": 2})]))
    with pytest.raises(InputError, match=r"keys of its metadata: source, page") as caught:
        retriever.search([Query("q", "a")], 3)
    assert "id_key='source'" in caught.value.fix


# ---- loader paths as ids

PAGES = {f"{'loans' if n % 2 else 'house'}/{name}.md": f"# {name}\n\nAll about {name} in the library.\n" for n, name in
         enumerate(["renewing", "fees", "hours", "borrowing", "reading", "printing", "parking", "wifi"])}  # fmt: skip


@pytest.fixture
def handbook(tmp_path):
    """A folder of pages and questions, and a store of its chunks with the paths of a loader."""
    folder = tmp_path / "handbook"
    for page, text in PAGES.items():
        (folder / page).parent.mkdir(parents=True, exist_ok=True)
        (folder / page).write_text(text, encoding="utf-8")
    rows = (f"what about {page.partition('/')[2][:-3]},{page}\n" for page in PAGES)
    (folder / "questions.csv").write_text("question,relevant\n" + "".join(rows), encoding="utf-8")
    store = InMemoryVectorStore(Words())
    for path in sorted(folder.rglob("*.md")):
        parts = path.read_text(encoding="utf-8").split("\n\n")
        store.add_documents(
            [Page(page_content=part, metadata={"source": str(path), "chunk": n}) for n, part in enumerate(parts)]
        )
    return folder, store.as_retriever()


@pytest.mark.parametrize("options", [{"id_key": "source"}, {"id_key": "chunk"}, {}])
def test_the_advice_makes_ids_of_loader_paths_match(handbook, options):
    folder, retriever = handbook
    bench = Benchmark(Collection.load(folder), k=8)
    run = bench.run("mine", LangChain(retriever, **options), timed=0)
    advice = f'LangChain(..., id_key="source", base="{folder}") would match 8 of 8 documents'
    assert any(advice in note for note in run.notes)
    evaluation = run.evaluate("R@8")
    assert evaluation.mean()["R@8"] == 0
    bench.run("other", lambda text: list(PAGES), timed=0)
    for findings in (evaluation.input_findings, [one for _, one in bench.compare("R@8").comparison.withheld]):
        assert [finding.fix for finding in findings if finding.code in {"P102", "P103", "T104"}] == [advice]
        assert not any("rankgauge check" in finding.fix for finding in findings)
    fixed = bench.run("fixed", LangChain(retriever, id_key="source", base=folder, depth=24), timed=0)
    assert fixed.evaluate("R@8").mean()["R@8"] == 1


def test_the_advice_for_ids_of_chunks_is_a_function(handbook):
    folder, retriever = handbook
    bench = Benchmark(Collection.load(folder), k=24)
    for n, page in enumerate(sorted(retriever.vectorstore.store.values(), key=lambda page: page["metadata"]["source"])):
        page["metadata"] = {"chunk_id": f"{page['metadata']['source']}#{n}"}
    advice = bench.run("mine", LangChain(retriever, id_key="chunk_id"), timed=0).tally.id_advice
    options = 'id=lambda doc: doc.metadata["chunk_id"].rsplit("#", 1)[0]'
    assert advice.startswith(f'LangChain(..., base="{folder}", {options}) would match 16 of 16')
    fixed = LangChain(retriever, base=folder, id=lambda doc: doc.metadata["chunk_id"].rsplit("#", 1)[0])
    assert bench.run("fixed", fixed, timed=0).evaluate("R@24").mean()["R@24"] == 1


def test_a_wrong_id_key_is_not_answered_with_a_repetition(handbook):
    folder, retriever = handbook
    bench = Benchmark(Collection.load(folder), k=8)
    run = bench.run("mine", LangChain(retriever, id_key="path"), timed=0)
    with pytest.raises(InputError, match="a document has no path; keys of its metadata: source, chunk") as caught:
        run.evaluate("R@8")
    assert caught.value.fix == "name the key of the document id: LangChain(..., id_key='source')"


def test_indexing_keeps_earlier_documents_of_a_store():
    store = InMemoryVectorStore(Words())
    store.add_documents([Page(id="theirs", page_content="opening hours")])
    retriever = LangChain(store, indexing=True)
    retriever.index(DOCUMENTS)
    retriever.index(DOCUMENTS[:3])
    assert set(store.store) == {"theirs", *(one.id for one in DOCUMENTS[:3])}


def test_a_run_can_be_evaluated():
    retriever = LangChain(filled(), score="similarity")
    run = {query.id: dict(hits) for query, hits in zip(QUERIES, retriever.search(QUERIES, 10), strict=True)}
    mean = evaluate(read_qrels(sample_path("qrels.txt")), run, ["R@10"]).mean()
    assert 0.2 < mean["R@10"] < 0.9


@pytest.mark.parametrize(
    ("given", "options", "message"),
    [
        (7, {}, "has no invoke"),
        (Fixed(pages=[]), {"score": "similarity"}, "LangChain: retrievers return no scores"),
        (Fixed(pages=[]), {"score": "cosine"}, "unknown kind of score 'cosine'"),
        (Fixed(pages=[]), {"depth": 0}, "depth=0 is not valid"),
        (Fixed(pages=[]), {"indexing": True}, "no vector store"),
        (Fixed(pages=[]), {"settings": "bm25"}, "got 'bm25' for the settings"),
    ],
    ids=["no retriever", "no scores", "score", "depth", "no store", "settings"],
)
def test_invalid_options_are_named(given, options, message):
    with pytest.raises(ValueError, match=message) as caught:
        LangChain(given, **options)
    assert caught.value.fix


def test_searching_before_indexing_is_an_error():
    with pytest.raises(InputError, match="no documents yet"):
        LangChain(InMemoryVectorStore(Words()), indexing=True).search([Query("q", "a")], 3)


def test_settings_are_those_declared_or_none():
    assert LangChain(filled()).settings is None
    told = LangChain(filled(), id_key="source", settings={"model": "words"}).settings
    assert told == {
        "type": "langchain",
        "id_key": "source",
        "indexing": False,
        "model": "words",
        "versions": {"langchain-core": core.__version__},
    }
