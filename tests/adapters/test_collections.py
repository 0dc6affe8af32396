"""Collections of other libraries, created here and read as those libraries return them."""

import json

import pytest

from rankgauge import Collection, Document, InputError, Query, read_qrels

TEXTS = [("d1", "T", "one"), ("d2", "", "two"), ("d3", "", "three")]
DOCS = [{"_id": key, "title": title, "text": text} for key, title, text in TEXTS]
ASKED = [{"_id": "q1", "text": "why"}, {"_id": "q2", "text": "how"}]
JUDGED = [{"query-id": "q1", "corpus-id": "d1", "score": 2}]
PLAIN = {key: {"title": title, "text": text} for key, title, text in TEXTS}


def same_as_plain(found, queries=("q1", "q2")):
    assert list(found.documents.values()) == [Document(*row) for row in TEXTS]
    assert list(found.queries) == list(queries)
    assert found.qrels["q1"] == {"d1": 2.0}
    assert found.documents_fingerprint == Collection.of(PLAIN).documents_fingerprint
    return True


# ---- Hugging Face


@pytest.fixture
def datasets():
    library = pytest.importorskip("datasets")
    library.disable_progress_bars()
    return library


def test_datasets_by_the_names_of_their_parts_are_a_collection(datasets):
    of = datasets.Dataset.from_list
    parts = {"corpus": of(DOCS), "queries": of(ASKED), "qrels": of(JUDGED)}
    assert same_as_plain(Collection.load(parts))
    wrapped = {name: datasets.DatasetDict({name: part}) for name, part in parts.items()}
    wrapped["qrels"] = datasets.DatasetDict({"test": of(JUDGED), "dev": of([JUDGED[0] | {"query-id": "q2"}])})
    found = Collection.load(wrapped)
    assert same_as_plain(found, ["q1"])
    assert found.notes == ("1 of 2 queries: those judged in test",)
    assert list(Collection.load(wrapped, split="dev").queries) == ["q2"]
    with pytest.raises(InputError, match="no split 'train'"):
        Collection.load(wrapped, split="train")


def test_a_dataset_alone_is_documents(datasets):
    data = datasets.Dataset.from_list(DOCS)
    assert list(Collection.load(data).documents) == ["d1", "d2", "d3"]
    assert list(Collection.load(documents=data, queries={"q": "x"}).documents) == ["d1", "d2", "d3"]
    streamed = Collection.load(data.to_iterable_dataset())
    assert streamed.documents["d3"].text == "three"
    assert Collection.load(streamed.documents and data) == Collection.load(data)


def test_many_rows_stay_in_the_dataset(datasets):
    data = datasets.Dataset.from_dict(
        {"id": [str(n) for n in range(20_000)], "text": [f"text {n}" for n in range(20_000)]}
    )
    found = Collection.load(data)
    assert type(found.documents).__name__ == "StoredTexts"
    assert (len(found.documents), found.documents["777"].text) == (20_000, "text 777")
    assert "20000" not in found.documents


def test_columns_that_do_not_fit_are_named(datasets):
    of = datasets.Dataset.from_list
    with pytest.raises(InputError, match="there is no text: the keys are 'id', 'words'"):
        Collection.load(of([{"id": "d", "words": "x"}]))
    parts = {"corpus": of(DOCS), "qrels": of([{"a": 1}])}
    with pytest.raises(InputError, match="the columns are a") as caught:
        Collection.load(parts)
    assert "query-id" in caught.value.fix


