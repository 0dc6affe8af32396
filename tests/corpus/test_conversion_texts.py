"""``convert`` for queries, documents, and collections, with no silent loss."""

from __future__ import annotations

import itertools
import json
import os
import zipfile
from pathlib import Path

import pytest
from converting import IDS, ODD, numbers
from hypothesis import given, strategies as st

from rankgauge import Collection, Document, InputError, Qrels, convert
from rankgauge.formats.texts import TextReader, TextSource
from rankgauge.sample import sample_path

TEXTS = ("jsonl", "csv", "tsv", "trec")


def texts(path: Path) -> list[tuple[str, str, str, dict[str, object]]]:
    rows = (placed.row for placed in TextReader(TextSource.of(path)).rows())
    return [(row.id, row.title, row.text, dict(row.fields)) for row in rows]


# ---------------------------------------------------------------- queries and documents

CORPUS = [
    {"_id": "d1", "title": "One", "text": "First text."},
    {"_id": "d2", "title": "", "text": 'Second & <b>last</b>, "quoted"'},
]


def corpus(tmp_path: Path, rows: list[dict[str, object]], name: str = "corpus.jsonl") -> Path:
    path = tmp_path / name
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.mark.parametrize(("one", "two"), list(itertools.product(TEXTS, TEXTS)))
def test_documents_come_back_from_any_format_through_any_other(one, two, tmp_path):
    source = corpus(tmp_path, CORPUS)
    ends = {"trec": "trec"}
    first = tmp_path / f"docs-1.{ends.get(one, one)}"
    second = tmp_path / f"docs-2.{ends.get(two, two)}"
    assert convert(source, first).losses == ()
    assert convert(first, second).losses == ()
    assert texts(second) == texts(source)


@pytest.mark.parametrize("form", TEXTS)
def test_the_bundled_corpus_comes_back(form, tmp_path):
    target = tmp_path / f"corpus.{form}"
    done = convert(sample_path("corpus.jsonl"), target)
    assert (done.rows, done.queries, done.losses) == (66, 0, ())
    assert texts(target) == texts(sample_path("corpus.jsonl"))


WORDS = st.text(st.characters(exclude_characters="\0"), max_size=12)
SOME = st.sampled_from(["", "a\tb", "a\nb", "a\r\nb", "</DOC>", "&amp;", " x ", "x  y", "<top>", "é"])
TEXTROWS = st.fixed_dictionaries(
    {"title": st.one_of(SOME, WORDS), "text": st.one_of(SOME, WORDS)},
    optional={
        "url": st.one_of(SOME, WORDS),
        "Year": st.just("1990"),
        "n": st.integers(),
        "heading": st.just("h"),
        "id": st.just("x"),
        "list": st.lists(st.integers(), max_size=2),
        "description": st.one_of(SOME, WORDS),
    },
)


@pytest.mark.parametrize("form", TEXTS)
@pytest.mark.parametrize("kind", ["documents", "queries"])
@given(rows=st.dictionaries(st.one_of(ODD, IDS), TEXTROWS, min_size=1, max_size=4))
def test_any_text_round_trips_or_losses_are_reported(form, kind, rows, tmp_path_factory):
    folder = tmp_path_factory.mktemp("texts")
    source = corpus(folder, [{"_id": key, **row} for key, row in rows.items()])
    target = folder / f"out.{form}"
    try:
        convert(source, target, kind=kind)
        strict = True
    except InputError as error:
        assert error.fix  # noqa: PT017 - either way is fine
        assert not target.exists()
        strict = False
    if strict:
        assert [without_empty(row) for row in texts(target)] == [without_empty(row) for row in texts(source)]
    elif form == "jsonl":
        raise AssertionError("JSON lines hold everything")
    else:
        try:
            done = convert(source, target, kind=kind, lossy=True)
        except InputError as error:
            assert "cannot be written" in error.what  # noqa: PT017 - either way is fine
        else:
            assert done.losses
            assert [row[0] for row in texts(target)] == [row[0] for row in texts(source)]


