"""The first hour of a user: own Markdown files, own retriever, no judgments, own answers, own log.

Each step is a command that the program before it names, or one of the README.
"""

import csv
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from judging_site import chromium

import rankgauge

__all__ = ["chromium"]

pytestmark = pytest.mark.slow
ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module", autouse=True)
def _needed():
    for module in ("bm25s", "langchain_core", "duckdb", "starlette"):
        pytest.importorskip(module)


class User:
    """A user in a folder, who types commands and follows the printed steps."""

    def __init__(self, folder):
        self.folder = folder

    def __call__(self, command, code=0):
        """Type a command, and return what it prints on one line."""
        done = subprocess.run(
            ["sh", "-c", command.replace("rankgauge ", f"'{sys.executable}' -m rankgauge ")],
            cwd=self.folder,
            capture_output=True,
            encoding="utf-8",
            check=False,
        )
        assert done.returncode == code, done.stdout + done.stderr
        return " ".join((done.stdout + done.stderr).split())

    def next_step(self):
        """Return the command that the status of the project names."""
        return re.search(r"next step: .*?(rankgauge [a-z ]+)", self("rankgauge status"))[1].strip()


@pytest.fixture(scope="module")
def collection():
    return rankgauge.Collection.load(rankgauge.sample_path("qrels.txt").parent)


@pytest.fixture
def user(tmp_path, collection):
    """A folder of 66 Markdown files in nested folders, with front matter, and 25 questions without judgments."""
    folder = tmp_path / "handbook"
    for name, document in collection.documents.items():
        path = folder / name.partition("-")[0] / f"{name}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"---\ntitle: {document.title}\n---\n\n{document.text}\n", encoding="utf-8")
    _write(folder / "questions.csv", ["question"], ([query.text] for query in [*collection.queries.values()][:25]))
    return User(folder)


def _write(path, columns, rows):
    with path.open("w", newline="", encoding="utf-8") as stream:
        csv.writer(stream).writerows([columns, *rows])


def _judged(user, collection):
    """Write the judgments into the table of questions."""
    rows = []
    for name, query in [*collection.queries.items()][:25]:
        relevant = [f"{d.partition('-')[0]}/{d}.md" for d, grade in collection.qrels[name].items() if grade > 0]
        rows.append([query.text, ";".join(relevant)])
    _write(user.folder / "questions.csv", ["question", "relevant"], rows)


def test_the_first_block_of_the_readme_works(tmp_path):
    block = (ROOT / "README.md").read_text(encoding="utf-8").split("## Three commands")[1].split("```")[1]
    (tmp_path / "src").symlink_to(ROOT / "src")
    for command in ("init", "bench", "report"):
        assert f"\nrankgauge {command}" in block
    printed = User(tmp_path)(" && ".join(block.splitlines()[1:]))
    assert "30 queries, 66 documents" in printed
    assert "likely cause" in printed
    assert printed.endswith("wrote report.html")


def test_without_judgments_the_steps_lead_from_the_folder_to_a_verdict(user, chromium):
    assert "66 documents, 25 queries" in user("rankgauge init")
    assert user.next_step() == "rankgauge judge create"
    user(user.next_step())
    assert user.next_step() == "rankgauge judge pool"
    user(f"{user.next_step()} -k 3")
    assert user.next_step() == "rankgauge serve"
    words = [sys.executable, "-m", "rankgauge", "serve", "--port", "0"]
    with subprocess.Popen(words, cwd=user.folder, stdout=subprocess.PIPE, text=True) as server:
        try:
            page = chromium.new_page()
            page.goto(re.search(r"http://\S+", server.stdout.readline())[0])
            page.get_by_role("button").first.click()
            page.get_by_role("link", name="Judging").click()
            page.get_by_role("link", name="Start").click()
            page.locator("html.script [data-task]").wait_for()
            for number in range(12):
                task = page.locator("[data-task]").get_attribute("data-task")
                page.wait_for_timeout(400)  # a new task accepts no choice at first
                page.keyboard.press("120"[number % 3])
                page.locator(f"[data-task]:not([data-task='{task}'])").wait_for()
        finally:
            server.terminate()
    assert user.next_step() == "rankgauge bench"
    assert re.search(r"\d+ of 25 queries have judgments", user(user.next_step()))
    assert "evaluations" in user("rankgauge status")


def test_three_configurations_are_compared_and_gated(user, collection):
    _judged(user, collection)
    user("rankgauge init")
    with (user.folder / "rankgauge.toml").open("a", encoding="utf-8") as file:
        file.write('\n[retrievers.hashing]\ntype = "dense"\nencoder = { type = "hashing" }\n')
        file.write('\n[retrievers.hybrid]\ntype = "hybrid"\nof = ["bm25", "hashing"]\n')
    assert "hybrid" in user("rankgauge bench --diagnose")
    assert "95% CI" in user("rankgauge compare bm25#1 hybrid@latest")
    user("rankgauge gate hybrid@latest --update-baseline")
    assert user("rankgauge gate hybrid@latest").startswith("IDENTICAL")
    assert user("rankgauge gate bm25@latest --strict", 3).startswith("INCONCLUSIVE")


def test_ids_of_a_langchain_loader_are_explained_and_repaired(user, collection):
    from langchain_core.documents import Document
    from langchain_core.retrievers import BaseRetriever

    documents = [
        Document(page_content=path.read_text(encoding="utf-8"), metadata={"source": str(path)})
        for path in sorted(user.folder.rglob("*.md"))
    ]

    class Own(BaseRetriever):
        def _get_relevant_documents(self, query, *, run_manager):
            words = {*query.lower().split()}
            return sorted(documents, key=lambda d: -len(words & {*d.page_content.lower().split()}))[:10]

    _judged(user, collection)
    bench = rankgauge.Benchmark(rankgauge.Collection.load(user.folder))
    advice = bench.run("own", rankgauge.retrievers.LangChain(Own(), id_key="source")).evaluate().notes[0]
    assert re.search(r"would match (\d+) of \1 documents", advice)
    base = re.search(r'base="([^"]+)"', advice)[1]
    run = bench.run("own", rankgauge.retrievers.LangChain(Own(), id_key="source", base=base), rerun="all")
    assert run.evaluate()["R@10"] > 0.2


def test_answers_and_a_log_with_columns_of_their_own(user, collection):
    user("rankgauge init")
    rows = [("when are fees due", "After three weeks [1].", ["Fees are due after three weeks."], "After three weeks.")]
    with (user.folder / "answers.jsonl").open("w", encoding="utf-8") as file:
        for question, answer, contexts, truth in rows:
            row = {"user_input": question, "response": answer, "retrieved_contexts": contexts, "reference": truth}
            file.write(json.dumps(row) + "\n")
    assert "Faithfulness" in user("rankgauge answers evaluate answers.jsonl")
    times = [f"2026-11-{day:02d} 10:00:00" for day in range(1, 29)]
    ratings = ["up", "down", ""]
    _write(
        user.folder / "log.csv",
        ["ts", "user_email", "prompt", "completion", "rating"],
        ([time, f"u{n % 7}@x.org", f"question {n}", "An answer.", ratings[n % 3]] for n, time in enumerate(times)),
    )
    drafted = user("rankgauge logs import log.csv log", 2)
    command = re.search(r"(rankgauge logs import --dry-run .*? log)$", drafted)[1].replace("ZONE", "UTC")
    user(command)
    user(command.replace("--dry-run ", ""))
    assert "thumbs" in user("rankgauge logs metrics log")
