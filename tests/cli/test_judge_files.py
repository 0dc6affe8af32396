"""``rankgauge judge export``, ``import``, ``backup``, and ``restore``."""

import json

import pytest
from command import run

import rankgauge
from rankgauge.judging import Choice, JudgingProject

SAMPLE = rankgauge.sample_path("qrels.txt").parent
BM25 = str(SAMPLE / "runs" / "bm25.run")


@pytest.fixture
def project(tmp_path):
    """A project in which Ann has judged twenty tasks according to the sample's judgments."""
    path = tmp_path / "judging.db"
    assert run("judge", "create", path, "--questions", SAMPLE / "queries.jsonl").returncode == 0
    added = run("judge", "pool", path, "--collection", SAMPLE, "--run", BM25, "--random", "2")
    assert added.returncode == 0, added.stderr
    judged = rankgauge.read_qrels(SAMPLE / "qrels.txt")
    with JudgingProject(path) as opened:
        ann, _ = opened.add_judge("Ann")
        for number in range(20):
            shown = opened.next_task(ann.id).presentation
            grades = judged.get(shown.question, {})
            best = max(shown.documents, key=lambda name, grades=grades: grades.get(name, 0))
            relevant = grades.get(best, 0) > 0
            said = ("chosen", (best,)) if relevant else ("none", ())
            opened.record(Choice(f"c{number}", shown.id, ann.id, *said))
    return path


def test_an_export_is_read_by_an_evaluation(project, tmp_path):
    done = run("judge", "export", project, tmp_path / "qrels.txt")
    assert done.returncode == 0, done.stderr
    assert "never chosen" in done.stdout
    about = json.loads((tmp_path / "qrels.txt.about.json").read_text())
    assert about["relevance"] == "share"
    values = run("evaluate", tmp_path / "qrels.txt", BM25, "-m", "nDCG@10")
    assert values.returncode == 0, values.stderr


def test_standard_output_has_the_judgments_alone(project):
    done = run("judge", "export", project, "-", "--format", "jsonl")
    assert all(json.loads(line)["doc_id"] for line in done.stdout.splitlines())
    assert "judged documents" in done.stderr


@pytest.mark.parametrize(
    ("to", "more", "measure"),
    [("preferences", (), "Prefs"), ("sampled", ("--collection", SAMPLE), "infNDCG@10")],
)
def test_other_judgments_are_read_by_their_measures(to, more, measure, project, tmp_path):
    done = run("judge", "export", project, tmp_path / "judged.txt", "--to", to, *more)
    assert done.returncode == 0, done.stderr
    assert run("evaluate", tmp_path / "judged.txt", BM25, "-m", measure).returncode == 0


def test_a_quepid_book_round_trips(project, tmp_path):
    run("judge", "export", project, tmp_path / "qrels.txt")
    assert run("judge", "export", project, tmp_path / "b.csv", "--format", "quepid").returncode == 0
    other = tmp_path / "other.db"
    run("judge", "create", other, "--questions", SAMPLE / "queries.jsonl")
    done = run("judge", "import", other, tmp_path / "b.csv", "--judge", "Ann")
    assert done.returncode == 0, done.stderr
    run("judge", "export", other, tmp_path / "again.txt")
    assert (tmp_path / "again.txt").read_bytes() == (tmp_path / "qrels.txt").read_bytes()


def test_a_broken_line_names_file_line_and_fix_and_may_be_left_out(project, tmp_path):
    path = tmp_path / "q.txt"
    path.write_text("q01 0 loans-renewing 2\nq99 0 loans-renewing 1\nq01 0 x 9\nq01 0 y 1\n")
    done = run("judge", "import", project, path)
    assert done.returncode == 2
    assert "q.txt, line 2: the project has no question 'q99'" in done.stderr
    assert "fix: " in done.stderr
    done = run("judge", "import", project, path, "--skip-bad")
    assert done.returncode == 0
    assert "line 3: the grade 9" in " ".join(done.stdout.split())


def test_columns_are_named(project, tmp_path):
    (tmp_path / "r.csv").write_text("question,url,stars,who\nq01,a,3,Ann\nq01,a,1,Bob\n")
    names = "query=question,document=url,grade=stars,judge=who"
    done = run("judge", "import", project, tmp_path / "r.csv", "--columns", names)
    assert done.returncode == 0, done.stderr
    with JudgingProject(project) as opened:
        assert sorted(each.name for each in opened.judges.values()) == ["Ann", "Bob"]


@pytest.mark.parametrize("name", ["copy.db", "copy.jsonl.gz"])
def test_a_backup_is_restored(name, project, tmp_path):
    done = run("judge", "backup", project, tmp_path / name)
    assert done.returncode == 0, done.stderr
    again = run("judge", "backup", project, tmp_path / name)
    assert again.returncode == 2
    assert "this file already exists" in again.stderr
    assert run("judge", "restore", tmp_path / name, tmp_path / "new.db").returncode == 0
    with JudgingProject(project) as one, JudgingProject(tmp_path / "new.db") as other:
        assert one.judgments() == other.judgments()
    assert run("judge", "restore", tmp_path / name, project).returncode == 2
