"""``rankgauge judge generate``: questions proposed by a model for a judging project."""

import json
import re

import pytest
from command import run
from loopback import completion, serving

from rankgauge.judging import JudgingProject

SHOWN = re.compile(r"<<<DATA (\w+)>>>\n(.*?)\n<<<END \1>>>", re.DOTALL)


def server(body, _before):
    parts = [text for _, text in SHOWN.findall(body["messages"][1]["content"])]
    topic = parts[0].split()[1]
    if len(parts) == 1:
        copied = topic == "fees"
        text = parts[0] if copied else f"when can I ask about {topic}"
        return completion(json.dumps({"question": text}))
    return completion(json.dumps({"answerable": "yes", "quote": "every day"}))


@pytest.fixture
def collection(tmp_path):
    file = tmp_path / "documents.jsonl"
    rows = [
        {"_id": topic, "text": f"The {topic} of our library are managed at the desk every day."}
        for topic in ("fees", "cards", "wifi")
    ]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return file


def test_generated_questions_go_into_the_project_and_refused_ones_beside_it(tmp_path, collection):
    project = tmp_path / "judging.db"
    run("judge", "create", "--store", project)
    with serving(server) as model:
        words = (
            "judge",
            "generate",
            "--store",
            project,
            "-o",
            tmp_path / "new.jsonl",
            "--collection",
            collection,
            "-n",
            3,
            "--url",
            model.url,
            "--model",
            "small",
        )
        dry = run(*words, "--dry-run", "--input-price", 1, "--output-price", 1)
        assert dry.returncode == 0, dry.stderr
        assert "6 calls" in dry.stdout
        assert model.bodies == []
        done = run(*words)
        assert done.returncode == 0, done.stderr
        asked = len(model.bodies)
        again = run(*words)
        assert len(model.bodies) == asked == 5
    assert "refused: copied from the document" in done.stdout
    assert "users ask other questions" in done.stdout
    assert "2 questions added" in done.stderr
    assert "0 questions added" in again.stderr
    with JudgingProject(project) as opened:
        stored = opened.questions
    assert sorted(each.answers for each in stored.values()) == [("cards",), ("wifi",)]
    assert {each.origin for each in stored.values()} == {"generated"}
    assert {each.author for each in stored.values()} == {"small"}
    refused = (tmp_path / "new.refused.jsonl").read_text().splitlines()
    assert [json.loads(line)["document"] for line in refused] == ["fees"]
    # The accepted questions are a question set.
    again = run("logs", "sample", tmp_path / "new.jsonl", "-n", 2, "--as", "csv")
    assert again.returncode == 0, again.stderr


def test_a_model_is_needed(tmp_path, collection):
    project = tmp_path / "judging.db"
    run("judge", "create", "--store", project)
    done = run("judge", "generate", "--store", project, "--collection", collection)
    assert done.returncode == 2
    assert "a language model needs both --url URL and --model NAME" in done.stderr
