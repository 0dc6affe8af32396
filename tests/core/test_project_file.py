"""Project files: lines of keys, invalid files, search, secrets, and owners."""

import os
import textwrap

import pytest

from rankgauge import FormatError, InputError, RankgaugeError, UnknownName
from rankgauge.core.project_file import ProjectFile, data_folder
from rankgauge.core.project_names import find_project_file

TEXT = '''\
# [gate] in a comment
measures = [
    "nDCG@10", # k = 3
    "RR",
]
k = 5
[retrievers.dense]
type = "dense"
encoder = { type = "hashing",  dimensions = 64 }
[retrievers."a.b"]
type = """
[gate]
depth = 3
"""
[[gate.contracts]]
query = "q1"
[[gate.contracts]]
query = "q2"
"must_rank_at_most" = { "d.1" = 3 }
[gate]
depth = "same"
[bands]
"P@5" = [0.1, 0.2, 0.3]
'''


@pytest.fixture
def read(tmp_path):
    def written(text):
        path = tmp_path / "rankgauge.toml"
        path.write_bytes(text if isinstance(text, bytes) else textwrap.dedent(text).encode())
        return ProjectFile.read(path)

    return written


@pytest.mark.parametrize(
    ("keys", "line"),
    [
        ("measures", 2),
        ("k", 6),
        ("retrievers", 7),
        ("retrievers dense type", 8),
        ("retrievers dense encoder dimensions", 9),
        ("retrievers a.b", 10),
        ("retrievers a.b type", 11),
        ("gate contracts 1 query", 16),
        ("gate contracts 2", 17),
        ("gate contracts 2 must_rank_at_most d.1", 19),
        ("gate depth", 21),
        ("bands P@5", 23),
        # Keys that the file does not have: the table that lacks them.
        ("gate contracts 2 k", 17),
        ("retrievers dense part", 7),
        ("log", 0),
    ],
)
def test_the_line_of_a_key_is_found(read, keys, line):
    file = read(TEXT)
    assert file.line(*keys.split()) == line
    crlf = ProjectFile(file.path, file.data, TEXT.replace("\n", "\r\n"))
    assert crlf.line(*keys.split()) == line


def test_every_key_of_a_long_file_has_its_line(read):
    names = [f"retriever{number}" for number in range(300)]
    file = read("".join(f"[retrievers.{name}]\ntype = 'random'\n" for name in names))
    assert [file.line("retrievers", name, "type") for name in names[::30]] == list(range(2, 602, 60))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("version = 2\nnew_key = 1", "line 1, version: got 2, but this rankgauge reads version 1\nfix: pip install"),
        ("version = '1'", "line 1, version: got '1'"),
        ("version = true", "line 1, version: got True\nfix: use a whole number"),
        (
            "k = 5\nmeasure = ['RR']",
            "line 2, measure: unknown key of the project 'measure'\nfix: did you mean measures",
        ),
        ("k = '5'", "line 1, k: got '5'\nfix: use a whole number"),
        ("k = true", "line 1, k: got True"),
        ("texts = 1", "line 1, texts: got 1\nfix: use true or false"),
        ("collection = 3", "line 1, collection: got 3\nfix: use text in quotes or a table"),
        ("[[retrievers]]\ntype = 'bm25'", "line 1, retrievers: got [{'type': 'bm25'}]\nfix: use a table"),
        ("k = 5\n\nk = 6\n", "line 3, column 6: duplicate key or table"),
        ("[gate]\n[gate]", "line 2, column 6: duplicate key or table"),
        ("nDCG@10 = 1", "line 1, column 5: not valid TOML"),
        ("k = " + "9" * 5000, "not valid TOML"),
        ("[bands]\nx = " + "[" * 3000, "not valid TOML"),
        ("explore." + ".".join("a" * 5000) + " = 1", "nested too deeply"),
        (b"k = \xff", "not UTF-8"),
        ("store = 'postgresql://me:swordfish@host/db'", "line 1, store: this looks like a password or a key"),
        ("[models.judge]\nheaders = { Authorization = 'Bearer abcdefgh1' }", "line 2, models.judge.headers"),
        ("[retrievers.a]\nurl = 'https://host/find?token=swordfish'", "line 2, retrievers.a.url: this looks like"),
        ("[retrievers.a]\nbody = [{ api_key = 'swordfish' }]", "line 2, retrievers.a.body.1.api_key: this looks"),
    ],
)
def test_an_invalid_file_is_reported_with_its_line_and_a_fix(read, text, message):
    with pytest.raises((FormatError, UnknownName)) as caught:
        read(text)
    assert message in str(caught.value)
    assert "rankgauge.toml" in caught.value.where
    assert "fix: " in str(caught.value)
    assert "swordfish" not in str(caught.value)


def test_names_of_secrets_are_accepted(read):
    read("""
        store = "postgresql://me@host/db"
        [models.judge]
        url = "https://host/v1"
        key_env = "OPENAI_API_KEY"
        [retrievers.a]
        key_header = "Authorization"
        id_key = "source"
        chunker = { type = "token", size = 100 }
    """)


def test_other_files_are_reported(tmp_path):
    (tmp_path / "corpus.jsonl").write_text('{"_id": "d1", "text": "x"}\n')
    (tmp_path / "rankgauge.toml").mkdir()
    for path, message in (
        ("corpus.jsonl", "this is not a project file: expected TOML"),
        ("rankgauge.toml", "cannot be read: Is a directory"),
        ("none.toml", "there is no such file"),
        ("no-folder", "there is no such file"),
    ):
        with pytest.raises(InputError, match=message):
            ProjectFile.read(tmp_path / path)


def test_paths_are_relative_to_the_file(read, tmp_path):
    assert read("").store == str(tmp_path.resolve() / ".rankgauge/store.db")
    file = read("store = 'kept.db'\nlog = 'log'\ntexts = false")
    assert (file.store, file.log, file.texts) == (str(file.folder / "kept.db"), str(file.folder / "log"), False)
    assert read("store = 'postgresql://host/db'").store == "postgresql://host/db"


def test_the_nearest_file_above_is_found(tmp_path, monkeypatch):
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    monkeypatch.chdir(inner)
    assert find_project_file() is None
    (tmp_path / "rankgauge.toml").touch()
    assert find_project_file() == "../../rankgauge.toml"
    (tmp_path / "a" / "rankgauge.toml").symlink_to("missing")
    with pytest.raises(InputError, match="no such file"):
        ProjectFile.read(find_project_file(inner))
    (inner / "rankgauge.toml").touch()
    assert find_project_file() == "rankgauge.toml"


def test_a_folder_that_cannot_be_created_is_reported(tmp_path):
    (tmp_path / ".rankgauge").touch()
    with pytest.raises(InputError, match="cannot be created: File exists"):
        data_folder(tmp_path)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can give files away")
def test_the_file_of_another_user_is_refused(read):
    file = read("k = 5")
    file.check_owner()
    os.chown(file.path, 12345, -1)
    with pytest.raises(RankgaugeError, match="belongs to another user") as caught:
        file.check_owner()
    assert "--trust" in caught.value.fix
    assert file.store.endswith("store.db")
    with pytest.raises(InputError, match="belongs to another user"):
        _ = ProjectFile(file.path, {"store": "postgresql://host/db"}).store
