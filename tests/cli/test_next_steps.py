"""Every next step, in a folder with real files: an output names it, and it does what it says."""

import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from command import run

import rankgauge
from rankgauge.core.recommendations import NEXT_STEPS, next_step
from rankgauge.judging import Choice, JudgingProject

SAMPLE = rankgauge.sample_path("qrels.txt").parent


class Folder:
    """A folder in which commands run, with a sample and synthetic files."""

    def __init__(self, path):
        self.path = path
        shutil.copytree(SAMPLE, path / "sample")
        self.qrels("q.txt", 400)
        self.run_file("good.run", 400)

    def qrels(self, name, queries):
        lines = [f"q{n} 0 d 1\n" for n in range(queries)]
        (self.path / name).write_text("".join(lines), encoding="utf-8")

    def run_file(self, name, queries, worse=(), other="x"):
        """Write a run in which the relevant document is at rank 1, or 2 for worse queries."""
        lines = []
        for n in range(queries):
            docs = (other, "d") if n in worse else ("d", other)
            lines += [f"q{n} Q0 {doc} {rank} {-rank} r\n" for rank, doc in enumerate(docs, 1)]
        (self.path / name).write_text("".join(lines), encoding="utf-8")

    def __call__(self, words, code=0):
        done = run(*words.split(), cwd=self.path)
        assert done.returncode == code, (done.stdout, done.stderr)
        return done.stdout

    def baseline(self, words="q.txt good.run"):
        self(f"gate {words} --update-baseline")
        return (self.path / "gate-baseline.json").read_bytes()


def plain(text):
    return " ".join(text.split()).rstrip(".").lower()


def command_in(text):
    """Return the command that a next step names, without the program."""
    return re.search(r"rankgauge (.*)", text)[1]


def fail_with_losses(folder):
    before = folder.baseline()
    folder.run_file("bad.run", 400, worse=range(100))
    text = folder("gate q.txt bad.run", 1)
    # The first query named is fixed with the others; the baseline was not replaced.
    assert re.search(r"baseline nDCG@10 +q\d+ +1\.000 +0\.631", text)
    folder("gate q.txt bad.run --update-baseline", 2)
    assert (folder.path / "gate-baseline.json").read_bytes() == before
    folder("gate q.txt good.run")
    return text, {"units": "queries"}


def fail_without_losses(folder):
    folder.run_file("low.run", 400, worse=range(100))
    folder.baseline("q.txt low.run")
    rules = '[gate.measures]\n"nDCG@10" = { margin = 0.02, floor = 0.95 }\n'
    (folder.path / "rules.toml").write_text(rules, encoding="utf-8")
    text = folder("gate q.txt low.run --rules rules.toml", 1)
    folder("gate q.txt good.run --rules rules.toml")
    return text, {}


def faulty_run(folder):
    before = folder.baseline()
    folder.run_file("empty.run", 64)
    text = folder("gate q.txt empty.run", 4)
    folder("gate q.txt empty.run --update-baseline", 2)
    assert (folder.path / "gate-baseline.json").read_bytes() == before
    folder("gate q.txt good.run")
    return text, {}


def other_inputs_than_the_baseline(folder):
    folder.baseline()
    folder.qrels("q.txt", 390)
    text = folder("gate q.txt good.run", 4)
    folder("gate q.txt good.run --update-baseline")
    folder("gate q.txt good.run")
    return text, {}


def other_inputs_than_the_anchor(folder):
    folder("gate q.txt good.run --update-baseline --baseline release.json")
    folder.qrels("q.txt", 390)
    folder.baseline()
    text = folder("gate q.txt good.run --anchor release.json", 4)
    step = command_in(NEXT_STEPS["gate: other inputs than the anchor"])
    folder(step.replace("QRELS", "q.txt").replace("RUN", "good.run").replace("FILE", "new.json"))
    folder("gate q.txt good.run --anchor new.json")
    return text, {}


def inconclusive(folder):
    folder.qrels("few.txt", 1)
    folder.run_file("few.run", 1)
    folder.baseline("few.txt few.run")
    folder.run_file("few.run", 1, other="y")
    text = folder("gate few.txt few.run")
    folder.baseline()
    folder.run_file("more.run", 400, other="y")
    assert folder("gate q.txt more.run").startswith("PASS")
    return text, {"units": "queries"}


