"""PyTerrier itself: transformers and pipelines that need no Java, on the sample."""

import pytest

pt = pytest.importorskip("pyterrier", reason="python-terrier is not installed")
pd = pytest.importorskip("pandas", reason="pandas is not installed")

import ir_measures  # noqa: E402

import rankgauge  # noqa: E402
from rankgauge import Collection, InputError, Qrels, Query, Run  # noqa: E402
from rankgauge.retrievers import PyTerrier  # noqa: E402
from rankgauge.sample import sample_path  # noqa: E402
from rankgauge.stats import randomization_test  # noqa: E402
from rankgauge.testing import check_retriever  # noqa: E402
from rankgauge.tutorials.ir_measures import define  # noqa: E402

SAMPLE = Collection.read(sample_path("qrels.txt").parent)
DOCUMENTS = list(SAMPLE.documents.values())
QUERIES = list(SAMPLE.queries.values())
# PyTerrier 1.0 uses features that pandas 3.1 deprecates.
pytestmark = pytest.mark.filterwarnings("ignore:The inplace keyword")
ASKED = [Query("a", "opening hours"), Query("b", "zzz"), Query("c", "a lost book")]


class Words(pt.Transformer):
    """Counts common words; returns one frame for all queries, in an unsorted order."""

    def __init__(self):
        super().__init__()
        self.seen = []

    def transform(self, inp):
        self.seen.append(len(inp))
        rows = []
        for query in inp[::-1].itertuples():
            words = set(query.query.lower().split())
            for one in reversed(DOCUMENTS):
                score = len(words & set(one.full_text.lower().split()))
                if score:
                    rows.append((query.qid, query.query, one.id, float(score)))
        frame = pd.DataFrame(rows, columns=["qid", "query", "docno", "score"])
        return pt.model.add_ranks(frame)


def wanted(text, k):
    """Independent check, in the order of PyTerrier's ranks."""
    words = set(text.lower().split())
    rows = [(one.id, len(words & set(one.full_text.lower().split()))) for one in reversed(DOCUMENTS)]
    return sorted((row for row in rows if row[1]), key=lambda row: -row[1])[:k]


def test_a_transformer_satisfies_the_retriever_contract():
    retriever = PyTerrier(Words(), settings={"model": "words"})
    checks = check_retriever(retriever, DOCUMENTS, QUERIES, indexing=False)
    assert len([one for one in checks if not one.passed]) == 3


def test_queries_are_sent_in_one_batch_and_answers_keep_their_order():
    words = Words()
    found = PyTerrier(words).search(ASKED, 5)
    assert words.seen == [3]
    assert [score for _, score in found[0]] == [score for _, score in wanted("opening hours", 5)]
    assert dict(found[2]).keys() <= dict(wanted("a lost book", 500)).keys()
    assert found[1] == []


@pytest.mark.parametrize(
    "build",
    [
        lambda words: words % 3,
        lambda words: pt.apply.query(lambda row: row["query"]) >> words,
        lambda words: words >> pt.apply.doc_score(lambda row: row["score"] * 2),
    ],
    ids=["cutoff", "rewrite", "rescore"],
)
def test_pipelines_work(build):
    (hits,) = PyTerrier(build(Words())).search(ASKED[:1], 3)
    assert len(hits) == 3
    assert [name for name, _ in hits] == [name for name, _ in PyTerrier(Words()).search(ASKED[:1], 3)[0]]


def test_two_queries_can_have_the_same_id():
    found = PyTerrier(Words()).search([Query("a", "opening hours"), Query("a", "lost book")], 2)
    assert found[0] != found[1]


def test_no_queries_give_no_rankings():
    assert PyTerrier(Words()).search([], 5) == []


def test_a_pipeline_without_results_gives_empty_rankings():
    empty = pt.apply.generic(lambda frame: frame.iloc[:0].assign(docno=[], score=[]))
    assert PyTerrier(empty).search(ASKED, 5) == [[], [], []]


@pytest.mark.parametrize(
    ("transformer", "message"),
    [
        (pt.Transformer.identity(), "returned no docno, score; columns: qid, query"),
        (pt.apply.generic(lambda frame: frame.assign(qid="x", docno="d", score=1.0)), "unknown query: qid 'x'"),
    ],
    ids=["queries only", "other queries"],
)
def test_an_invalid_ranking_is_named(transformer, message):
    with pytest.raises(InputError, match=message):
        PyTerrier(transformer).search(ASKED, 5)


def test_an_object_that_is_not_a_transformer_is_named():
    with pytest.raises(InputError, match="which has no transform"):
        PyTerrier(7)


def _results(name):
    run = Run.of(sample_path(f"runs/{name}.run"))
    rows = [(query, document, score) for query in run for document, score in run[query].items()]
    return pt.model.add_ranks(pd.DataFrame(rows, columns=["qid", "docno", "score"]))


def test_an_experiment_has_our_measures_and_significance():
    judged = Qrels.of(sample_path("qrels.txt"))
    rows = [(query, document, int(grade)) for query in judged for document, grade in judged[query].items()]
    qrels = pd.DataFrame(rows, columns=["qid", "docno", "label"])
    topics = pd.DataFrame([(query.id, query.text) for query in QUERIES], columns=["qid", "query"])
    runs = {"bm25": _results("bm25"), "keyword": _results("keyword")}
    names = ["nDCG@10", "nDCG@0.5R", "RBP(p=0.8)"]

    def randomization(baseline, other):
        return None, randomization_test(other - baseline).p.item()

    found = pt.Experiment(
        runs, topics, qrels, [define(name) for name in names], baseline="bm25", test=randomization, correction="holm"
    )
    compared = rankgauge.compare(qrels, runs, names)
    for row, (run, means) in zip(found.to_dict("records"), compared.means().items(), strict=True):
        assert row["name"] == run
        assert {name: row[name] for name in names} == pytest.approx(means, abs=1e-12)
    best, other = compared.evaluations
    for column, name in enumerate(names):
        differences = other.per_query[:, column] - best.per_query[:, column]
        assert found[f"{name} +"][1] == (differences > 0).sum()
        assert found[f"{name} p-value"][1] == pytest.approx(randomization_test(differences).p.item(), abs=0.003)


def test_a_comparison_takes_frames_of_pyterrier_and_measures_of_ir_measures():
    runs = {"bm25": _results("bm25"), "keyword": _results("keyword")}
    compared = rankgauge.compare(sample_path("qrels.txt"), runs, [ir_measures.nDCG @ 10, ir_measures.P(rel=2) @ 5])
    assert list(compared.means()["bm25"]) == ["nDCG@10", "P(rel=2)@5"]
