"""Screenshots of the pages: a team judges and evaluates the bundled sample, Chromium opens the pages.

python docs/_scripts/judging_screenshots.py [NAME ...]     docs/_static/{judging,workbench}-NAME-{wide,narrow}.png

Without names, all screenshots are made. They need the extra ``web``, Playwright, and Chromium.
"""

import contextlib
import shutil
import socket
import sys
import tempfile
import threading
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import uvicorn
from playwright.sync_api import Browser, Page, sync_playwright

import rankgauge
from rankgauge.answers import RuleJudge, Verdict, evaluate_answers, read_answers
from rankgauge.judging import Answer, Choice, JudgingProject, Settings, build_pool, load_questions
from rankgauge.production import EventLog, import_log
from rankgauge.project import Project, create_project
from rankgauge.sample import sample_path
from rankgauge.store import Gates, Jobs
from rankgauge.web import judging_app
from rankgauge.web.jobs import Runner

STATIC = Path(__file__).resolve().parents[1] / "_static"
SIZES = {"wide": (1280, 800), "narrow": (390, 844)}
FLAGS = ("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run")
GUARD = 300  # ms after a new task in which the page accepts no choice, with a reserve
PEOPLE = {"Judge 1": "judge", "Judge 2": "judge", "Lead": "lead", "Admin": "admin"}
QRELS = rankgauge.Qrels.of(sample_path("qrels.txt"))


@dataclass(frozen=True)
class Picture:
    """A page and the steps in the browser before the screenshot."""

    who: str
    path: str
    sizes: tuple[str, ...] = ("wide", "narrow")
    mode: str = "choice"
    prepare: Callable[[Page], Any] | None = None


def _help(page: Page) -> None:
    page.locator("#help summary").click()
    page.locator("#help").scroll_into_view_if_needed()


def _lose_connection(page: Page) -> None:
    page.wait_for_timeout(GUARD)
    page.context.set_offline(True)
    page.get_by_role("button", name="Document 1").click()
    page.locator("#unsaved").wait_for(state="visible")


def _rank(page: Page) -> None:
    page.wait_for_timeout(GUARD)
    for key in ("2", "1"):
        page.keyboard.press(key)


def _open_verdict(page: Page) -> None:
    page.get_by_role("button", name="Give the final verdict").first.click()
    page.wait_for_url("**/judge/*")


def _wait(page: Page) -> None:
    page.wait_for_load_state("networkidle")


def _grade(page: Page) -> None:
    page.locator("#grades button[value='2']").click()
    page.locator("#grades button[value='2'][aria-pressed='true']").wait_for()


def _search(page: Page) -> None:
    page.get_by_label("Query").fill("Can I eat in the reading room?")
    page.get_by_role("button", name="Search").click()
    page.locator(".hits li").nth(11).wait_for()


def _chart(page: Page) -> None:
    page.locator("figure svg").first.wait_for()


PICTURES = {
    "choice": Picture("Judge 1", "/judge"),
    "graded": Picture("Judge 1", "/judge", mode="graded"),
    "ranking": Picture("Judge 1", "/judge", mode="ranking", prepare=_rank),
    "yes-no": Picture("Judge 1", "/judge", mode="yes-no"),
    "start": Picture("Judge 1", "/"),
    "help": Picture("Judge 1", "/judge", prepare=_help),
    "error": Picture("Judge 1", "/judge/0"),
    "done": Picture("Judge 1", "/judge", mode="done"),
    "join": Picture("", "/join"),
    "answers": Picture("Judge 1", "/answers", ("wide",)),
    "questions": Picture("Lead", "/questions", ("wide",)),
    "guideline": Picture("Lead", "/guideline", ("wide",)),
    "progress": Picture("Lead", "/progress", ("wide",)),
    "disagreements": Picture("Lead", "/disagreements", ("wide",)),
    "verdict": Picture("Lead", "/disagreements", ("wide",), prepare=_open_verdict),
    "votes": Picture("Lead", "/votes", ("wide",)),
    "people": Picture("Admin", "/people", ("wide",)),
    "overview": Picture("Lead", "/", mode="workbench", prepare=_wait),
    "comparison": Picture("Lead", "/compare?a=1&b=2", ("wide",), mode="workbench", prepare=_wait),
    "query": Picture("Lead", "/compare/q11?a=1&b=2", mode="workbench", prepare=_grade),
    "jobs": Picture("Lead", "/jobs", ("wide",), mode="workbench"),
    "try": Picture("Lead", "/try", ("wide",), mode="workbench", prepare=_search),
    "production": Picture("Lead", "/production", ("wide",), mode="workbench", prepare=_chart),
    "gates": Picture("Lead", "/gates", ("wide",), mode="workbench"),
    "answers-page": Picture("Lead", "/evaluations/3/answers", ("wide",), mode="workbench"),
    # Last, since closing the browser sends the choice.
    "unsaved": Picture("Judge 1", "/judge", prepare=_lose_connection),
}


