"""The examples of the page on other tools, with the tools themselves; Phoenix as a server on this machine."""

import csv
import datetime as dt
import json
import os
import re
import socket
import subprocess
import sys
import threading
import time
import uuid
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from docs_scripts import DOCS

from rankgauge import Collection, compare
from rankgauge.answers import read_answers
from rankgauge.errors import InputError
from rankgauge.judging.questions import load_questions
from rankgauge.sample import sample_path

httpx, langfuse, langsmith, mlflow, wandb = (
    pytest.importorskip(name, reason=f"without {name} the examples are not tested")
    for name in ("httpx", "langfuse", "langsmith", "mlflow", "wandb")
)
pytest.importorskip("phoenix", reason="without phoenix the examples are not tested")

# Warnings of the tools and their dependencies.
pytestmark = pytest.mark.filterwarnings("ignore")
PAGE = DOCS / "howto" / "tracking.md"
_TWO = "The late fee is 2 euros."


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def run_section(title, names):
    """Run the Python code of a section."""
    section = PAGE.read_text("utf-8").split(f"\n## {title}\n")[1].split("\n## ")[0]
    exec("\n".join(re.findall(r"(?ms)^```python\n(.*?)^```", section)), names)


@pytest.fixture
def names(tmp_path, monkeypatch):
    """Return the names of the first section, which logs to a database in an empty folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path}/mlflow.db")
    monkeypatch.setenv("WANDB_DIR", str(tmp_path))
    monkeypatch.setenv("WANDB_SILENT", "true")
    found = {"__name__": "tracking"}
    run_section("MLflow", found)
    return found


# ---- MLflow, Weights & Biases


def _runs():
    return {run.info.run_name: run for run in mlflow.search_runs(output_format="list", search_all_experiments=True)}


def test_mlflow_has_the_means_the_values_of_each_query_and_the_report(names):
    run, evaluation = _runs()["bm25 and keyword"], names["evaluation"]
    nested = [r for r in mlflow.search_runs(output_format="list") if r.data.tags.get("mlflow.parentRunId")]
    assert {r.data.tags["mlflow.parentRunId"] for r in nested} == {run.info.run_id}
    keyword = next(r for r in nested if r.info.run_name == "keyword")
    assert keyword.data.metrics == pytest.approx(
        {"nDCG_at_10": evaluation.mean()["nDCG@10"], "RR": evaluation.mean()["RR"]}
    )
    assert keyword.data.params["ties"] == "trec"
    single = next(r for r in mlflow.search_runs(output_format="list") if "P_rel_2_at_5" in r.data.metrics)
    client = mlflow.MlflowClient()
    assert {a.path for a in client.list_artifacts(single.info.run_id)} == {
        "per_query.json",
        "evaluation.json",
        "report.html",
    }
    table = mlflow.load_table("per_query.json", run_ids=[keyword.info.run_id])
    assert table["nDCG@10"].tolist() == pytest.approx(evaluation.to_frame()["nDCG@10"].tolist())
    assert mlflow.artifacts.load_text(f"{run.info.artifact_uri}/report.html").startswith("<!DOCTYPE html>")
    assert mlflow.load_table("differences.json", run_ids=[run.info.run_id])["run"].tolist() == ["keyword"] * 2


def test_mlflow_logs_a_saved_evaluation_with_its_settings(names, tmp_path):
    names["rankgauge"].History("store.db").add(names["evaluation"], settings={"latency_ms": 12}, label="1.1")
    names["log_saved"]("keyword#1", tmp_path / "store.db")
    run = _runs()["keyword#1"]
    assert run.data.params["latency_ms"] == "12"
    assert run.data.metrics["RR"] == pytest.approx(names["evaluation"].mean()["RR"])


def test_mlflow_logs_within_a_run_of_the_user(names):
    with mlflow.start_run(run_name="training") as outer:
        mlflow.log_params({"seed": 7})
        names["log_evaluation"](names["evaluation"])
        assert mlflow.active_run().info.run_id == outer.info.run_id
    assert mlflow.active_run() is None
    assert _runs()["training"].data.params["seed"] == "7"


def test_weights_and_biases_has_the_means_and_the_report(names, tmp_path):
    run_section("Weights & Biases", names)
    assert wandb.run is None
    wandb.teardown()  # writes the file
    (folder,) = tmp_path.glob("wandb/offline-run-*")
    mean = json.dumps(names["evaluation"].mean()["nDCG@10"]).encode()
    assert re.search(rb"nDCG_at_10.{1,9}" + re.escape(mean), next(folder.glob("*.wandb")).read_bytes(), re.DOTALL)
    (page,) = folder.rglob("*.html")
    assert page.read_text("utf-8").startswith("<!DOCTYPE html>")
    (table,) = folder.rglob("*.table.json")
    assert len(json.loads(table.read_text("utf-8"))["data"]) == 30


# ---- Phoenix


@pytest.fixture(scope="module")
def phoenix(tmp_path_factory):
    """Yield the URL of a server."""
    folder, port = tmp_path_factory.mktemp("phoenix"), free_port()
    options = {
        "WORKING_DIR": folder,
        "PORT": port,
        "GRPC_PORT": free_port(),
        "HOST": "127.0.0.1",
        "TELEMETRY_ENABLED": "false",
    }
    environment = os.environ | {f"PHOENIX_{name}": str(value) for name, value in options.items()}
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "phoenix.server.main", "serve"], env=environment, stdout=log, stderr=log, cwd=folder
        )
        try:
            for _ in range(600):
                try:
                    httpx.get(f"http://127.0.0.1:{port}/healthz").raise_for_status()
                    break
                except httpx.HTTPError:
                    assert process.poll() is None, (folder / "log").read_text()
                    time.sleep(0.2)
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()
            process.wait()


@pytest.fixture
def client(names, phoenix, monkeypatch):
    monkeypatch.setenv("PHOENIX_COLLECTOR_ENDPOINT", phoenix)
    run_section("Read datasets and experiments", names)
    run_section("Test the scores of another tool", names)
    return names["client"]


def test_datasets_of_phoenix_keep_questions_and_grades(names, client, phoenix, tmp_path):
    section = PAGE.read_text("utf-8").split("\n## Write datasets\n")[1]
    exec(re.findall(r"(?ms)^```python\n(.*?)^```", section)[0], names)
    collection = names["collection"]
    names["download_dataset"]("help-center", tmp_path / "dataset.json")
    api = f"{phoenix}/v1/datasets/{names['dataset'].id}"
    (tmp_path / "dataset.csv").write_text(httpx.get(f"{api}/csv").text, "utf-8")
    (tmp_path / "page.json").write_text(httpx.get(f"{api}/examples").text, "utf-8")
    for name in ("dataset.json", "dataset.csv", "page.json"):
        read = Collection.load(sample_path("corpus.jsonl").parent, queries=tmp_path / name)
        assert {q.id: q.text for q in read.queries.values()} == {q.id: q.text for q in collection.queries.values()}
        assert read.qrels == collection.qrels
        assert read.queries["q01"].fields["type"] == "how-to"


def test_experiments_of_phoenix_are_answers(names, client, phoenix, tmp_path, monkeypatch):
    dataset = client.datasets.create_dataset(
        name=f"fees-{uuid.uuid4()}",
        inputs=[{"question": f"late fee of type {n}?"} for n in range(12)],
        outputs=[{"answer": "2 euros", "relevant": ["fees"]}] * 12,
    )

    def exact(output, expected):
        return float(output["answer"] == expected["answer"])

    monkeypatch.chdir(tmp_path)
    for name, answer in (("prompt-1", "2"), ("prompt-2", "2 euros")):

        def task(input, answer=answer):  # noqa: A002 - the name of Phoenix
            if input["question"] == "late fee of type 11?":
                raise RuntimeError("overloaded")
            return {"answer": answer, "contexts": [{"id": "fees", "text": _TWO}]}

        done = client.experiments.run_experiment(
            dataset=dataset, task=task, evaluators=[exact], experiment_name=name, print_summary=False, retries=0
        )
        for suffix in ("json", "csv"):
            text = httpx.get(f"{phoenix}/v1/experiments/{done['experiment_id']}/{suffix}").text
            (tmp_path / f"{name}.{suffix}").write_text(text, "utf-8")
    (tmp_path / "dataset.json").write_text(json.dumps(dataset.to_dict(), default=str), "utf-8")
    for suffix in ("json", "csv"):
        (answers,) = read_answers(f"prompt-2.{suffix}", reference="dataset.json")
        assert answers.system == "prompt-2"
        assert [r.question for r in answers.records] == [f"late fee of type {n}?" for n in range(12)]
        assert {(r.reference, r.gold) for r in answers.records} == {("2 euros", ("fees",))}
        assert [r.answer for r in answers.records] == ["2 euros"] * 11 + [""]
        assert answers.records[0].contexts[0].id == "fees"
    with pytest.raises(InputError, match="there is no 'answer'"):
        read_answers("dataset.json")
    rows = json.loads((tmp_path / "prompt-1.json").read_text())
    for name in ("prompt-1", "prompt-2"):
        rows = json.loads((tmp_path / f"{name}.json").read_text())[:11]  # the evaluator has no score for a failure
        (tmp_path / f"{name}.json").write_text(json.dumps(rows))
    comparison = compare([names["scores"]("prompt-1.json"), names["scores"]("prompt-2.json")])
    assert comparison.difference("prompt-2.json").difference == 1


# ---- Langfuse


@pytest.fixture
def api():
    """Yield the URL of a server that accepts all requests and echoes them, and the requests."""
    requests = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            requests.append((self.path, body))
            now = "2026-05-01T12:00:00Z"
            reply = {"status": "ACTIVE", "datasetId": "d", "createdAt": now, "updatedAt": now, "mediaReferences": []}
            reply |= {"id": "d", "projectId": "p", "metadata": None} | {
                key: value for key, value in body.items() if value
            }
            data = json.dumps(reply).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_):
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}", requests
        server.shutdown()


def test_items_for_langfuse_can_be_read_again(names, api, tmp_path, monkeypatch):
    url, requests = api
    for name, value in (
        ("PUBLIC_KEY", "pk-lf-1"),
        ("SECRET_KEY", "sk-lf-1"),
        ("BASE_URL", url),
        ("TRACING_ENABLED", "false"),
    ):
        monkeypatch.setenv(f"LANGFUSE_{name}", value)
    code = re.findall(r"(?ms)^```python\n(.*?)^```", PAGE.read_text("utf-8").split("\n## Write datasets\n")[1])
    exec(code[0].partition("dataset = ")[0] + code[1], names)
    items = [body for path, body in requests if path.endswith("/dataset-items")]
    assert len(items) == 30
    collection = names["collection"]
    rows = [item | {"id": item["id"].removeprefix("help-center-"), "datasetId": "d"} for item in items]
    (tmp_path / "items.json").write_text(json.dumps(rows), "utf-8")
    with (tmp_path / "items.csv").open("w", newline="") as file:
        # Older versions of the interface write every value as JSON, texts too.
        cells = [{key: json.dumps(value) for key, value in row.items()} for row in rows]
        writer = csv.DictWriter(file, cells[0], quoting=csv.QUOTE_ALL)
        writer.writeheader()
        writer.writerows(cells)
    for name in ("items.json", "items.csv"):
        read = Collection.load(sample_path("corpus.jsonl").parent, queries=tmp_path / name)
        assert read.qrels == collection.qrels


def test_experiments_of_langfuse_are_answers(tmp_path):
    from langfuse.api import DatasetItem

    client = langfuse.Langfuse(
        public_key="pk-lf-1", secret_key="sk-lf-1", base_url="http://127.0.0.1:9", tracing_enabled=False
    )
    now = dt.datetime.now(dt.UTC)
    shared = {"status": "ACTIVE", "dataset_id": "d", "dataset_name": "fees", "media_references": []}
    shared |= {"created_at": now, "updated_at": now}
    items = [
        DatasetItem(
            id="i1", input={"question": "late fee?"}, expected_output={"answer": "2 euros"}, metadata=None, **shared
        ),
        DatasetItem(id="i2", input="open?", expected_output="9 to 5", metadata={"relevant": ["hours"]}, **shared),
    ]
    (tmp_path / "items.jsonl").write_text("".join(item.json() + "\n" for item in items), "utf-8")
    assert [(q.id, q.text, q.answers) for q in load_questions(tmp_path / "items.jsonl")] == [
        ("i1", "late fee?", ()),
        ("i2", "open?", ("hours",)),
    ]
    local = [{"input": item.input, "expected_output": item.expected_output} for item in items]
    for data, ids in ((items, ["i1", "i2"]), (local, ["1", "2"])):
        result = client.run_experiment(
            name="prompt-1",
            data=data,
            task=lambda *, item, **_: {"answer": "2", "contexts": [_TWO]},
            evaluators=[lambda **_: langfuse.Evaluation(name="right", value=0.5)],
        )
        (answers,) = read_answers(result.item_results, system="prompt-1")
        assert [r.id for r in answers.records] == ids
        assert [(r.question, r.answer, r.reference) for r in answers.records] == [
            ("late fee?", "2", "2 euros"),
            ("open?", "2", "9 to 5"),
        ]
        assert answers.records[0].contexts[0].text == _TWO


# ---- LangSmith


def test_datasets_and_experiments_of_langsmith_are_questions_and_answers(tmp_path):
    from langsmith import schemas
    from langsmith.types.datasets import ExperimentRunQueryResponse

    asked = [{"question": "late fee?"}, {"messages": [{"role": "user", "content": "open?"}]}]
    told = [{"answer": "2 euros", "relevant": ["fees"]}, {"output": "9 to 5"}]
    examples = [
        schemas.Example(id=uuid.uuid4(), dataset_id=uuid.uuid4(), inputs=inputs, outputs=outputs)
        for inputs, outputs in zip(asked, told, strict=True)
    ]
    dataset = tmp_path / "dataset.jsonl"
    dataset.write_text("".join(example.model_dump_json() + "\n" for example in examples), "utf-8")
    assert [(q.text, q.answers) for q in load_questions(dataset)] == [("late fee?", ("fees",)), ("open?", ())]

    client = langsmith.Client(api_url="http://127.0.0.1:9", api_key="none", auto_batch_tracing=False)
    results = langsmith.evaluate(
        lambda inputs: {"answer": "2", "documents": [{"page_content": _TWO, "metadata": {"source": "fees.md"}}]},
        data=examples,
        evaluators=[lambda outputs, reference_outputs: {"key": "right", "score": 0.5}],
        client=client,
        upload_results=False,
    )
    rows = list(results)
    frame = results.to_pandas()
    frame.to_csv(tmp_path / "results.csv")
    frame.to_json(tmp_path / "results.json", orient="records", default_handler=str)
    pages = [
        ExperimentRunQueryResponse(
            id=str(row["example"].id),
            inputs=row["example"].inputs,
            outputs=row["example"].outputs,
            runs=[{"id": str(row["run"].id), "run_type": "CHAIN", "name": "x", "outputs": row["run"].outputs}],
        )
        for row in rows
    ]
    (tmp_path / "pages.jsonl").write_text("".join(page.model_dump_json() + "\n" for page in pages), "utf-8")
    for source in (rows, frame, tmp_path / "results.csv", tmp_path / "results.json", tmp_path / "pages.jsonl"):
        (answers,) = read_answers(source, reference=dataset)
        assert [(r.id, r.question, r.answer, r.reference) for r in answers.records] == [
            (str(examples[0].id), "late fee?", "2", "2 euros"),
            (str(examples[1].id), "open?", "2", "9 to 5"),
        ]
        assert answers.records[0].gold == ("fees",)
        assert answers.records[0].contexts[0].text == _TWO
