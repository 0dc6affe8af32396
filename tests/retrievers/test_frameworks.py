"""Common behavior of adapters, and errors if their framework is not installed."""

import sys
from dataclasses import dataclass
from types import SimpleNamespace as Object

import pytest

from rankgauge import Query
from rankgauge.errors import InputError, MissingExtra
from rankgauge.retrievers import TYPES, LangChain, PyTerrier
from rankgauge.retrievers.frameworks import DocumentAdapter, ranking_of


@pytest.mark.parametrize(
    ("rows", "wanted"),
    [
        ([("a", 2), ("b", 1.5), ("b", 1.0)], [("a", 2.0), ("b", 1.5)]),
        ([("a", 1.0), ("b", 1.0)], [("a", 1.0), ("b", 1.0)]),
        ([("a", 1.0), ("b", 1.5)], ["a", "b"]),
        ([("a", 1.0), ("b", None)], ["a", "b"]),
        ([("a", 3.0), ("b", 2.0), ("c", 1.0), ("d", 9.0)], [("a", 3.0), ("b", 2.0), ("c", 1.0)]),
        ([], []),
    ],
    ids=["once", "equal", "reordered", "half scored", "cut first", "nothing"],
)
def test_a_ranking_of_rows_as_they_came(rows, wanted):
    assert ranking_of(rows, 3) == wanted


@pytest.mark.parametrize(
    ("own", "data", "key", "wanted"),
    [
        ("x", {"id": "y"}, None, "x"),
        ("x", {"id": "y"}, "id", "y"),
        (None, {"doc_id": 7, "_id": "z"}, None, "7"),
        ("", {"docno": "z", "id": ""}, None, "z"),
        (None, {"n": 0}, "n", "0"),
    ],
)
def test_the_id_of_a_document(own, data, key, wanted):
    pages = [Object(id=own, metadata=data)]
    assert LangChain(Object(invoke=lambda _: pages), id_key=key).search([Query("q", "a")], 3) == [[wanted]]


@pytest.mark.parametrize("found", [None, "", True, 1.5, ["a"], {"a": 1}])
def test_a_missing_id_is_named(found):
    page = Object(id="x", metadata={"source": found, "n": 1})
    asked = LangChain(Object(invoke=lambda _: [page]), id_key="source")
    with pytest.raises(InputError, match=r"LangChain: a document has no source; keys .*: source, n"):
        asked.search([Query("q", "a")], 3)


@dataclass(eq=False, repr=False)
class Mine(DocumentAdapter):
    TYPE = "mine"
    LIBRARY = "no-such-library"
    METHODS = ("lower",)
    WANTED = "text"

    source: str

    def __post_init__(self):
        self._set_up(self.source, {"other": None})


def test_settings_have_the_declared_values_the_options_and_a_version():
    assert Mine("", depth=5).settings is None
    # A function cannot be compared with that of another process.
    assert Mine("", settings={"model": "m"}, id=str).settings is None
    assert Mine("", settings={"model": "m"}, depth=5).settings == {
        "type": "mine",
        "depth": 5,
        "model": "m",
        "versions": {"no-such-library": "unknown"},
    }


@pytest.mark.parametrize("depth", [0, -1, 1.5, True, "10"])
def test_depth_is_a_whole_number_from_one(depth):
    with pytest.raises(InputError, match="is not valid"):
        Mine("", depth=depth)


class Store:
    """An object with the interface of a vector store."""

    def similarity_search(self, text, k):
        """Find nothing."""

    add_documents = delete = similarity_search


@pytest.mark.parametrize(
    ("missing", "make", "line"),
    [
        ("langchain_core", lambda: LangChain(Store(), indexing=True), "rankgauge[langchain]"),
        ("pandas", lambda: PyTerrier(type("T", (), {"transform": None})()), "rankgauge[pyterrier]"),
    ],
    ids=["langchain", "pyterrier"],
)
def test_a_missing_library_is_named_with_the_line_that_installs_it(monkeypatch, missing, make, line):
    for name in [one for one in sys.modules if one.partition(".")[0] == missing]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(MissingExtra) as caught:
        make()
    assert line in caught.value.fix


def test_every_type_has_a_class_that_loads_without_its_library():
    from rankgauge import retrievers

    for name in TYPES.values():
        assert getattr(retrievers, name).__doc__


def test_paths_of_windows_are_relative_to_a_folder_with_slashes():
    known = ["hours.md", "loans/renewing.md"]
    pages = [Object(id=None, metadata={"source": f"C:\\notes\\{name}".replace("/", "\\")}) for name in known]
    retriever = LangChain(Object(invoke=lambda text: pages), id_key="source")
    (found,) = retriever.search([Query("q", "x")], 10)
    assert retriever.id_advice(found, known).startswith(
        'LangChain(..., id_key="source", base="C:/notes") would match 2'
    )
    fixed = LangChain(Object(invoke=lambda text: pages), id_key="source", base="C:/notes")
    assert fixed.search([Query("q", "x")], 10) == [known]


def test_ids_that_partly_match_get_no_empty_advice():
    retriever = LangChain(Object(invoke=lambda text: [Object(id="a", metadata={"page": 3})]))
    retriever.search([Query("q", "x")], 10)
    assert retriever.id_advice(["a", "z"], ["a", "b"]) == (
        "LangChain(..., id_key=...): fields of its metadata are page"
    )


def test_the_base_may_be_a_url():
    page = Object(id="https://example.org/loans/a.md", metadata={})
    retriever = LangChain(Object(invoke=lambda text: [page]), base="https://example.org/")
    assert retriever.search([Query("q", "x")], 10) == [["loans/a.md"]]
