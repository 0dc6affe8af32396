"""What pages say: no commands, what to do in an empty project, and how many tasks are left."""

import re
import uuid
from dataclasses import replace

import pytest
from evaluated_project import create_evaluated, save_answers
from judging_pages import ORIGIN, sign_in
from starlette.testclient import TestClient

from rankgauge import Baseline, Project, gate
from rankgauge.judging import Candidate, Choice, Document, JudgingProject, Question, Settings, Source, judging_status
from rankgauge.production import EventLog, import_log
from rankgauge.sample import sample_path
from rankgauge.store import Gates
from rankgauge.web import judging_app
from rankgauge.web.jobs import Runner

COMMAND = re.compile(r"rankgauge [a-z]|(?<!\S)--[a-z]")
PATHS = [
    "/",
    "/start",
    "/judge",
    "/answers",
    "/questions",
    "/guideline",
    "/progress",
    "/disagreements",
    "/votes",
    "/settings",
    "/evaluations",
    "/gates",
    "/production",
    "/production/drift",
    "/production/sample",
    "/production/alerts",
    "/try",
    "/jobs",
    "/people",
    "/nothing",
    "/judge/0",
    "/images/x",
    "/evaluations/9",
    "/evaluations/1/answers",
    "/evaluations/x",
    "/compare?a=1&b=77",
    "/compare?a=1&b=1&m=x",
    "/gates/9",
    "/verdict",
    "/guideline?version=7",
    "/compare",
    "/explain/1/zz",
    "/documents/zz",
    "/queries/zz",
    "/production/metrics/zz",
    "/static/none",
    "/production/sample?n=x",
    "/production/sample?n=5",
    "/deciding?a=1&b=2&m=RR",
]


def visible(page):
    """Return the text of a page, without the project file, which is the user's."""
    text = re.sub(r"(?s)<pre class=\"scroll\".*?</pre>|<script.*?</script>|<style.*?</style>", "", page.text)
    text = re.sub(r"[ \t]+", " ", re.sub(r"<[^>]+>", " ", text))
    return text + " ".join(re.findall(r'(?:title|aria-label|placeholder)="([^"]*)"', page.text))


def visit_all(client, limit=150):
    """Visit pages, and those to which they lead; return the path and text of each."""
    found, waiting = {}, list(PATHS)
    while waiting and len(found) < limit:
        path = waiting.pop(0)
        if path in found or "format=html" in path:  # a report in a file, for developers
            continue
        page = client.get(path)
        if "html" not in page.headers["content-type"]:
            continue
        found[path] = visible(page)
        links = re.findall(r'(?:href|data-part|action)="(/[^"]*)"', page.text)
        waiting += [link.replace("&amp;", "&") for link in links if not link.startswith(("/static", "/join"))]
    return found


@pytest.mark.slow
@pytest.mark.parametrize("rich", [True, False])
def test_no_page_shows_a_command(tmp_path, rich):
    folder = tmp_path / "handbook"
    if rich:
        project = create_evaluated(folder)
        save_answers(project)
        baseline = Baseline.from_run(project.judgments, project.evaluations.run(1))
        for number in (1, 2):
            result = gate(project.judgments, project.evaluations.run(number), project.rules, baseline=baseline)
            Gates(project.file.store).add(result.to_json())
        import_log(sample_path("log/searches.jsonl.gz"), folder / "log", mapping=sample_path("log/mapping.toml"))
    else:
        folder.mkdir()
        folder.joinpath("rankgauge.toml").write_text('collection = "."\n')
        project = Project(folder)
    log = EventLog(str(folder / "log")) if rich else None
    with project.open_judging() as judging, project.evaluations, Runner(project) as runner:
        app = judging_app(judging, evaluations=project, runner=runner, log=log)
        for role in ("judge", "reader", "lead", "admin"):
            client = TestClient(app, base_url=ORIGIN, raise_server_exceptions=False)
            sign_in(client, judging, role, role)
            pages = visit_all(client)
            assert len(pages) > 35
            assert {path: found[0] for path, text in pages.items() if (found := COMMAND.findall(text))} == {}
        client = TestClient(app, base_url=ORIGIN)
        assert not any(COMMAND.search(text) for text in visit_all(client).values())


