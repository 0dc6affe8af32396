"""Documents and queries from common files, and errors for unreadable ones."""

import copy
import gzip
import hashlib
import json
import pickle

import pytest

from rankgauge import Collection, Document, FormatError, InputError, Query
from rankgauge.corpus import read_documents, read_queries
from rankgauge.corpus.collection import fingerprint_documents


def _wrote(folder, name, text):
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.jsonl", '{"_id": "d1", "title": "T", "text": "one"}\n\n{"_id": 2, "text": "two"}\n'),
        ("b.jsonl", '{"docno": "d1", "title": "T", "contents": "one"}\n{"docno":"2","body":"two"}'),
        ("c.tsv", "d1\tT\tone\n2\t\ttwo\n"),
        ("d.tsv", "doc_id\ttitle\ttext\nd1\tT\tone\n2\t\ttwo\n"),
        ("e.csv", 'id,text,title\nd1,one,T\n2,"two",\n'),
    ],
)
def test_documents_are_read_from_lines_of_json_and_from_tables(tmp_path, name, text):
    found = read_documents(_wrote(tmp_path, name, text))
    assert [(doc.id, doc.title, doc.text) for doc in found.values()] == [("d1", "T", "one"), ("2", "", "two")]
    packed = tmp_path / (name + ".gz")
    packed.write_bytes(gzip.compress(text.encode()))
    assert read_documents(packed) == found


def test_a_text_of_tabs_may_hold_quotation_marks_and_be_long(tmp_path):
    long = "x" * 300_000
    found = read_documents(_wrote(tmp_path, "a.tsv", f'd1\tso "he said\nd2\t{long}\n'))
    assert found["d1"].text == 'so "he said'
    assert len(found["d2"].text) == 300_000


def test_queries_keep_what_else_is_known_of_them(tmp_path):
    path = _wrote(tmp_path, "q.jsonl", '{"_id": "q1", "text": "why", "type": "how-to", "n": 3}')
    assert read_queries(path)["q1"] == Query("q1", "why", {"type": "how-to", "n": 3})


def test_queries_have_their_titles_in_front_of_their_texts(tmp_path):
    rows = "_id,title,text\nq1,Late fees,How much?\nq2,T,\n"
    found = read_queries(_wrote(tmp_path, "q.csv", rows))
    assert [query.text for query in found.values()] == ["Late fees. How much?", "T"]
    given = Collection.of({"d": "x"}, {"q1": {"title": "Late fees", "text": "How much?"}})
    assert given.queries["q1"] == found["q1"]


@pytest.mark.parametrize(
    ("name", "text", "line", "said"),
    [
        ("a.jsonl", '{"_id": "d1", "text": "x"}\n{"_id": "d1", "text": "y"}', 2, "also in line 1"),
        ("b.jsonl", '{"name": "d1", "text": "x"}', 1, "there is no id"),
        ("c.jsonl", '{"_id": "d1", "words": "x"}', 1, "there is no text"),
        ("d.jsonl", '{"_id": ["d1"], "text": "x"}', 1, "expected an id"),
        ("e.jsonl", '{"_id": "d1", "text": 5}', 1, "expected text"),
        ("f.tsv", "d1\tx\nd2\n", 2, "1 field"),
        ("g.tsv", "a\tb\tc\td\n", 1, "4 fields"),
        ("h.jsonl", '{"_id": "d1", "text": "x"}\nno', 2, "not valid JSON"),
        ("i.csv", 'd1,"' + "x" * 200_000 + '"\n', 1, "more than 131072 characters"),
    ],
)
def test_a_malformed_text_is_refused_with_its_line(tmp_path, name, text, line, said):
    with pytest.raises(FormatError, match=said) as caught:
        read_documents(_wrote(tmp_path, name, text))
    assert caught.value.line == line
    assert caught.value.fix