def inconclusive_with_a_number(folder):
    folder.qrels("few.txt", 40)
    folder.run_file("few.run", 40)
    folder.baseline("few.txt few.run")
    folder.run_file("few.run", 40, worse=[0])
    text = folder("gate few.txt few.run --rules sample.toml")
    numbers = {*re.findall(r"about ([\d,]+) queries", " ".join(text.split()))}
    (number,) = numbers
    needed = int(number.replace(",", ""))
    assert "larger margin" not in text
    assert "or a margin of" not in text
    # Queries of the same kind: one in 40 loses.
    folder.qrels("more.txt", needed)
    folder.run_file("more.run", needed)
    folder.baseline("more.txt more.run --force")
    folder.run_file("more.run", needed, worse=range(0, needed, 40))
    assert folder("gate more.txt more.run --rules sample.toml").startswith("PASS")
    return text, {"units": "queries", "number": f"{number} queries"}


def passed_unless_rare_collapse(folder):
    folder.qrels("few.txt", 60)
    for name, worse in (("few.run", 0), ("moved.run", 1)):
        lines = [
            f"q{n} Q0 {'d' if rank == 9 + (n % 2 == worse) else rank} {rank} {100 - rank} r\n"
            for n in range(60)
            for rank in range(1, 101)
        ]
        (folder.path / name).write_text("".join(lines), encoding="utf-8")
    folder.baseline("few.txt few.run")
    text = folder("gate few.txt moved.run")
    assert text.startswith("PASS unless rare collapse")
    # More queries of this kind decide.
    number = int(re.search(r"about ([\d,]+) queries", " ".join(text.split()))[1].replace(",", ""))
    folder.qrels("few.txt", number)
    for name in ("few.run", "moved.run"):
        text_of = (folder.path / name).read_text(encoding="utf-8").splitlines()
        more = [
            re.sub(r"q(\d+)", lambda q, by=by: f"q{int(q[1]) + 60 * by}", line)
            for by in range(number // 60 + 1)
            for line in text_of
        ]
        kept = [line for line in more if int(re.match(r"q(\d+)", line)[1]) < number]
        (folder.path / name).write_text("\n".join(kept) + "\n", encoding="utf-8")
    folder.baseline("few.txt few.run --force")
    assert folder("gate few.txt moved.run --strict").startswith("PASS: ")
    return text, {"units": "queries"}


def identical(folder):
    folder.baseline()
    text = folder("gate q.txt good.run")
    folder.run_file("changed.run", 400, worse=[1])
    assert not folder("gate q.txt changed.run").startswith("IDENTICAL")
    return text, {}


def passed(folder):
    folder.run_file("low.run", 400, worse=range(100))
    folder.baseline("q.txt low.run")
    text = folder("gate q.txt good.run")
    assert folder("gate q.txt good.run --update-baseline").startswith("PASS")
    assert folder("gate q.txt good.run").startswith("IDENTICAL")
    return text, {}


def passed_with_a_loss(folder):
    folder.baseline()
    folder.run_file("one.run", 400, worse=range(6))
    text = folder("gate q.txt one.run")
    assert text.startswith("PASS")
    # Small losses add up if each becomes the baseline: every step passes, their sum does not.
    for step in range(2, 6):
        folder(f"gate q.txt one.run --update-baseline --baseline moving{step}.json")
        folder.run_file("one.run", 400, worse=range(6 * step))
        assert folder(f"gate q.txt one.run --baseline moving{step}.json").startswith("PASS")
    assert folder("gate q.txt one.run", 1).startswith("FAIL")
    return text, {}


def k_is_small(folder):
    qrels = [f"q{q} 0 d{d} 1\n" for q in range(10) for d in range(30)]
    (folder.path / "many.txt").write_text("".join(qrels), encoding="utf-8")
    recalls = []
    for k in (5, 30):
        rows = [f"q{q} Q0 d{d} {d + 1} {-d} r\n" for q in range(10) for d in range(k)]
        (folder.path / f"{k}.run").write_text("".join(rows), encoding="utf-8")
        recalls.append(float(folder(f"evaluate many.txt {k}.run -m R@30 -q").split()[-1]))
    assert recalls == [0.1667, 1.0]
    text = folder("diagnose many.txt 5.run")
    assert "miss a relevant document" not in text
    assert re.search(r"missing information: .*; 5\s+documents\s+allow 0\.17 at most", text)
    assert re.search(r"^none +0", text, re.MULTILINE)
    return text, {"k": "5"}


def nothing_missed(folder):
    text = folder("diagnose q.txt good.run -k 1")
    return text, {"k": "1"}


def _project(folder, questions):
    folder("judge create")
    text = folder("judge status")
    lines = (SAMPLE / "queries.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    (folder.path / "some.jsonl").write_text("".join(lines[:questions]), encoding="utf-8")
    return text


def no_questions(folder):
    text = _project(folder, 2)
    folder(command_in(next_step("judge: no questions", flag="")).replace("FILE", "some.jsonl"))
    assert "2 questions" in folder("judge status")
    return text, {"flag": ""}


def _pooled(folder):
    _project(folder, 1)
    folder("judge questions some.jsonl")
    text = folder("judge status")
    words = {"flag": "", "questions": "the questions", "sources": " --collection FOLDER --run RUN"}
    step = command_in(next_step("judge: no candidates", **words))
    folder(step.replace("FOLDER", "sample").replace("RUN", "sample/runs/bm25.run") + " -k 3")
    return text, words


def no_candidates(folder):
    text, words = _pooled(folder)
    assert "rankgauge serve" in folder("judge status")
    return text, words


def tasks_left(folder):
    _pooled(folder)
    text = folder("judge status")
    step = command_in(next_step("judge: tasks left", flag=""))
    command = [sys.executable, "-m", "rankgauge", *step.split(), "--port", "0"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, cwd=folder.path) as process:
        try:
            assert "http://" in process.stdout.readline() + process.stderr.readline()
        finally:
            process.send_signal(signal.SIGINT)
    return text, {"flag": ""}


def _judged(folder, people):
    _pooled(folder)
    with JudgingProject(folder.path / ".rankgauge/store.db") as project:
        for name in map(str, range(people)):
            judge = project.add_judge(name)[0]
            while (task := project.next_task(judge.id)) is not None:
                shown = task.presentation
                best = (min(shown.documents),)
                project.record(Choice(shown.id, shown.id, judge.id, "chosen", best))
    return folder("judge status")


def more_people(folder):
    text = _judged(folder, 1)
    first, last = re.findall(r"rankgauge ([^;]+)", next_step("judge: more people", flag=""))
    folder(last)
    assert (folder.path / "qrels.txt").is_file()
    folder(first)
    assert "next step: judge: rankgauge serve" in folder("judge status")
    return text, {"flag": ""}


def done_judging(folder):
    text = _judged(folder, 20)
    folder(command_in(next_step("judge: done", flag="")))
    assert (folder.path / "qrels.txt").is_file()
    return text, {"flag": ""}


_LOG = "logs import --mapping sample/log/mapping.toml sample/log/searches.jsonl.gz log"


def dry_run(folder):
    text = folder(f"{_LOG} --dry-run")
    assert not (folder.path / "log").exists()
    folder(_LOG)
    assert (folder.path / "log").is_dir()
    return text, {}


def imported(folder):
    text = folder(_LOG)
    assert "idk_rate" in folder(command_in(next_step("logs import: imported", log="log")))
    return text, {"log": "log"}


def bench(folder):
    text = folder("bench sample/rankgauge.toml")
    diagnosed = folder("bench sample/rankgauge.toml --diagnose")
    assert "latency" in folder("bench sample/rankgauge.toml --diagnose --full")
    assert "likely cause" in " ".join(diagnosed.split())
    assert "with --full (full=True)" in " ".join(diagnosed.split())
    return text, {"run": "hashing"}


_ANSWERS = "answers evaluate sample/answers/prompt-1.jsonl --reference sample/answers/questions.jsonl"


def answers_evaluate(folder):
    text = folder(_ANSWERS)
    assert "at fault" in folder(f"{_ANSWERS} --full").lower()
    return text, {}


def _page(folder, words):
    folder(f"report {words} -o page.html")
    return re.sub("<[^>]+>", " ", (folder.path / "page.html").read_text(encoding="utf-8"))


def report_of_evaluations(folder):
    folder("evaluate q.txt good.run -m nDCG@10 --as json --save --store h.db")
    (folder.path / "e.json").write_text(
        folder("evaluate sample/qrels.txt sample/runs/keyword.run -m nDCG@10 --as json")
    )
    text = _page(folder, "e.json")
    step = command_in(NEXT_STEPS["report of evaluations"])
    step = step.replace("QRELS", "sample/qrels.txt").replace("RUN", "sample/runs/keyword.run")
    assert "ikely cause" in _page(folder, step.removeprefix("report"))
    return text, {}


def report_of_answers(folder):
    folder(f"{_ANSWERS} -o answers.json")
    text = _page(folder, "answers.json")
    step = command_in(NEXT_STEPS["report of answers"])
    reference = "--reference sample/answers/questions.jsonl"
    step = step.replace("FILE", f"sample/answers/prompt-1.jsonl {reference}")
    assert "at fault" in folder(step).lower()
    return text, {}


def _one_answer(folder, words):
    lines = (SAMPLE / "answers" / "prompt-1.jsonl").read_text(encoding="utf-8").splitlines()
    (folder.path / "one.jsonl").write_text(lines[0] + "\n", encoding="utf-8")
    return folder(f"answers evaluate one.jsonl {words} --full")


def retrieval_limits(folder):
    text = _one_answer(folder, "--reference sample/answers/questions.jsonl")
    step = command_in(NEXT_STEPS["answers: retrieval limits"])
    step = step.replace("QRELS", "sample/qrels.txt").replace("RUN", "sample/runs/keyword.run")
    assert "likely causes" in folder(step)
    return text, {}


def no_cause(folder):
    # Nothing was judged: the documents with the answer are unknown.
    text = _one_answer(folder, "")
    assert re.search(r"^cause .*\n─+\nno fault ", text, re.MULTILINE)
    assert re.search(r"^cause .*\n─+\nused but contradicted ", folder(f"{_ANSWERS} --full"), re.MULTILINE)
    return text, {}


def _new_project(folder, *names):
    place = folder.path / "new"
    place.mkdir()
    for name in names:
        shutil.copy(SAMPLE / name, place)
    text = folder("init new")
    step = text.split("Next step: ")[1]
    if step.startswith("cd new && "):
        folder.path = place
        step = step.removeprefix("cd new && ")
    if step.startswith("rankgauge"):
        folder(step.removeprefix("rankgauge "))
    return text


def new_project(folder):
    return _new_project(folder, "corpus.jsonl", "queries.jsonl", "qrels.txt"), {"project": " new"}


def new_project_without_judgments(folder):
    text = _new_project(folder, "corpus.jsonl", "queries.jsonl")
    assert "30 questions" in folder("judge status")
    return text, {"cd": "cd new && "}


def new_project_of_runs(folder):
    return _new_project(folder, "qrels.txt", "runs/bm25.run"), {"qrels": "new/qrels.txt", "runs": "new/bm25.run"}


def new_project_without_questions(folder):
    text = _new_project(folder, "corpus.jsonl")
    (folder.path / "new/questions.csv").write_text(
        "question,relevant\nlate fees,loans-overdue-fines\ncards,card-lost\n"
    )
    folder("bench new")
    return text, {"missing": "questions (questions.csv with the columns question and relevant)"}


def _in_project(folder, collection='queries = "queries.jsonl"\nqrels = "qrels.txt"', runs=("bm25", "keyword")):
    """Make the sample a project whose retrievers are saved runs, and work in its folder."""
    folder.path /= "sample"
    retrievers = "".join(f'[retrievers.{run}]\ntype = "saved-run"\nrun = "runs/{run}.run"\n' for run in runs)
    text = f'baseline = "bm25"\nmeasures = ["nDCG@10"]\n[collection]\nsource = "corpus.jsonl"\n{collection}\n'
    (folder.path / "rankgauge.toml").write_text(text + retrievers, encoding="utf-8")


def project_without_questions(folder):
    _in_project(folder, "")
    text = folder("status")
    path = folder.path / "rankgauge.toml"
    more = 'source = "corpus.jsonl"\nqueries = "queries.jsonl"\nqrels = "qrels.txt"'
    path.write_text(path.read_text(encoding="utf-8").replace('source = "corpus.jsonl"', more), encoding="utf-8")
    assert "for 30 questions" in folder("status")
    return text, {}


def project_without_judgments(folder):
    _in_project(folder, 'queries = "queries.jsonl"')
    text = folder("status")
    step = command_in(next_step("project: no judgments")).partition(";")[0]
    folder(step)
    assert "0 tasks judged" in folder("status")
    return text, {}


def project_without_candidates(folder):
    _in_project(folder, 'queries = "queries.jsonl"')
    folder("judge create")
    text, step = folder("status"), command_in(next_step("project: no candidates"))
    assert step in folder("judge status")
    assert re.search(r"^bm25 +search +30 ", folder(step), re.MULTILINE)
    assert "judge the open tasks: rankgauge serve" in folder("status")
    return text, {}


def project_without_evaluation(folder):
    _in_project(folder)
    text = folder("status")
    folder(f"{command_in(next_step('project: no evaluation'))} --timed 0")
    assert "2, the latest keyword#2" in folder("status")
    return text, {}


def project_with_tasks(folder):
    _in_project(folder, runs=("bm25",))
    folder("bench --timed 0")
    folder("judge create --questions queries.jsonl")
    folder("judge pool --collection . --run runs/bm25.run -k 3")
    return folder("status"), {}


def project_with_other_judgments(folder):
    _in_project(folder)
    folder("bench --timed 0")
    path = folder.path / "qrels.txt"
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    path.write_text("".join(lines[:-3]), encoding="utf-8")
    text = folder("status")
    folder(command_in(next_step("project: judgments changed")))
    assert "4, the latest keyword#4" in folder("status")
    return text, {}


def project_with_a_worse_run(folder):
    _in_project(folder)
    folder("bench --timed 0")
    text = folder("status")
    assert "likely cause" in folder(command_in(next_step("project: worse")))
    return text, {}


def project_evaluated(folder):
    _in_project(folder, runs=("bm25",))
    folder("bench --timed 0")
    text = folder("status")
    folder(f"{command_in(next_step('project: evaluated'))} --timed 0")
    assert "bm25#2" in folder("compare bm25#1 bm25#2")
    return text, {}


_SCENARIOS = dict(
    zip(
        NEXT_STEPS,
        (
            fail_with_losses,
            fail_without_losses,
            faulty_run,
            other_inputs_than_the_baseline,
            other_inputs_than_the_anchor,
            inconclusive,
            inconclusive_with_a_number,
            passed_unless_rare_collapse,
            identical,
            passed,
            passed_with_a_loss,
            k_is_small,
            nothing_missed,
            new_project,
            new_project_without_judgments,
            new_project_of_runs,
            new_project_without_questions,
            project_without_questions,
            project_without_judgments,
            project_without_candidates,
            project_without_evaluation,
            project_with_tasks,
            project_with_other_judgments,
            project_with_a_worse_run,
            project_evaluated,
            no_questions,
            no_candidates,
            tasks_left,
            more_people,
            done_judging,
            dry_run,
            imported,
            bench,
            answers_evaluate,
            report_of_evaluations,
            report_of_answers,
            retrieval_limits,
            no_cause,
        ),
        strict=True,
    )
)


@pytest.mark.slow
@pytest.mark.parametrize("state", NEXT_STEPS)
def test_a_next_step_does_what_it_says(state, tmp_path):
    folder = Folder(tmp_path)
    (folder.path / "sample.toml").write_text('[gate.measures]\n"nDCG@10" = { margin = 0.04 }\n')
    text, words = _SCENARIOS[state](folder)
    assert plain(next_step(state, **words)) in plain(text)


def test_every_next_step_is_in_the_table():
    source = Path(rankgauge.__file__).parent
    states = {
        *re.findall(
            r'next_step\(\s*f?["\']([^"\'{]+)',
            "".join(path.read_text(encoding="utf-8") for path in source.rglob("*.py")),
        )
    }
    assert all(any(known.startswith(state) for known in NEXT_STEPS) for state in states)