@pytest.mark.usefixtures("datasets")
def test_a_repository_on_disk_is_read_by_its_configurations(tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    configs = []
    for name, rows in (("corpus", DOCS), ("queries", ASKED), ("default", JUDGED)):
        text = "".join(json.dumps(row) + "\n" for row in rows)
        (tmp_path / f"{name}.jsonl").write_text(text)
        split = "test" if name == "default" else name
        configs.append(f"- config_name: {name}\n  data_files:\n  - split: {split}\n    path: {name}.jsonl\n")
    (tmp_path / "README.md").write_text("---\nconfigs:\n" + "".join(configs) + "---\n")
    assert same_as_plain(Collection.load(f"hf:{tmp_path}"))
    with pytest.raises(InputError, match="cannot be loaded"):
        Collection.load(f"hf:{tmp_path}/gone")
    judged = read_qrels(f"hf:{tmp_path}")
    assert judged["q1"] == {"d1": 2.0}
    assert judged.table.notes[-1] == f"hf:{tmp_path}: its judgments"


# ---- ir_datasets


@pytest.fixture
def registered(tmp_path, monkeypatch):
    monkeypatch.setenv("IR_DATASETS_HOME", str(tmp_path / "home"))
    library = pytest.importorskip("ir_datasets")
    (tmp_path / "docs.tsv").write_text("".join(f"{key}\t{text}\n" for key, _, text in TEXTS))
    (tmp_path / "queries.tsv").write_text("q1\twhy\nq2\thow\n")
    (tmp_path / "qrels").write_text("q1 0 d1 2\n")
    made = library.create_dataset(
        docs_tsv=str(tmp_path / "docs.tsv"),
        queries_tsv=str(tmp_path / "queries.tsv"),
        qrels_trec=str(tmp_path / "qrels"),
    )
    if "rankgauge-mini" not in list(library.registry):
        library.registry.register("rankgauge-mini", made)
    return made


def test_a_collection_of_ir_datasets_is_read_by_name_and_as_an_object(registered):
    found = Collection.load(registered)
    assert list(found.documents.values()) == [Document(key, "", text) for key, _, text in TEXTS]
    assert found.queries == {"q1": Query("q1", "why"), "q2": Query("q2", "how")}
    assert found.qrels["q1"] == {"d1": 2.0}
    named = Collection.load("ir_datasets:rankgauge-mini")
    assert list(named.queries) == ["q1", "q2"]
    with pytest.raises(InputError, match="cannot be loaded") as caught:
        Collection.load("ir_datasets:no-such-collection")
    assert "ir-datasets.com" in caught.value.fix
    with pytest.raises(InputError, match="splits in the names"):
        Collection.load("ir_datasets:rankgauge-mini", split="dev")
    judged = read_qrels("ir_datasets:rankgauge-mini")
    assert judged == named.qrels
    assert judged.table.notes[-1] == "ir_datasets:rankgauge-mini: its judgments"
    with pytest.raises(InputError, match="cannot be loaded"):
        read_qrels("ir_datasets:no-such-collection")
    with pytest.raises(InputError, match="splits in the names"):
        read_qrels("ir_datasets:rankgauge-mini", split="dev")


# ---- MTEB


@pytest.fixture
def task(datasets):
    mteb = pytest.importorskip("mteb")
    task = mteb.get_task("NFCorpus")
    of = datasets.Dataset.from_list
    task.dataset = {
        "default": {
            "test": {
                "corpus": of([{"id": key, "title": t, "text": text} for key, t, text in TEXTS]),
                "queries": of([{"id": row["_id"], "text": row["text"]} for row in ASKED]),
                "relevant_docs": {"q1": {"d1": 2}},
                "top_ranked": None,
            }
        }
    }
    task.data_loaded = True
    return task


def test_a_task_of_mteb_is_a_collection(task):
    found = Collection.load(task)
    assert same_as_plain(found)
    assert found.name == "NFCorpus"
    task.dataset["default"]["dev"] = task.dataset["default"]["test"]
    assert same_as_plain(Collection.load(task))
    with pytest.raises(InputError, match="there is no such subset or split") as caught:
        Collection.load(task, split="train")
    assert "default dev" in caught.value.fix


def test_a_task_that_is_not_about_retrieval_is_refused(task):
    task.dataset = {"default": {"test": [1]}}
    with pytest.raises(InputError, match="lacks documents, queries, or judgments"):
        Collection.load(task)
    with pytest.raises(InputError, match="cannot be loaded"):
        Collection.load("mteb:NoSuchTask")