def team_project(mode: str) -> tuple[JudgingProject, dict[str, str]]:
    """Return a judging project on the sample with some judgments, and the secret of each person.

    Args:
        mode: Mode of the project; ``done`` is ``choice`` with nothing left to judge.
    """
    project = JudgingProject.create(f"judging-{mode}.db", Settings(title="Library help center"))
    project.add_questions(load_questions(sample_path("queries.jsonl"), author="sample"))
    runs = [sample_path("runs/bm25.run"), sample_path("runs/keyword.run")]
    build_pool(project, sample_path("corpus.jsonl"), runs, k=5, random=1)
    done = mode == "done"
    project.change_settings(
        Settings(project.settings.title, "choice" if done else mode, overlap=1.0, budget=1 if done else None)
    )
    secrets = {}
    for who, role in PEOPLE.items():
        judge, secrets[who] = project.add_judge(who, role=role)
        if role == "judge":
            _judge(project, judge.id, None if done else 14, often=who == "Judge 1")
    project.add_judge("Help desk", kind="application", origins=["https://help.example"])
    _vote(project)
    return project, secrets


def evaluated_project() -> tuple[Project, dict[str, str]]:
    """Return a project on the sample with two evaluations, a third of the judgments left out, and the lead's secret."""
    folder = Path("library")
    folder.mkdir()
    for name in ("corpus.jsonl", "queries.jsonl"):
        shutil.copy(sample_path(name), folder)
    lines = sample_path("qrels.txt").read_text().splitlines(keepends=True)
    (folder / "qrels.txt").write_text("".join(line for number, line in enumerate(lines, 1) if number % 3))
    import_log(sample_path("log/searches.jsonl.gz"), folder / "log", mapping=sample_path("log/mapping.toml"))
    create_project(folder)
    project = Project(folder)
    project.bench()
    secret = project.open_judging().add_judge("Lead", role="lead")[1]
    (answers,) = read_answers(sample_path("answers/prompt-1.jsonl"), reference=sample_path("answers/questions.jsonl"))
    verdicts = [verdict for verdict in RuleJudge().judge([*answers.items()]) if isinstance(verdict, Verdict)]
    evaluation = evaluate_answers(answers, verdicts)
    project.evaluations.add(evaluation, settings=evaluation.settings, answers=answers.rows())
    Jobs(project.file.store).add(["bench"], author="Lead", state="done")
    saved, judgments = project.evaluations, project.judgments
    baseline = rankgauge.Baseline.from_run(judgments, saved.run(1))
    for number in (1, 2):
        result = rankgauge.gate(judgments, saved.run(number), project.rules, baseline=baseline)
        Gates(project.file.store).add(result.to_json())
    return project, {"Lead": secret}