def without_empty(row):
    """Drop empty fields, which are equivalent to missing ones."""
    return (*row[:3], {k: v for k, v in row[3].items() if v not in ("", [], None)})


def test_blanks_lost_in_markup_are_reported(tmp_path):
    source = corpus(tmp_path, [{"_id": "d1", "title": "", "text": "two  blanks"}])
    with pytest.raises(InputError, match="blanks and line breaks"):
        convert(source, tmp_path / "out.trec", kind="documents")
    done = convert(source, tmp_path / "out.trec", kind="documents", lossy=True)
    assert "blanks and line breaks" in done.losses[0]


def test_the_first_text_that_does_not_fit_is_named(tmp_path):
    source = corpus(tmp_path, [*CORPUS, {"_id": "d3", "text": "a\tb"}, {"_id": "d4", "text": "c\n"}])
    with pytest.raises(InputError, match="tsv cannot store tabs and line breaks of 'd3'"):
        convert(source, tmp_path / "a.tsv")
    assert not (tmp_path / "a.tsv").exists()
    done = convert(source, tmp_path / "a.tsv", lossy=True)
    assert done.losses == ("tabs and line breaks of 2 texts, first 'd3': tsv cannot store it",)
    assert [row[2] for row in texts(tmp_path / "a.tsv")][2:] == ["a b", "c "]


def test_topics_of_trec_hold_descriptions_and_narratives(tmp_path):
    rows = [{"_id": "1", "text": "cats", "description": "About cats.", "narrative": "Any <b>"}]
    source = corpus(tmp_path, rows, "queries.jsonl")
    assert convert(source, tmp_path / "topics.txt").losses == ()
    assert texts(tmp_path / "topics.txt") == texts(source)
    source = corpus(tmp_path, [{"_id": "1", "text": "cats", "type": "a"}], "queries.jsonl")
    with pytest.raises(InputError, match="trec cannot store field 'type' of '1'"):
        convert(source, tmp_path / "topics.txt")


def test_two_columns_are_written_without_a_header(tmp_path):
    source = corpus(tmp_path, [{"_id": "1", "text": "x"}], "queries.jsonl")
    convert(source, tmp_path / "queries.tsv")
    assert (tmp_path / "queries.tsv").read_text() == "1\tx\n"


@pytest.mark.parametrize("target", ["a.parquet", "a.json", "a.bin", "-"])
def test_formats_of_pairs_hold_no_texts(target, tmp_path):
    with pytest.raises(InputError, match="choose one of: trec, csv, tsv, jsonl") as caught:
        convert(corpus(tmp_path, CORPUS), target if target == "-" else tmp_path / target)
    assert caught.value.what


def test_documents_larger_than_memory_are_read_twice_and_not_stored(tmp_path, monkeypatch):
    monkeypatch.setattr("rankgauge.formats.texts._SMALL", 0)
    rows = [{"_id": f"d{n}", "text": f"text {n}"} for n in range(500)]
    source = corpus(tmp_path, rows)
    done = convert(source, tmp_path / "docs.csv.gz")
    assert done.rows == 500
    assert texts(tmp_path / "docs.csv.gz") == texts(source)
    source.write_text(source.read_text() + json.dumps(rows[3]) + "\n")
    with pytest.raises(InputError, match="id 'd3' is also in line 4"):
        convert(source, tmp_path / "docs.csv")
    assert not (tmp_path / "docs.csv").exists()


# ---------------------------------------------------------------- collections


def laid_out(tmp_path: Path) -> Path:
    folder = tmp_path / "small"
    (folder / "qrels").mkdir(parents=True)
    corpus(folder, CORPUS)
    corpus(folder, [{"_id": "q1", "text": "what", "type": "a"}], "queries.jsonl")
    (folder / "qrels/test.tsv").write_text("query-id\tcorpus-id\tscore\nq1\td1\t2\nq1\td2\t0\n")
    return folder