def test_bytes_that_are_no_utf8_are_refused_with_their_line(tmp_path):
    path = tmp_path / "a.tsv"
    path.write_bytes(b"d1\tx\nd2\t\xff\n")
    with pytest.raises(FormatError, match="not UTF-8") as caught:
        read_documents(path)
    assert caught.value.line == 2


def test_an_empty_file_holds_no_text(tmp_path):
    with pytest.raises(FormatError, match="there are no texts"):
        read_documents(_wrote(tmp_path, "a.jsonl", "\n"))


def test_a_folder_is_read_as_beir_lays_it_out(tmp_path):
    _wrote(tmp_path, "queries.tsv", "q1\twhy\n")
    (tmp_path / "corpus.jsonl.gz").write_bytes(gzip.compress(b'{"_id": "d", "text": "x"}'))
    found = Collection.read(tmp_path)
    assert found.name == tmp_path.name
    assert found.documents["d"].text == "x"
    assert found.queries["q1"].text == "why"
    with pytest.raises(InputError, match="neither documents nor queries"):
        Collection.read(_made(tmp_path / "empty"))
    with pytest.raises(InputError, match="no such file or folder"):
        Collection.read(tmp_path / "gone")


def _made(folder):
    folder.mkdir()
    return folder


def test_a_collection_is_made_of_mappings_and_does_not_change():
    given = {"d1": "one", 2: {"title": "T", "text": "two", "lang": "en"}, "d3": Document("d3")}
    made = Collection.of(given, {"q1": {"text": "why", "type": "how"}, "q2": "what"})
    given["d4"] = "later"
    assert list(made.documents) == ["d1", "2", "d3"]
    assert made.documents["2"] == Document("2", "T", "two", {"lang": "en"})
    assert made.queries["q1"].fields == {"type": "how"}
    with pytest.raises(TypeError):
        made.documents["d1"] = Document("d1")
    assert pickle.loads(pickle.dumps(made)) == made


@pytest.mark.parametrize("given", [["d1"], {"d1": 3}, {"d1": {"title": "T"}}])
def test_a_source_without_texts_is_refused(given):
    with pytest.raises(InputError) as caught:
        Collection.of(given)
    assert caught.value.fix
    with pytest.raises(InputError):
        Collection.of(None, given)


def test_a_title_precedes_the_text_once():
    assert Document("d", "Hours", "Nine to five").full_text == "Hours. Nine to five"
    assert Document("d", "Hours", "Hours: nine to five").full_text == "Hours: nine to five"
    assert Document("d", "When?", "Nine").full_text == "When? Nine"
    assert Document("d", "Hours").full_text == "Hours"
    assert Document("d", text="a\nb " * 100).snippet(9) == "a b a b…"


def test_the_large_collections_are_read(data_folder):
    for name, documents in (("cranfield", 1400), ("cisi", 1460)):
        found = Collection.read(data_folder / name)
        assert len(found.documents) == documents
        first = json.loads((data_folder / name / "queries.jsonl").read_text().splitlines()[0])
        assert found.queries[first["_id"]].text == first["text"]


def test_the_fingerprint_of_documents_is_what_its_definition_says():
    def one(*parts):
        raw = [part.encode() for part in parts]
        return hashlib.sha256(b"".join(len(r).to_bytes(8, "little") + r for r in raw)).digest()

    first = one("d1", "T", "ä", '{"a": 2, "n": [1]}')
    second = one("d2", "", "two", "")
    added = sum(int.from_bytes(digest, "little") for digest in (first, second)) % 2**256
    wanted = hashlib.sha256(b"rankgauge documents 1\n" + (2).to_bytes(8, "little") + added.to_bytes(32, "little"))
    made = [
        Document("d2", text="two", fields={"metadata": {}, "url": ""}),
        Document("d1", "T", "ä", {"n": [1], "a": 2}),
    ]
    assert fingerprint_documents(made) == wanted.hexdigest()


