"""Texts that stay in their file: random access, iteration in bounded memory, and no mix-ups."""

import gzip
import json
import pickle
import random
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from rankgauge import FormatError, InputError
from rankgauge.formats.lines import opened
from rankgauge.formats.texts import Faults, HashIndex, StoredTexts, TextReader, TextSource, kept, read_texts


def stored(path, faults=None):
    return StoredTexts(TextReader(TextSource.of(path)), faults)


ROWS = [{"_id": f"d{n}", "title": "T" * (n % 3), "text": f"text {n} ä\u2028\r" * n} for n in range(50)]
JSONL = "\n".join(json.dumps(row, ensure_ascii=n % 2 == 0) for n, row in enumerate(ROWS))
SGML = "".join(f"<DOC>\n<DOCNO>d{n}</DOCNO>\n<TEXT>\nä {n}\n</TEXT>\n</DOC>\n" for n in range(50))


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.jsonl", JSONL.encode()),
        ("bom.jsonl", b"\xef\xbb\xbf" + JSONL.encode()),
        ("crlf.jsonl", b"\r\n\r\n" + JSONL.encode().replace(b"\n", b"\r\n")),
        ("cr.jsonl", JSONL.encode().replace(b"\n", b"\r")),
        ("a.jsonl.gz", gzip.compress(JSONL.encode())),
        ("a.tsv", "\n".join(f"d{n}\tä {n}" for n in range(50)).encode()),
        ("head.tsv", ("text\tid\n" + "\n".join(f"ä {n}\td{n}" for n in range(50))).encode()),
        ("a.csv", "\n".join(f'd{n},"ä ""{n}\n\n, x"' for n in range(50)).encode()),
        ("head.csv", ("id,text\n\n" + "\n".join(f'd{n},"ä\n{n}"' for n in range(50))).encode()),
        ("a.sgml", SGML.encode()),
    ],
)
def test_texts_in_a_file_equal_texts_in_memory(tmp_path, name, data):
    path = tmp_path / name
    path.write_bytes(data)
    wanted = {row.id: row for row in read_texts(path)}
    assert len(wanted) == 50
    found = stored(path)
    assert (len(found), list(found), dict(found.items())) == (50, list(wanted), wanted)
    assert list(found.values()) == list(wanted.values())
    keys = list(wanted) * 2
    random.Random(1).shuffle(keys)
    for texts in (found, pickle.loads(pickle.dumps(found))):
        assert [texts[key] for key in keys] == [wanted[key] for key in keys]
        assert "d50" not in texts
        assert 3 not in texts
        with pytest.raises(KeyError):
            texts["D1"]


def test_a_duplicate_id_is_refused_with_both_lines(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text(JSONL + '\n\n{"_id": "d7", "text": "again"}')
    with pytest.raises(FormatError, match="'d7' is also in line 8") as caught:
        stored(path)
    assert caught.value.line == 52


@pytest.mark.parametrize("ending", ["", ".gz"])
def test_invalid_texts_are_skipped_each_time(tmp_path, ending):
    path = tmp_path / f"a.jsonl{ending}"
    lines = ["no", *JSONL.split("\n"), '{"_id": "d7", "text": "again"}', "{}", '{"_id": "z", "text": ""}']
    data = "\n".join(lines).encode()
    path.write_bytes(gzip.compress(data) if ending else data)
    faults = Faults()
    found = stored(path, faults)
    assert faults.count == 3
    assert (len(found), len(list(found.values()))) == (51, 51)
    assert found["d7"].text == ROWS[7]["text"]
    assert (found["z"].text, found["d49"].text) == ("", ROWS[49]["text"])


def test_a_file_that_has_changed_is_not_read_on(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text(JSONL)
    found = stored(path)
    path.write_text(JSONL + "\n")
    with pytest.raises(InputError, match="has changed since it was first read"):
        list(found)


def test_an_empty_file_is_refused(tmp_path):
    (tmp_path / "a.jsonl").write_text("\n")
    with pytest.raises(FormatError, match="there are no texts"):
        stored(tmp_path / "a.jsonl")


def test_an_index_gives_the_candidate_positions_of_an_id():
    index = HashIndex(["b", "a", "c", "a"])
    assert [index.places(key) for key in ("a", "b", "c", "d")] == [[1, 3], [0], [2], []]
    assert index.suspects() == {1, 3}
    assert (len(index), HashIndex([]).places("a"), HashIndex([]).suspects()) == (4, [], frozenset())


def test_short_texts_are_kept_in_memory_and_long_ones_on_disk(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text(JSONL)
    assert isinstance(kept(TextReader(TextSource.of(path))), dict)
    with path.open("a") as file:
        file.write("\n" + json.dumps({"_id": "long", "text": "x" * (33 << 20)}))
    found = kept(TextReader(TextSource.of(path)))
    assert isinstance(found, StoredTexts)
    assert len(found["long"].text) == 33 << 20


_MEASURED = """
    import resource, sys
    from rankgauge import Collection, describe_collection
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    found = Collection.load(sys.argv[1])
    found.documents_fingerprint
    info = describe_collection(found)
    assert found.documents["d500"].text.startswith("500 ")
    print(info.documents, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) >> 10)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="memory is counted in other units elsewhere")
def test_a_large_corpus_does_not_fill_the_memory(tmp_path):
    path: Path = tmp_path / "corpus.jsonl"
    with path.open("w") as file:
        for n in range(6000):
            file.write(json.dumps({"_id": f"d{n}", "text": f"{n} " + "word other " * 2000}) + "\n")
    assert path.stat().st_size > 120 << 20
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(_MEASURED), str(path)],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    documents, grown = map(int, done.stdout.split())
    assert documents == 6000
    assert grown < 60


def test_texts_of_a_packed_file_are_found_in_order_by_one_more_pass(tmp_path):
    path = tmp_path / "a.jsonl.gz"
    path.write_bytes(gzip.compress(JSONL.encode()))
    passes = []

    def opening():
        passes.append(path)
        return opened(path)

    found = StoredTexts(TextReader(TextSource(str(path), opening, 0, str(path))))
    assert [found[row["_id"]].text for row in ROWS] == [row["text"] for row in ROWS]
    assert len(passes) == 2
    assert found["d3"].text == ROWS[3]["text"]
    assert len(passes) == 3


def test_a_text_is_found_while_others_are_gone_through(tmp_path):
    path = tmp_path / "a.tsv"
    path.write_text("text\tid\n" + "\n".join(f"{n}\td{n}" for n in range(50)))
    found = stored(path)
    one, other = iter(found.values()), iter(found.values())
    for n in range(50):
        assert next(one).text == found[f"d{n}"].text == next(other).text == str(n)


def test_an_unclosed_document_ends_where_the_next_one_begins(tmp_path):
    path = tmp_path / "a.sgml"
    path.write_text("<DOC>\n<DOCNO>x</DOCNO>\n" + SGML + "<DOC>\n<DOCNO>d0</DOCNO></DOC>\n")
    faults = Faults()
    found = stored(path, faults)
    assert (list(found), found["d0"].text) == ([f"d{n}" for n in range(50)], "ä 0")
    assert "line 1: <DOC> is not closed" in faults.first[0]
    assert "line 303: id 'd0' is also in line 3" in faults.first[1]
