"""Collections from folders and archives, and errors for unreadable ones."""

from __future__ import annotations

import gzip
import json
import pickle
import random
import zipfile

import pytest

from rankgauge import Collection, Document, FormatError, InputError, Query, UnknownName
from rankgauge.corpus.loading import other_splits

CORPUS = '{"_id": "d1", "title": "T", "text": "one"}\n{"_id": "d2", "text": "two"}\n'
QUERIES = '{"_id": "q1", "text": "why"}\n{"_id": "q2", "text": "how"}\n{"_id": "q3", "text": "x"}\n'
HEAD = "query-id\tcorpus-id\tscore\n"


def wrote(folder, **files):
    for name, text in files.items():
        path = folder / name.replace("__", "/").replace("_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder


@pytest.fixture
def beir(tmp_path):
    return wrote(
        tmp_path / "mini",
        corpus_jsonl=CORPUS,
        queries_jsonl=QUERIES,
        qrels__test_tsv=HEAD + "q1\td1\t2\n",
        qrels__dev_tsv=HEAD + "q2\td2\t1\n",
    )


def packed(folder, target, inside="mini/"):
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                archive.write(path, inside + path.relative_to(folder).as_posix())
    return target


def test_a_folder_of_beir_gives_texts_and_the_judgments_of_a_split(beir):
    found = Collection.load(beir)
    assert repr(found) == "<Collection 'mini': 2 documents, 1 query, 1 judged>"
    assert found.documents["d1"] == Document("d1", "T", "one")
    assert found.qrels == {"q1": {"d1": 2}} or found.qrels["q1"] == {"d1": 2.0}
    assert found.queries == {"q1": Query("q1", "why")}
    assert found.notes == ("1 of 3 queries: those judged in qrels/test.tsv",)
    dev = Collection.load(beir, split="dev")
    assert (list(dev.queries), dev.qrels["q2"]) == (["q2"], {"d2": 1.0})


def test_with_one_split_all_queries_stay(beir):
    (beir / "qrels" / "test.tsv").unlink()
    found = Collection.load(beir)
    assert (list(found.queries), list(found.qrels)) == (["q1", "q2", "q3"], ["q2"])
    assert found.notes == ()


def test_a_split_that_is_not_there_or_not_chosen_is_named(beir):
    with pytest.raises(InputError, match="no judgments of a split 'train'") as caught:
        Collection.load(beir, split="train")
    assert "dev, test" in caught.value.fix
    (beir / "qrels" / "test.tsv").rename(beir / "qrels" / "train.tsv")
    with pytest.raises(InputError, match="2 splits, and none is called test") as caught:
        Collection.load(beir)
    assert "dev, train" in caught.value.fix


@pytest.mark.parametrize("inside", ["mini/", "", "a/b/"])
def test_an_archive_is_read_as_the_folder_in_it(beir, tmp_path, inside):
    found = Collection.load(packed(beir, tmp_path / "mini.zip", inside))
    assert found == Collection.load(beir)
    assert pickle.loads(pickle.dumps(found)) == found
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mini", "mini.zip"]


def test_the_highest_folder_of_an_archive_counts_and_none_that_a_mac_adds(beir, tmp_path):
    path = packed(beir, tmp_path / "mini.zip")
    with zipfile.ZipFile(path, "a") as archive:
        for folder in ("a/deeper/", "__MACOSX/"):
            archive.writestr(f"{folder}corpus.jsonl", '{"_id": "other", "text": "x"}')
            archive.writestr(f"{folder}queries.jsonl", '{"_id": "q1", "text": "x"}')
    assert Collection.load(path) == Collection.load(beir)


def test_the_chosen_split_is_none_of_the_others(beir):
    assert list(other_splits(beir, None)) == ["dev"]
    assert list(other_splits(beir, "dev")) == ["test"]


def test_an_archive_that_would_explode_is_refused(beir, tmp_path):
    (beir / "corpus.jsonl").write_bytes(b"0" * (80 << 20))
    with pytest.raises(InputError, match="text does not compress that much") as caught:
        Collection.load(packed(beir, tmp_path / "mini.zip"))
    assert "unpack" in caught.value.fix


def test_an_archive_that_is_broken_is_named(beir, tmp_path):
    path = tmp_path / "a.zip"
    path.write_bytes(b"PK\x03\x04 and no more")
    with pytest.raises(InputError, match="the archive cannot be read"):
        Collection.load(path)
    lines = [json.dumps({"_id": str(n), "text": random.Random(n).randbytes(40).hex()}) for n in range(999)]
    (beir / "corpus.jsonl").write_text("\n".join(lines))
    data = bytearray(packed(beir, path).read_bytes())
    data[300:340] = b"\0" * 40
    path.write_bytes(data)
    with pytest.raises(FormatError):
        Collection.load(path)


def test_the_same_content_has_one_fingerprint_in_every_format(beir, tmp_path):
    one = Collection.load(beir)
    other = wrote(
        tmp_path / "other",
        documents_csv="text,id,title\ntwo,d2,\none,d1,T\n",
        queries_tsv="q1\twhy\n",
        qrels_txt="q1 0 d1 2\n",
    )
    (other / "queries.tsv").rename(other / "topics.tsv")
    found = Collection.load(other)
    assert found.fingerprint == one.fingerprint
    assert found.documents_fingerprint == one.documents_fingerprint
    assert found.qrels == one.qrels
    assert Collection.load(beir, split="dev").fingerprint != one.fingerprint
    assert Collection.of({"d2": "two", "d1": {"title": "T", "text": "one"}}).documents_fingerprint == (
        one.documents_fingerprint
    )


TREC = """<DOC>
<DOCNO> FT-1 </DOCNO>
<HEADLINE>Fees &amp; fines</HEADLINE>
<TEXT>
Late <i>books</i> cost.
</TEXT>
<TEXT>More.</TEXT>
</DOC>
<DOC><DOCNO>FT-2</DOCNO>
Plain words.
</DOC>
"""
TOPICS = """<top>
<num> Number: 751
<title> Scrabble Players

<desc> Description:
Who
plays?
</top>
"""


def test_documents_and_topics_of_trec_are_read(tmp_path):
    folder = wrote(tmp_path / "t", docs_sgml=TREC, topics_txt=TOPICS, qrels_txt="751 0 FT-1 1\n")
    found = Collection.load(folder)
    assert list(found.documents.values()) == [
        Document("FT-1", "Fees & fines", "Late books cost.\nMore."),
        Document("FT-2", "", "Plain words."),
    ]
    assert found.queries["751"] == Query("751", "Scrabble Players", {"description": "Who plays?"})
    assert found.qrels["751"] == {"FT-1": 1.0}


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("<DOC>\n<TEXT>a</TEXT>\n</DOC>\n", 1, "no <DOCNO>"),
        (TREC + "<DOC>\n<DOCNO>x</DOCNO>\n", 12, "not closed"),
        ("<DOC>\n<DOCNO>x</DOCNO>\n" + TREC, 1, "not closed"),
        (TREC + TREC, 12, "also in line 1"),
        ("<top>\n<num>1\n</top>\n", 1, "no title"),
        ("<top>\n<title>x\n</top>\n", 1, "no number"),
        ("<top>\n</top>\n", 1, "no number"),
    ],
)
def test_markup_that_does_not_fit_is_refused_with_its_line(tmp_path, text, line, said):
    folder = wrote(tmp_path / "t", docs_sgml=text)
    with pytest.raises(FormatError, match=said) as caught:
        Collection.load(folder)
    assert caught.value.line == line
    assert caught.value.fix


