"""LlamaIndex itself: a vector index of the sample with vectors of hashed words."""

import zlib

import pytest

pytest.importorskip("llama_index.core", reason="llama-index-core is not installed")

from llama_index.core import Document as Page, VectorStoreIndex
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.node_parser import TokenTextSplitter
from llama_index.core.schema import NodeRelationship, NodeWithScore, RelatedNodeInfo, TextNode

from rankgauge import Collection, InputError, Query
from rankgauge.retrievers import LlamaIndex
from rankgauge.sample import sample_path
from rankgauge.testing import check_retriever

SAMPLE = Collection.read(sample_path("qrels.txt").parent)
DOCUMENTS = list(SAMPLE.documents.values())
QUERIES = list(SAMPLE.queries.values())
ASKED = [Query("q", "opening hours")]


def vector(text):
    values = [1e-3] * 256
    for word in text.lower().split():
        values[zlib.crc32(word.encode()) % 256] += 1.0
    length = sum(value * value for value in values) ** 0.5
    return [value / length for value in values]


class Words(BaseEmbedding):
    def _get_text_embedding(self, text):
        return vector(text)

    def _get_query_embedding(self, query):
        return vector(query)

    async def _aget_query_embedding(self, query):
        return vector(query)


class Fixed(BaseRetriever):
    """Returns the same nodes for every query."""

    def __init__(self, nodes):
        super().__init__()
        self.nodes = nodes

    def _retrieve(self, query_bundle):
        return self.nodes


@pytest.fixture(scope="module")
def index():
    pages = [Page(text=one.full_text, doc_id=one.id) for one in DOCUMENTS]
    return VectorStoreIndex.from_documents(
        pages,
        embed_model=Words(),
        transformations=[TokenTextSplitter(chunk_size=60, chunk_overlap=0, tokenizer=str.split)],
    )


def node(name, score, source=None, **data):
    made = TextNode(id_=name, text="", metadata=data)
    if source:
        made.relationships[NodeRelationship.SOURCE] = RelatedNodeInfo(node_id=source)
    return NodeWithScore(node=made, score=score)


def test_an_index_of_chunks_satisfies_the_retriever_contract(index):
    retriever = LlamaIndex(index.as_retriever(), depth=200, settings={"model": "words"})
    checks = check_retriever(retriever, DOCUMENTS, QUERIES, indexing=False)
    assert len([one for one in checks if not one.passed]) == 3


def test_a_document_has_the_rank_of_its_best_chunk(index):
    """Compare with the products of all chunks, without the framework's search."""
    chunks = list(index.docstore.docs.values())
    assert len(chunks) > len(DOCUMENTS)
    best = {}
    for chunk in chunks:
        text = chunk.get_content(metadata_mode="embed")
        score = sum(a * b for a, b in zip(vector(ASKED[0].text), vector(text), strict=True))
        best[chunk.ref_doc_id] = max(score, best.get(chunk.ref_doc_id, 0.0))
    (hits,) = LlamaIndex(index.as_retriever(), depth=len(chunks)).search(ASKED, 20)
    assert [score for _, score in hits] == pytest.approx(sorted(best.values(), reverse=True)[:20])
    assert all(best[name] == pytest.approx(score) for name, score in hits)


def test_the_retriever_returns_k_and_is_not_modified(index):
    own = index.as_retriever()
    assert own.similarity_top_k == 2
    (hits,) = LlamaIndex(own, ids="node").search(ASKED, 9)
    assert len(hits) == 9
    assert own.similarity_top_k == 2


def test_ids_are_of_documents_of_metadata_or_of_nodes():
    nodes = [node("n1", 0.9, "d1", page="p1"), node("n2", 0.8, "d1", page="p2"), node("n3", 0.7)]
    assert LlamaIndex(Fixed(nodes)).search(ASKED, 5) == [[("d1", 0.9), ("n3", 0.7)]]
    assert LlamaIndex(Fixed(nodes[:2]), id_key="page").search(ASKED, 5) == [[("p1", 0.9), ("p2", 0.8)]]
    assert LlamaIndex(Fixed(nodes), ids="node").search(ASKED, 2) == [[("n1", 0.9), ("n2", 0.8)]]


def test_the_order_counts_where_scores_do_not_follow_it():
    assert LlamaIndex(Fixed([node("a", 0.1), node("b", 0.9)])).search(ASKED, 5) == [["a", "b"]]
    assert LlamaIndex(Fixed([node("a", None), node("b", 0.9)])).search(ASKED, 5) == [["a", "b"]]


def test_a_node_without_the_key_is_an_error_that_names_its_keys():
    with pytest.raises(InputError, match="no source; keys of its metadata: page"):
        LlamaIndex(Fixed([node("n1", 0.9, page=1)]), id_key="source").search(ASKED, 5)


@pytest.mark.parametrize(
    ("given", "options", "message"),
    [
        (7, {}, "has no retrieve"),
        (Fixed([]), {"ids": "chunk"}, "unknown kind of ids 'chunk'"),
        (Fixed([]), {"ids": "node", "id_key": "x"}, "nodes are requested"),
        (Fixed([]), {"depth": True}, "depth=True is not valid"),
    ],
    ids=["no retriever", "ids", "ids and key", "depth"],
)
def test_invalid_options_are_named(given, options, message):
    with pytest.raises(ValueError, match=message) as caught:
        LlamaIndex(given, **options)
    assert caught.value.fix
