"""Haystack itself: in-memory BM25, alone and in pipelines, on the sample."""

import pytest

pytest.importorskip("haystack", reason="haystack-ai is not installed")

from haystack import Document as Page, Pipeline, component
from haystack.components.joiners import DocumentJoiner
from haystack.components.retrievers.in_memory import InMemoryBM25Retriever
from haystack.document_stores.in_memory import InMemoryDocumentStore

from rankgauge import Collection, InputError, Query
from rankgauge.retrievers import Haystack
from rankgauge.sample import sample_path
from rankgauge.testing import check_retriever

SAMPLE = Collection.read(sample_path("qrels.txt").parent)
DOCUMENTS = list(SAMPLE.documents.values())
QUERIES = list(SAMPLE.queries.values())
ASKED = [Query("q", "opening hours")]


@pytest.fixture(scope="module")
def store():
    made = InMemoryDocumentStore()
    made.write_documents(
        [Page(id=one.id, content=one.full_text, meta={"group": one.id.partition("-")[0]}) for one in DOCUMENTS]
    )
    return made


@component
class Shouting:
    """A component before the retriever, with another input name."""

    @component.output_types(query=str)
    def run(self, text: str):
        return {"query": text.upper()}


@component
class Counting:
    """A component after the retriever."""

    @component.output_types(count=int)
    def run(self, documents: list[Page]):
        return {"count": len(documents)}


def single(store):
    pipeline = Pipeline()
    pipeline.add_component("retriever", InMemoryBM25Retriever(store))
    return pipeline


def test_a_component_satisfies_the_retriever_contract(store):
    retriever = Haystack(InMemoryBM25Retriever(store), settings={"k1": 1.5})
    checks = check_retriever(retriever, DOCUMENTS, QUERIES, indexing=False)
    assert len([one for one in checks if not one.passed]) == 3


def test_hits_are_those_of_the_document_store(store):
    (hits,) = Haystack(InMemoryBM25Retriever(store, scale_score=False)).search(ASKED, 7)
    wanted = store.bm25_retrieval("opening hours", top_k=7)
    assert hits == [(page.id, page.score) for page in wanted]
    assert len(hits) == 7


def test_a_pipeline_gives_what_its_component_gives(store):
    (alone,) = Haystack(InMemoryBM25Retriever(store)).search(ASKED, 12)
    assert Haystack(single(store), top_k="retriever.top_k").search(ASKED, 12) == [alone]
    assert Haystack(single(store)).search(ASKED, 12) == [alone[:10]]


def test_paths_select_outputs_of_a_longer_pipeline(store):
    pipeline = single(store)
    pipeline.add_component("shouting", Shouting())
    pipeline.add_component("counting", Counting())
    pipeline.connect("shouting.query", "retriever.query")
    pipeline.connect("retriever.documents", "counting.documents")
    asked = Haystack(pipeline, input="shouting.text", output="retriever.documents")
    assert asked.search(ASKED, 5) == Haystack(InMemoryBM25Retriever(store)).search(ASKED, 5)


def test_a_hybrid_pipeline_receives_the_query_at_several_inputs(store):
    pipeline = Pipeline()
    pipeline.add_component("one", InMemoryBM25Retriever(store))
    pipeline.add_component("two", InMemoryBM25Retriever(store))
    pipeline.add_component("joiner", DocumentJoiner(join_mode="reciprocal_rank_fusion"))
    pipeline.connect("one.documents", "joiner.documents")
    pipeline.connect("two.documents", "joiner.documents")
    asked = Haystack(
        pipeline, input=["one.query", "two.query"], output="joiner.documents", top_k=["one.top_k", "two.top_k"]
    )
    check_retriever(asked, DOCUMENTS, QUERIES, indexing=False)
    (alone,) = Haystack(InMemoryBM25Retriever(store)).search(ASKED, 3)
    (hybrid,) = asked.search(ASKED, 3)
    assert [name for name, _ in hybrid] == [name for name, _ in alone]


def test_ids_can_be_read_from_meta(store):
    (hits,) = Haystack(InMemoryBM25Retriever(store), id_key="group", depth=40).search(ASKED, 3)
    names = [name for name, _ in hits]
    assert len(set(names)) == 3
    assert all("-" not in name for name in names)
    with pytest.raises(InputError, match="no source; keys of its metadata: group"):
        Haystack(InMemoryBM25Retriever(store), id_key="source").search(ASKED, 3)


@pytest.mark.parametrize(
    ("option", "value", "fix"),
    [
        ("input", "query", "retriever.query"),
        ("output", "a.b.c", "retriever.c"),
        ("top_k", "retriever.", "retriever.top_k"),
    ],
)
def test_an_invalid_name_of_an_input_or_output_is_reported(store, option, value, fix):
    with pytest.raises(InputError) as caught:
        Haystack(single(store), **{option: value})
    assert caught.value.what == f"{option}={value!r} is not the name of an input or output of a component"
    assert caught.value.fix == f'write {option}="{fix}"'


def test_a_missing_output_is_named(store):
    with pytest.raises(InputError, match=r"no output 'retriever.pages'; found: documents"):
        Haystack(single(store), output="retriever.pages").search(ASKED, 3)
    with pytest.raises(InputError, match="has no run"):
        Haystack(7)
