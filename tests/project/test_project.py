"""A project: what is there, what was measured, and what can be seen again."""

import json
import shutil

import pytest
from command import run as run_command

import rankgauge
from rankgauge import InputError, Project, sample_path
from rankgauge.judging import Candidate, Choice, Document, JudgingProject, Question, Source, export_judgments
from rankgauge.project import CollectedGrades

FILE = """
baseline = "words"
measures = ["nDCG@10", "RR"]

[collection]
source = "corpus.jsonl"
queries = "queries.jsonl"
qrels = "qrels.txt"

[retrievers.words]
type = "saved-run"
run = "bm25.run"

[retrievers.keyword]
type = "saved-run"
run = "keyword.run"
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A project over the sample, whose retrievers are saved runs."""
    sample = sample_path("qrels.txt").parent
    for name in ("corpus.jsonl", "queries.jsonl", "qrels.txt", "runs/bm25.run", "runs/keyword.run"):
        shutil.copy(sample / name, tmp_path)
    (tmp_path / "rankgauge.toml").write_text(FILE, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("RANKGAUGE_STORE", raising=False)
    return tmp_path


@pytest.fixture
def command(folder):
    """Run a command in the project."""
    return lambda *words, **choices: run_command(*words, cwd=folder, **choices)


def removed(folder):
    """Delete the collection, the judgments, and the runs."""
    for path in folder.iterdir():
        if path.name not in {"rankgauge.toml", ".rankgauge"}:
            path.unlink()
    shutil.rmtree(folder / ".rankgauge" / "runs", ignore_errors=True)


def test_what_was_measured_can_be_seen_again_without_any_file(folder, command):
    project = Project()
    assert set(project.bench(timed=0).bench.runs) == {"words", "keyword"}
    before = str(rankgauge.diagnose(project.judgments, "bm25.run", project.collection))
    removed(folder)
    project = Project()
    names = [entry.short_name for entry in project.evaluations.entries()]
    assert names == ["words#1", "keyword#2"]
    assert str(project.diagnose("@baseline")).replace("words", "bm25") == before
    assert "terms: " in command("diagnose", "@latest", "--full").stdout
    title = command("diff", "@baseline", "@latest", "-n", "1", "--full")
    assert title.returncode == 0, title.stderr
    explained = command("explain", "words#1", "nDCG@10")
    assert explained.returncode == 0, explained.stderr
    checked = command("check", "words#1")
    assert "Traceback" not in checked.stderr
    page = command("report", "@baseline", "@latest", "--no-plots", "-o", "-")
    assert page.returncode == 0, page.stderr
    assert "words#1" in page.stdout


def test_bench_saves_by_default_and_no_save_is_the_exception(folder, command):
    assert command("bench", "--timed", "0", "--no-save").returncode == 0
    assert "there is no store yet" in command("history", "list").stderr
    done = command("bench", "--timed", "0")
    assert "saved as words#1 in" in done.stderr
    assert "saved as keyword#2 in" in done.stderr
    compared = command("compare", "@baseline", "@latest")
    assert "keyword#2 is worse than words#1" in compared.stdout


def test_a_run_needs_no_judgments_in_a_project(folder, command):
    explicit = command("evaluate", "qrels.txt", "bm25.run", "-m", "nDCG@10", "-m", "RR", "--no-save")
    done = command("evaluate", "bm25.run")
    assert done.stdout == explicit.stdout
    assert "saved as bm25#1" in done.stderr
    saved = command("evaluate", "bm25#1")
    assert saved.returncode == 0, saved.stderr
    assert "saved" not in saved.stderr
    latest = command("evaluate")
    assert latest.stdout == saved.stdout.replace("bm25#1", "bm25#1")


def test_saved_runs_are_evaluated_again_when_judgments_change(folder, command):
    Project().bench(timed=0)
    assert "on the current judgments" in command("evaluate", "--again").stderr
    lines = (folder / "qrels.txt").read_text(encoding="utf-8").splitlines(keepends=True)
    (folder / "qrels.txt").write_text("".join(lines[:-5]), encoding="utf-8")
    assert "rankgauge evaluate --again" in Project().status().next_step
    done = command("evaluate", "--again")
    assert done.returncode == 0, done.stderr
    assert [line.split()[2] for line in done.stderr.splitlines()] == ["words#3", "keyword#4"]
    refused = command("compare", "words#1", "words#3")
    assert refused.returncode == 4
    assert "different judgments" in refused.stderr
    assert command("compare", "words#3", "keyword#4").returncode == 0
    assert command("evaluate", "--again").stdout == ""


def test_judgments_of_people_are_added_to_those_of_the_file(folder):
    project = Project()
    query = next(iter(project.collection.queries))
    unjudged = next(doc for doc in project.collection.documents if doc not in project.judgments[query])
    judged = next(iter(project.judgments[query]))
    judging = JudgingProject.create(project.file.store)
    judging.add_questions([Question(query, "?")])
    pool = [Candidate(query, doc, (Source("bm25"),)) for doc in (unjudged, judged)]
    judging.add_candidates(pool, [Document(unjudged), Document(judged)])
    ann, _ = judging.add_judge("Ann")
    task = judging.next_task(ann.id).presentation
    judging.record(Choice("c1", task.id, ann.id, "chosen", (unjudged,)))
    merged = Project().judgments
    assert merged[query][unjudged] == 1
    assert merged[query][judged] == project.collection.qrels[query][judged]
    assert "1 task judged" in str(Project().status())


def test_chosen_documents_get_grade_1_beside_judgments_of_a_file(folder):
    project = Project()
    query = next(iter(project.collection.queries))
    new = [doc for doc in project.collection.documents if doc not in project.judgments[query]][:4]
    judging = JudgingProject.create(project.file.store)
    judging.add_questions([Question(query, "?")])
    judging.add_candidates([Candidate(query, doc, (Source("bm25"),)) for doc in new], map(Document, new))
    for name in "abc":
        judge, _ = judging.add_judge(name)
        while (task := judging.next_task(judge.id)) is not None:
            shown = task.presentation
            judging.record(Choice(shown.id, shown.id, judge.id, "chosen", (min(shown.documents),)))
    shares = export_judgments(judging).grades[query]
    assert max(shares.values()) > 1
    merged = Project().judgments[query]
    assert {doc: merged[doc] for doc in new} == {doc: float(shares[doc] > 0) for doc in new}


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("draws = 'many'", "got 'many'"),
        ("drawn = 5", "unknown key of evaluation 'drawn'"),
    ],
)
def test_settings_of_evaluations_are_checked(setting, message, folder):
    (folder / "rankgauge.toml").write_text(f"{FILE}\n[evaluation]\n{setting}\n", encoding="utf-8")
    with pytest.raises(rankgauge.RankgaugeError, match=message):
        Project().settings()