@pytest.mark.parametrize("name", ["out", "out.zip"])
def test_a_collection_becomes_a_folder_or_an_archive_of_beir(name, tmp_path):
    source = Collection.load(laid_out(tmp_path))
    done = convert(tmp_path / "small", tmp_path / name)
    assert (done.kind, done.queries, done.rows, done.losses) == ("collection", 1, 2, ())
    back = Collection.load(tmp_path / name)
    assert dict(back.documents) == dict(source.documents)
    assert dict(back.queries) == dict(source.queries)
    assert numbers(back.qrels) == numbers(source.qrels)
    first = (tmp_path / name).read_bytes() if name.endswith("zip") else b""
    if first:
        convert(source, tmp_path / "again.zip")
        assert (tmp_path / "again.zip").read_bytes() == first
        with zipfile.ZipFile(tmp_path / name) as archive:
            assert archive.testzip() is None
            assert archive.namelist() == ["corpus.jsonl", "queries.jsonl", "qrels/test.tsv"]


def test_a_part_of_a_collection_is_written_alone(tmp_path):
    folder = laid_out(tmp_path)
    convert(folder, tmp_path / "qrels.txt", kind="qrels")
    assert (tmp_path / "qrels.txt").read_text() == "q1 0 d1 2\nq1 0 d2 0\n"
    convert(folder, tmp_path / "corpus.csv", kind="documents")
    assert texts(tmp_path / "corpus.csv") == texts(folder / "corpus.jsonl")
    convert(folder, tmp_path / "queries.tsv", kind="queries")
    assert (tmp_path / "queries.tsv").read_text() == "_id\ttext\ttype\nq1\twhat\ta\n"
    convert(folder, tmp_path / "all.zip")
    convert(tmp_path / "all.zip", tmp_path / "again.txt", kind="qrels")
    assert (tmp_path / "again.txt").read_text() == (tmp_path / "qrels.txt").read_text()
    with pytest.raises(InputError, match="the collection has no run"):
        convert(Collection.load(folder), tmp_path / "a.run", kind="run")
    with pytest.raises(InputError, match=r"a folder or a .zip of BEIR"):
        convert(folder, tmp_path / "a.csv", target_format="csv")


def test_a_folder_that_is_not_empty_is_not_changed(tmp_path):
    folder = laid_out(tmp_path)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine").write_text("x")
    with pytest.raises(InputError, match="the target already exists"):
        convert(folder, tmp_path / "full")
    assert [path.name for path in (tmp_path / "full").iterdir()] == ["mine"]


def test_a_collection_that_does_not_fit_leaves_nothing_behind(tmp_path):
    held = Collection({"d": Document("d")}, {}, qrels=Qrels.of({"q": {"d": 0.5}}))
    for name in ("out", "out.zip"):
        with pytest.raises(InputError, match="beir stores integer grades"):
            convert(held, tmp_path / name)
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def data() -> Path:
    folder = os.environ.get("RANKGAUGE_TEST_DATA")
    if folder is None:
        pytest.skip("RANKGAUGE_TEST_DATA is not set: no real file was converted")
    return Path(folder)


@pytest.mark.parametrize("form", TEXTS)
def test_real_texts_round_trip_or_losses_are_reported(form, data, tmp_path):
    for name in (
        "cranfield/corpus.jsonl",
        "cranfield/queries.jsonl",
        "formats/topics_trec_sgml.txt",
        "formats/topics_trec_xml.xml",
    ):
        target = tmp_path / f"out.{form}"
        done = convert(data / name, target, lossy=True)
        if not done.losses:
            assert [without_empty(row) for row in texts(target)] == [without_empty(row) for row in texts(data / name)]
        assert [row[0] for row in texts(target)] == [row[0] for row in texts(data / name)]
        assert done.rows == len(texts(target))