@pytest.mark.parametrize("role", ["judge", "lead", "admin"])
@pytest.mark.parametrize("questions", [0, 1])
def test_an_empty_project_says_what_to_do(tmp_path, role, questions):
    with JudgingProject.create(tmp_path / "judging.db") as project:
        project.add_questions(Question(f"q{number}", "why?") for number in range(questions))
        client = TestClient(judging_app(project), base_url=ORIGIN)
        sign_in(client, project, role=role)
        lacks = "No question of this project has documents yet." if questions else "This project has no questions yet."
        who = "A lead adds the documents" if role == "judge" else "The person who runs this server adds the documents"
        for path in ("/start", "/judge", *(["/progress"] if role != "judge" else [])):
            text = visible(client.get(path))
            assert lacks in text
            assert who in text
            assert "Nothing is left" not in text
        assert "Start" not in re.findall(r'class="button primary"[^>]*>(\w+)', client.get("/start").text)


# ---- the number of tasks


def filled(where, documents, **settings):
    """Return a project with two questions of some documents each."""
    project = JudgingProject.create(where, Settings(repeats=0.0, gold=0.0, **settings))
    project.add_questions([Question("q1", "one"), Question("q2", "two")])
    pool = [Candidate(query, f"{query}-{n}", (Source("run"),)) for query in ("q1", "q2") for n in range(documents)]
    project.add_candidates(pool, [Document(each.document, {"text": "text"}) for each in pool])
    return project


def choose(project, task, number):
    shown = task.presentation
    choice = Choice(str(uuid.uuid4()), shown.id, shown.judge, "none")
    if shown.mode == "graded":
        choice = replace(choice, outcome="graded", grades=(number % 3,))
    elif number % 2:
        choice = replace(choice, outcome="chosen", documents=(shown.documents[0],))
    project.record(choice)


@pytest.mark.parametrize("mode", ["choice", "graded", "ranking", "yes-no"])
@pytest.mark.parametrize(("documents", "people"), [(1, 1), (2, 2), (3, 3), (5, 1), (6, 2)])
@pytest.mark.parametrize("overlap", [0.0, 1.0])
def test_a_judge_has_tasks_exactly_if_some_are_available(tmp_path, mode, documents, people, overlap):
    with filled(tmp_path / "judging.db", documents, mode=mode, overlap=overlap) as project:
        judges = [project.add_judge(f"judge {number}")[0].id for number in range(people)]
        announced, came = project.progress("").available, 0
        working = [*judges]
        while working:
            judge = working[came % len(working)]
            available = project.progress(judge).available
            task = project.next_task(judge)
            assert (task is None) == (available == 0)
            if task is None:
                working.remove(judge)
                continue
            choose(project, task, came)
            came += 1
            assert project.progress(judge).available < available + overlap
        assert came <= announced or (overlap and people > 1)
        assert project.progress("").available == 0


def test_tasks_for_other_judges_are_not_announced_as_ones_own(tmp_path):
    with filled(tmp_path / "judging.db", 3) as project:
        client = TestClient(judging_app(project), base_url=ORIGIN)
        ann = sign_in(client, project)
        text = visible(client.get("/start"))
        assert re.search(r"left for you \(at most\)\s+2\s", text)
        assert re.search(r"more for other judges\s+10\s", text)
        assert "Each document is shown up to 6 times, 3 at a time, because one choice says little" in text
        assert re.search(r"2 left", visible(client.get("/judge")).replace("\n", " ").replace("  ", " "))
        for number in range(2):
            choose(project, project.next_task(ann.id), number)
        page = visible(client.get("/judge"))
        assert "Nothing is left for you to judge" in page
        assert "10 tasks are left for other judges" in page
        assert re.search(r"0 left", page.replace("\n", " ").replace("  ", " "))
        status = judging_status(project)
        assert (status.left, status.blocked) == (10, 10)
        assert "invite another judge: rankgauge judge invite NAME" in status.next_step
        assert "10 need more people" in str(status)
        lead = TestClient(judging_app(project), base_url=ORIGIN)
        sign_in(lead, project, "Lea", "lead")
        assert "judge the open tasks" in re.sub(r"\s+", " ", visible(lead.get("/progress")))
        assert judging_status(project).blocked == 8


def test_tasks_reserved_by_others_are_left_for_them(tmp_path):
    with filled(tmp_path / "judging.db", 1, mode="yes-no", overlap=0.0) as project:
        ann, bob = (project.add_judge(name)[0].id for name in ("Ann", "Bob"))
        for judge in (ann, bob):
            project.next_task(judge)
        assert [project.progress(judge).available for judge in (ann, bob)] == [1, 1]
        choose(project, project.next_task(ann), 1)
        assert project.progress(ann).available == 0
        assert (project.progress("").left, project.progress("").available) == (1, 1)


def test_a_budget_and_single_documents_explain_the_number_of_tasks():
    assert Settings(budget=4).workload == "each question has at most 4 tasks"
    assert Settings(mode="graded").workload == "each document has one task"