def test_settings_of_evaluations_come_from_the_file(folder, command):
    (folder / "weights.csv").write_text("id,weight\n" + "".join(f"{q},1\n" for q in Project().judgments), "utf-8")
    (folder / "rankgauge.toml").write_text(f'{FILE}\n[evaluation]\nweights = "weights.csv"\n', encoding="utf-8")
    done = command("evaluate", "bm25.run")
    assert done.returncode == 0, done.stderr
    assert Project().evaluations.entry("@latest").weighted


def test_orders_are_drawn_only_if_ties_need_them(folder, command):
    (folder / "rankgauge.toml").write_text(f"{FILE}\n[evaluation]\ndraws = 50\n", encoding="utf-8")
    assert command("evaluate", "bm25.run").returncode == 0
    drawn = command("evaluate", "bm25.run", "-m", "ERR@10", "--ties", "mean")
    assert "50 orders" in drawn.stdout, drawn.stderr


def test_weights_are_a_field_of_the_questions_of_the_project(folder, command):
    lines = (folder / "queries.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) | {"weight": place + 1} for place, line in enumerate(lines)]
    (folder / "queries.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    (folder / "rankgauge.toml").write_text(f'{FILE}\n[evaluation]\nweights = "weight"\n', encoding="utf-8")
    done = command("evaluate", "bm25.run")
    assert done.returncode == 0, done.stderr
    weighted = Project().evaluate("bm25.run")
    names = {"weights": {row["_id"]: row["weight"] for row in rows}}
    assert weighted.mean() == rankgauge.evaluate("qrels.txt", "bm25.run", ["nDCG@10", "RR"], **names).mean()
    # The weights are kept when it is evaluated again.
    text = (folder / "qrels.txt").read_text(encoding="utf-8").replace("\tqq", "")
    (folder / "qrels.txt").write_text("".join(text.splitlines(keepends=True)[:-1]), encoding="utf-8")
    entries = Project().evaluate_again()
    assert [entry.weighted for entry in entries] == [True]


def test_evaluations_of_other_questions_are_left_as_they_are(folder, command):
    (folder / "other.qrels").write_text("zz 0 d 1\nzy 0 d 1\n", encoding="utf-8")
    (folder / "other.run").write_text("zz Q0 d 1 1 r\n", encoding="utf-8")
    assert command("evaluate", "other.qrels", "other.run").returncode == 0
    assert "--again" not in Project().status().next_step
    assert command("evaluate", "--again").returncode == 0
    assert len(Project().evaluations.entries()) == 1


def test_an_evaluation_of_some_queries_is_made_again_on_these(folder):
    project = Project()
    some = list(project.judgments)[:10]
    run = rankgauge.Run.of("bm25.run")
    project.save(rankgauge.evaluate(project.judgments, run, "RR", queries=some), project.judgments, run)
    text = (folder / "qrels.txt").read_text(encoding="utf-8")
    (folder / "qrels.txt").write_text("".join(text.splitlines(keepends=True)[1:]), encoding="utf-8")
    (entry,) = Project().evaluate_again()
    assert (entry.queries, entry.run) == (10, "bm25")


def test_the_baseline_is_the_first_retriever_unless_it_is_named(folder):
    (folder / "rankgauge.toml").write_text(FILE.replace('baseline = "words"', ""), encoding="utf-8")
    Project().bench(timed=0)
    assert Project().evaluations.entry("@baseline").short_name == "words#1"


def test_judging_begins_with_the_settings_of_the_project(folder, command):
    text = f'{FILE}\n[judging]\nmode = "graded"\ntitle = "Help"\n'
    (folder / "rankgauge.toml").write_text(text, encoding="utf-8")
    done = command("judge", "create", "--questions", "queries.jsonl", "--title", "Desk")
    assert "Desk (graded)" in done.stdout, done.stderr


def test_a_language_model_is_named_by_its_table(folder, command):
    (folder / "rankgauge.toml").write_text(f'{FILE}\n[models.small]\nurl = "http://localhost:9"\n', encoding="utf-8")
    command("judge", "create", "--questions", "queries.jsonl")
    done = command("judge", "generate", "--collection", ".", "--model", "small", "--dry-run", "-o", "new.jsonl")
    assert "models.small: model is missing" in done.stderr
    unknown = command("judge", "generate", "--collection", ".", "--model", "large", "-o", "new.jsonl")
    assert unknown.returncode == 2


def test_a_missing_folder_is_no_project(folder, command):
    done = command("status", "nowhere")
    assert done.returncode == 2
    assert "nowhere: there is no rankgauge.toml" in done.stderr
    assert command("status", "rankgauge.toml").returncode == 0


def test_the_status_leads_from_step_to_step(tmp_path, folder, command):
    status = Project().status()
    assert status.next_step == "run the retrievers and evaluate them: rankgauge bench"
    assert status.facts["documents"] == "96" or status.facts["documents"].isdecimal()
    Project().bench(timed=0)
    status = Project().status()
    assert "keyword#2" in status.facts["evaluations"]
    assert "worse than words#1" in status.facts["evaluations"]
    assert status.next_step == "find the likely causes: rankgauge diagnose @latest"
    shown = json.loads(command("status", "--as", "json").stdout)
    assert shown["next_step"] == status.next_step
    (folder / "qrels.txt").unlink()
    assert "judg" in Project().status().next_step or "name the documents" in Project().status().next_step


def test_without_a_project_there_is_an_error_that_says_how_to_create_one(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=r"there is no rankgauge\.toml"):
        Project()
    done = run_command("status", cwd=tmp_path)
    assert done.returncode == 2
    assert "rankgauge init" in done.stderr


def test_a_gate_takes_a_saved_evaluation(folder, command):
    Project().bench(timed=0)
    written = command("gate", "@baseline", "--update-baseline")
    assert written.returncode == 0, written.stderr
    assert command("gate", "words#1").returncode == 0
    assert command("gate", "@latest").returncode == 1
    assert Project().gate("@latest").verdict == "FAIL"


def test_of_several_grades_of_a_document_those_of_tasks_and_in_sight_count_before_the_collection():
    collected = CollectedGrades(graded={"a": 1}, in_sight={"b": 1}, chosen={"c": 1, "d": 1})
    assert collected.beside({"a": 2, "b": 2, "c": 2, "e": 2}) == {"a": 1, "b": 1, "c": 2, "d": 1, "e": 2}


def test_without_documents_there_is_nothing_to_pool(tmp_path):
    (tmp_path / "questions.csv").write_text("question\nlate fees\n", encoding="utf-8")
    (tmp_path / "rankgauge.toml").write_text('version = 1\ncollection = "."\n', encoding="utf-8")
    with JudgingProject.create(tmp_path / ".rankgauge" / "store.db") as made:
        made.add_questions([Question("q1", "late fees")])
    assert Project(tmp_path).status().next_step.startswith("name the documents")