def test_topics_of_every_kind_are_read(data_folder):
    formats = data_folder / "formats"
    for name, count, first in (
        ("topics_trec_sgml.txt", 50, ("751", "Scrabble Players")),
        ("topics_trec_xml.xml", 35, ("1", "coronavirus origin")),
        ("topics_web_xml.txt", 50, ("1", "obama family tree")),
        ("topics_beir_touche.tsv.gz", 49, ("1", "Should teachers get tenure?")),
    ):
        queries = list(Collection.load(queries=formats / name).queries.values())
        assert len(queries) == count
        assert (queries[0].id, queries[0].text) == first
        assert all(query.text for query in queries)


def test_real_collections_come_with_their_judgments(data_folder):
    for name, counts in (("cranfield", (1400, 225, 1837)), ("cisi", (1460, 112, 3114)), ("npl", (11429, 93, 2083))):
        found = Collection.load(data_folder / name)
        assert (len(found.documents), len(found.queries), len(found.qrels.table)) == counts
    mini = data_folder / "formats" / "beir-mini"
    assert Collection.load(mini) == Collection.load(mini.with_suffix(".zip"))


def test_malformed_rows_are_skipped_and_counted_on_request(tmp_path):
    text = '{"_id": "d1", "text": "x"}\nno\n{"_id": "d1", "text": "y"}\n{"_id": 2, "text": ""}\n[]'
    path = wrote(tmp_path, corpus_jsonl=text) / "corpus.jsonl"
    found = Collection.load(path, invalid="skip")
    assert [(doc.id, doc.text) for doc in found.documents.values()] == [("d1", "x"), ("2", "")]
    assert found.faults.count == 3
    assert [fault.split(", ")[1][:6] for fault in found.faults.first] == ["line 2", "line 3", "line 5"]
    with pytest.raises(FormatError):
        Collection.load(path)
    with pytest.raises(UnknownName, match="invalid='all'"):
        Collection.load(path, invalid="all")