def _judge(project: JudgingProject, judge: str, tasks: int | None, *, often: bool) -> None:
    """Finish tasks with the sample's judgments; one judge errs in every fourth task."""
    done = 0
    while done != tasks and (task := project.next_task(judge)) is not None:
        shown, done = task.presentation, done + 1
        known = QRELS.get(shown.question, {})
        careless = not often and done % 4 == 2
        best = sorted(shown.documents, key=lambda name: (-known.get(name, 0), name))
        grade = known.get(best[0], 0)
        made = Choice(
            str(uuid.uuid4()),
            shown.id,
            judge,
            "none",
            seconds=12.0 + done % 9,
            reason="correctness" if done % 3 else "more detail",
            comment="The other documents are out of date." if careless else "",
        )
        if shown.mode == "graded":
            made = replace(made, outcome="graded", grades=(grade,))
        elif grade or careless:
            made = replace(made, outcome="chosen", documents=(best[-1 if careless else 0],))
        project.record(made)


def _vote(project: JudgingProject) -> None:
    """Add answers of two systems, and record votes of the judges on some."""
    answers = []
    for name in list(project.questions)[:8]:
        texts = project.documents(project.pools[name][:2])
        for system, document in zip(("bm25", "hybrid"), texts.values(), strict=True):
            text = document.fields["text"].split(". ")[0] + "."
            answers.append(Answer(f"{system}-{name}", name, text, system, "v3", "m1", (document.id,)))
    project.add_answers(answers)
    people = [each for each in project.judges.values() if each.role == "judge"]
    for judge in (each for each in people if each.kind == "person"):
        for number in range(6):
            shown = project.next_task(judge.id, votes=True).presentation
            best = [each for each in shown.documents if each.startswith("hybrid")]
            outcome, documents = ("chosen", tuple(best)) if number % 3 else ("both good", ())
            if number == 4:
                documents = tuple(each for each in shown.documents if each not in best)
            project.record(Choice(str(uuid.uuid4()), shown.id, judge.id, outcome, documents))


@contextlib.contextmanager
def _served(project: JudgingProject, evaluations: Project | None = None) -> Iterator[str]:
    listening = socket.create_server(("127.0.0.1", 0))
    with contextlib.nullcontext() if evaluations is None else Runner(evaluations) as runner:
        log = None if evaluations is None else EventLog(str(evaluations.file.log))
        app = judging_app(project, log=log, evaluations=evaluations, runner=runner)
        server = uvicorn.Server(uvicorn.Config(app, log_level="error"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        server.should_exit = True
        thread.join(20)


def take(browser: Browser, url: str, name: str, secrets: dict[str, str]) -> None:
    """Take the screenshots of one page."""
    picture = PICTURES[name]
    for size in picture.sizes:
        width, height = SIZES[size]
        context = browser.new_context(
            base_url=url,
            viewport={"width": width, "height": height},
            has_touch=size == "narrow",
            is_mobile=size == "narrow",
            color_scheme="light",
            reduced_motion="reduce",
        )
        page = context.new_page()
        page.goto(f"/join/{secrets[picture.who or 'Judge 1']}")
        if picture.who:
            page.get_by_role("button", name="Sign in").click()
            page.wait_for_url("**/")
            page.goto(picture.path)
        if picture.prepare is not None:
            picture.prepare(page)
        page.mouse.move(0, 0)
        group = "workbench" if picture.mode == "workbench" else "judging"
        page.screenshot(path=STATIC / f"{group}-{name}-{size}.png")
        context.close()


def main() -> None:
    """Take the screenshots with these names, or all."""
    names = sys.argv[1:] or list(PICTURES)
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    with contextlib.chdir(tempfile.mkdtemp()), sync_playwright() as tool:
        browser = tool.chromium.launch(executable_path=chromium, args=list(FLAGS))
        for mode in dict.fromkeys(PICTURES[name].mode for name in names):
            evaluations: Project | None = None
            if mode == "workbench":
                evaluations, secrets = evaluated_project()
                project = evaluations.judging
            else:
                project, secrets = team_project(mode)
            with project, _served(project, evaluations) as url:
                for name in names:
                    if PICTURES[name].mode == mode:
                        take(browser, url, name, secrets)
        browser.close()


if __name__ == "__main__":
    main()