@pytest.mark.parametrize(
    "other",
    [
        Document("d", "a", "bc"),
        Document("e", "ab", "c"),
        Document("d", "ab", "c", {"x": 0}),
        Document("d", "", "abc"),
        Document("d", "ab", "c "),
    ],
)
def test_documents_that_differ_have_another_fingerprint(other):
    one = fingerprint_documents([Document("d", "ab", "c")])
    assert fingerprint_documents([other]) != one
    assert fingerprint_documents([Document("d", "ab", "c")] * 2) != one
    assert fingerprint_documents([]) != one


def test_fields_that_are_no_json_are_refused_by_the_fingerprint():
    with pytest.raises(InputError, match="cannot be written as JSON") as caught:
        fingerprint_documents([Document("d", fields={"x": {(1, 2): 3}})])
    assert caught.value.fix
    assert fingerprint_documents([Document("\ud800", text="\udfff")])


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.jsonl", '{"_id": "d\\u00001", "text": "x"}\n'),
        ("a.csv", "id,text\nd\x001,x\n"),
        ("a.tsv", "d\x001\tx\n"),
        ("a.sgml", "<DOC><DOCNO>d\x001</DOCNO>x</DOC>"),
    ],
)
def test_an_id_with_a_nul_is_refused_with_its_line(tmp_path, name, text):
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(FormatError, match=r"id 'd\\x001' contains a NUL byte") as caught:
        Collection.load(documents=path)
    assert caught.value.line == 1 + (name == "a.csv")
    for given in ({"documents": {"d\0001": "x"}}, {"documents": {}, "queries": {"d\0001": "x"}}):
        with pytest.raises(InputError, match=r"id 'd\\x001' contains a NUL byte"):
            Collection.of(**given)


FIELDS = {"lang": "de", "tags": ["a", {"b": [1]}], "set": {1}, "pair": ([1], 2)}


@pytest.mark.parametrize("kind", [Document, Query])
@pytest.mark.parametrize(
    "change",
    [
        lambda fields: fields.pop("lang"),
        lambda fields: fields.update(lang="en"),
        lambda fields: fields.__setitem__("lang", "en"),
        lambda fields: fields.clear(),
        lambda fields: fields.__ior__({"lang": "en"}),
        lambda fields: fields["tags"].append("c"),
        lambda fields: fields["tags"].reverse(),
        lambda fields: fields["tags"][1].popitem(),
        lambda fields: fields["tags"][1]["b"].clear(),
        lambda fields: fields["pair"][0].pop(),
    ],
    ids=["pop", "update", "set", "clear", "or", "append", "reverse", "inner dict", "inner list", "list in a tuple"],
)
def test_fields_are_read_only_down_to_the_last(kind, change):
    row = kind("d1", fields=copy.deepcopy(FIELDS))
    with pytest.raises(TypeError, match="read-only"):
        change(row.fields)
    assert row.fields == FIELDS


def test_fields_without_any_are_read_only_too():
    for row in (Document("d1"), Query("q1"), Query("q1", fields={})):
        with pytest.raises(TypeError):
            row.fields["lang"] = "en"


def test_fields_are_a_copy_that_travels_and_that_can_be_copied_and_changed():
    given = copy.deepcopy(FIELDS)
    row = Query("q1", fields=given)
    given["tags"].clear()
    assert row.fields == FIELDS
    assert pickle.loads(pickle.dumps(row)) == row
    assert json.loads(json.dumps({**row.fields, "set": 0}))["tags"] == FIELDS["tags"]
    for copied in (copy.deepcopy(row.fields), dict(row.fields), copy.copy(row.fields)):
        copied["lang"] = "en"
    copy.deepcopy(row.fields)["tags"][1]["b"].append(2)
    assert row.fields == FIELDS


def test_recursive_fields_are_unchanged():
    given = {}
    given["self"] = given
    assert Query("q1", fields=given).fields is given