@pytest.mark.parametrize(
    ("source", "said"),
    [("gone", "no such file or folder"), (3, "int, which is not a collection"), ("empty", "neither")],
)
def test_a_path_without_a_collection_is_refused(tmp_path, monkeypatch, source, said):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match=said) as caught:
        Collection.load(source)
    assert caught.value.fix


def test_parts_that_are_given_take_the_place_of_those_there(beir, tmp_path):
    path = tmp_path / "more.jsonl.gz"
    path.write_bytes(gzip.compress(b'{"_id": "e1", "text": "three"}'))
    found = Collection.load(beir, documents=path, queries={"q9": "when"}, qrels={"q9": {"e1"}})
    assert list(found.documents) == ["e1"]
    assert found.queries == {"q9": Query("q9", "when")}
    assert found.qrels["q9"] == {"e1": 1.0}
    alone = Collection.load(documents={"a": "b"}, queries=beir / "queries.jsonl")
    assert (list(alone.documents), len(alone.queries), alone.qrels) == (["a"], 3, None)


def zipped(path, texts):
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in texts.items():
            archive.writestr(name, text)
    return path


TEXT = '{"_id": "d1", "text": "x"}\n'


def test_an_archive_of_several_collections_is_not_guessed_at(tmp_path):
    texts = {f"{folder}/{part}.jsonl": TEXT for folder in "ab" for part in ("corpus", "queries")}
    with pytest.raises(InputError, match="in 2 folders of the archive: 'a', 'b'"):
        Collection.load(zipped(tmp_path / "two.zip", texts))
    # Deeper files belong to something else.
    one = zipped(tmp_path / "one.zip", {"a/corpus.jsonl": TEXT, "a/old/corpus.jsonl": TEXT * 2})
    assert list(Collection.load(one).documents) == ["d1"]


def test_an_archive_of_texts_says_to_unpack_it(tmp_path):
    path = zipped(tmp_path / "a.zip", {"a/b.MD": "x", "a/questions.txt": "y"})
    with pytest.raises(InputError, match=r"not read from archives\nfix: unpack the archive"):
        Collection.load(path)


def test_an_archive_of_trec_may_have_a_folder_around_it(tmp_path):
    texts = {"a/docs.tsv": "d1\tx\n", "a/topics.tsv": "1\ty\n", "a/qrels.txt": "1 0 d1 1\n"}
    found = Collection.load(zipped(tmp_path / "a.zip", texts))
    assert (len(found.documents), len(found.queries), len(found.qrels)) == (1, 1, 1)
    del texts["a/docs.tsv"]
    found = Collection.load(zipped(tmp_path / "b.zip", texts))
    assert (len(found.documents), len(found.queries), len(found.qrels)) == (0, 1, 1)


def test_judgments_beside_questions_are_not_kept_for_other_questions(tmp_path):
    (tmp_path / "a.md").write_text("x")
    (tmp_path / "questions.csv").write_text("question,relevant\nwhat,a.md\nwhen,a.md\n")
    (tmp_path / "other.csv").write_text("question,relevant\nwhere,\n")
    assert len(Collection.load(tmp_path).qrels) == 2
    assert not Collection.load(tmp_path, queries=tmp_path / "other.csv").qrels
    (tmp_path / "bare.csv").write_text("question\nwhere\n")
    assert Collection.load(tmp_path, queries=tmp_path / "bare.csv").qrels is None
    # Judgments in another file name queries by id, and these queries may have other texts.
    (tmp_path / "qrels.txt").write_text("q1 0 a.md 1\n")
    (tmp_path / "plain.jsonl").write_text('{"_id": "q1", "text": "where"}')
    assert len(Collection.load(tmp_path, queries=tmp_path / "plain.jsonl").qrels) == 1
    assert not Collection.load(tmp_path, queries=tmp_path / "other.csv").qrels


@pytest.mark.parametrize("name", ["questions.csv", "other.csv"])
def test_columns_with_other_separators_are_read(tmp_path, name):
    (tmp_path / "a.md").write_text("x")
    path = tmp_path / name
    path.write_text("question;relevant\nwhat;a.md\n")
    collection = Collection.load(tmp_path, queries=path)
    assert collection.queries["q1"].text == "what"
    assert dict(collection.qrels["q1"]) == {"a.md": 1}


class _Unreachable:
    """A dataset of ir_datasets that was never downloaded."""

    def docs_count(self):
        raise RuntimeError("All download sources failed", ["a long story"])

    def docs_iter(self):
        return iter(())


def test_a_collection_that_cannot_be_fetched_is_named():
    with pytest.raises(InputError, match=r"ir_datasets:.*All download sources failed") as caught:
        Collection.load(_Unreachable())
    assert "check the network" in caught.value.fix
